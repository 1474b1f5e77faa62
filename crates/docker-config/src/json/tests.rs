//! The reader against `serde_json`, which serves as the second opinion.

use proptest::prelude::*;
use rstest::rstest;

use super::{Content, Value, read};
use crate::problem::Position;

const DEPTH: usize = 64;

fn same(actual: &Value, expected: &serde_json::Value) -> bool {
    use serde_json::Value as Theirs;
    match (&actual.content, expected) {
        (Content::Null, Theirs::Null) => true,
        (Content::Boolean(actual), Theirs::Bool(expected)) => actual == expected,
        (Content::Number(actual), Theirs::Number(expected)) => {
            serde_json::from_str::<serde_json::Number>(actual).unwrap() == *expected
        }
        (Content::Text(actual), Theirs::String(expected)) => **actual == *expected,
        (Content::Array(actual), Theirs::Array(expected)) => {
            actual.len() == expected.len() && actual.iter().zip(expected).all(|(o, t)| same(o, t))
        }
        (Content::Object(actual), Theirs::Object(expected)) => {
            // Of repeated names expected keeps the last.
            let last = |name: &str| actual.iter().rev().find(|m| *m.name == name);
            actual.iter().all(|m| expected.contains_key(m.name.as_str()))
                && expected.iter().all(|(name, t)| last(name).is_some_and(|m| same(&m.value, t)))
        }
        _ => false,
    }
}

/// Both accept, and see the same; or both refuse.
fn agree(bytes: &[u8]) -> bool {
    let actual = std::str::from_utf8(bytes).ok().and_then(|text| read(text, DEPTH).ok());
    match (actual, serde_json::from_slice::<serde_json::Value>(bytes)) {
        (Some(actual), Ok(expected)) => same(&actual, &expected),
        (None, Err(_)) => true,
        // This reader keeps numbers as text, so none is too large.
        (Some(_), Err(error)) => error.to_string().contains("out of range"),
        (None, Ok(_)) => false,
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
        "[\\x00-\\x7F]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn generated_json_is_read_alike(value in any_json()) {
        prop_assert!(agree(&serde_json::to_vec(&value).unwrap()));
        prop_assert!(agree(&serde_json::to_vec_pretty(&value).unwrap()));
    }

    #[test]
    fn damaged_json_is_judged_alike(
        value in any_json(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..4),
    ) {
        let mut bytes = serde_json::to_vec_pretty(&value).unwrap();
        for (at, byte, how) in damage {
            let at = at.index(bytes.len() + 1);
            match how {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, byte),
                2 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        prop_assert!(agree(&bytes), "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn text_in_the_alphabet_of_json_is_judged_alike(text in r#"[\[\]{}:,"\\untrfalse0-9 .eE+\-]{0,24}"#) {
        prop_assert!(agree(text.as_bytes()), "{}", text);
    }

    #[test]
    fn numbers_are_judged_alike(text in "-?[0-9]{0,3}[.]?[0-9]{0,3}[eE]?[+-]?[0-9]{0,2}") {
        prop_assert!(agree(text.as_bytes()), "{}", text);
    }

    #[test]
    fn escapes_are_judged_alike(text in r#""(\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[ubfnrtx/"\\]|[a0é]){0,5}""#) {
        prop_assert!(agree(text.as_bytes()), "{}", text);
    }
}

#[rstest]
#[case(r#""a\"\\\/\b\f\n\r\tb""#, "a\"\\/\u{8}\u{c}\n\r\tb")]
#[case(r#""\u00e9\uD83D\uDE00\u0000""#, "é😀\0")]
#[case("\"\u{7f}\u{2028}\u{feff}\"", "\u{7f}\u{2028}\u{feff}")]
fn strings_are_unescaped(#[case] text: &str, #[case] expected: &str) {
    let value = read(text, DEPTH).map_err(|problem| problem.to_string());
    assert_eq!(value.unwrap_or_else(|problem| panic!("{problem}")).as_text(), Some(expected));
}

#[test]
fn every_name_and_value_knows_its_place() {
    let text = "\r\n {\"é😀\" :\n\t[1, \"x\\\"y\", {}] , \"b\":null}";
    let value = read(text, DEPTH).unwrap_or_else(|problem| panic!("{problem}"));
    let at = |line, column| Position { line, column };
    assert_eq!(value.position, at(2, 2));
    let members = value.as_object().unwrap();
    assert_eq!(members[0].position, at(2, 3));
    assert_eq!(members[1].position, at(3, 20));
    assert_eq!(members[1].value.position, at(3, 24));
    let Content::Array(values) = &members[0].value.content else { panic!("an array") };
    let found: Vec<Position> = values.iter().map(|value| value.position).collect();
    assert_eq!(found, [at(3, 3), at(3, 6), at(3, 14)]);
}

#[test]
fn strings_are_never_moved_while_they_grow() {
    let long = format!("\"{}\\n{}\"", "x".repeat(5_000), "é".repeat(5_000));
    let value = read(&long, DEPTH).unwrap_or_else(|problem| panic!("{problem}"));
    let Content::Text(text) = value.content else { panic!("a string") };
    assert_eq!(text.capacity(), long.len() - 2);
}
