//! Documents are kept whole, written alike, and mean the same as before.

use damage::Random;
use proptest::prelude::*;
use rstest::rstest;
use secrecy::ExposeSecret as _;

use super::Document;
use crate::document::tests::documents::model;
use crate::{Limits, parse};

fn read(text: &str) -> Document {
    Document::parse(text.as_bytes(), &Limits::default()).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

fn written(document: &Document) -> String {
    String::from_utf8(document.to_bytes().expose_secret().to_vec()).unwrap()
}

#[rstest]
#[case::order_and_blanks(
    r#" { "z" : 1.50, "auths": {"b.io": {"x": [1, {}], "auth": "YTpi"}, "a.io": {}}, "A": null }"#,
    r#"{"A":null,"auths":{"a.io":{},"b.io":{"x":[1,{}],"auth":"YTpi"}},"z":1.50}"#
)]
#[case::escapes(
    r#"{"auths": {"a\u0041/\"\\": {"k": "\u0001\n\u00e9\ud83d\ude00\/"}}}"#,
    "{\"auths\":{\"aA/\\\"\\\\\":{\"k\":\"\\u0001\\né😀/\"}}}"
)]
#[case::what_no_reader_uses(
    r#"{"auths": {"": null, "?": "x", "a.io": {"auth": "!!", "auth": 2}}}"#,
    r#"{"auths":{"":null,"?":"x","a.io":{"auth":"!!","auth":2}}}"#
)]
#[case::nothing(r#"{"auths": {}}"#, r#"{"auths":{}}"#)]
fn a_document_keeps_all_members(#[case] text: &str, #[case] expected: &str) {
    let document = read(text);
    assert_eq!(written(&document), expected);
    assert_eq!(written(&read(expected)), expected);
    assert_eq!(document.digest(), read(expected).digest());
}

#[rstest]
#[case("{}", "document: has no member \"auths\" (line 1, column 1)")]
#[case("", "document: is empty (line 1, column 1)")]
#[case("[]", "document: must be an object, not an array (line 1, column 1)")]
#[case(r#"{"auths": null}"#, "auths: must be an object, not null (line 1, column 11)")]
#[case(r#"{"auths": "SECRET"}"#, "auths: must be an object, not a string (line 1, column 11)")]
#[case(r#"{"auths": {"a": 1, "a": 2}}"#, "auths[\"a\"]: stands there twice (line 1, column 20)")]
#[case(r#"{"auths": {}, "b": 1, "b": 2}"#, "b: stands there twice (line 1, column 23)")]
#[case(r#"{"auths": {}, "AUTHS": {}}"#, "AUTHS: stands beside \"auths\" and differs only in case (line 1, column 15)")]
#[case(r#"{"auths": {"a": {"auth": "SECRET}}}"#, "document: a string that does not end (line 1, column 26)")]
fn an_invalid_document_is_refused(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(Document::parse(text.as_bytes(), &Limits::default()).unwrap_err().to_string(), expected);
}

#[test]
fn entries_are_inserted_and_removed() {
    let mut document = read(r#"{"auths": {"a.io": {"auth": "YTpi"}}, "credHelpers": {}}"#);
    let entry = document.entry("a.io").unwrap().clone();
    assert_eq!(entry.to_bytes().expose_secret(), br#"{"auth":"YTpi"}"#);
    assert_eq!(Some(entry.digest("a.io")), document.entry_digest("a.io"));
    assert_ne!(Some(entry.digest("b.io")), document.entry_digest("a.io"));
    assert!(document.insert("b.io", entry).is_none());
    assert!(document.remove("a.io").is_some() && document.remove("a.io").is_none());
    assert_eq!((document.len(), document.is_empty()), (1, false));
    assert_eq!(document.other_members().collect::<Vec<_>>(), ["credHelpers"]);
    assert!(document.remove_other_member("credHelpers"));
    assert_eq!(written(&document), r#"{"auths":{"b.io":{"auth":"YTpi"}}}"#);
    assert_eq!(
        format!("{document:?} {:?}", document.entry("b.io").unwrap()),
        "Document(1 entries, redacted) RawEntry(redacted)"
    );
}

#[rstest]
#[case::spelling(r#"{"auth": "YTpi"}"#, r#"{ "password":"b","auth": "\u0059Tpi" }"#, true)]
#[case::padding(r#"{"auth": "YTpiYg=="}"#, r#"{"auth": "YTpiYg"}"#, false)]
#[case::unusable_alike(r#"{"auth": "!!", "x": 1}"#, r#"{"x": 1, "auth": "!!"}"#, true)]
#[case::unusable_differ(r#"{"auth": "!!"}"#, r#"{"auth": "!"}"#, false)]
#[case::no_object("1", "2", false)]
fn entries_are_compared_by_meaning(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
    let digest = |entry: &str| read(&format!(r#"{{"auths": {{"a.io": {entry}}}}}"#)).entry_digest("a.io");
    assert_eq!(digest(one) == digest(other), same);
}

proptest! {
    #[test]
    fn a_valid_document_means_the_same_after_a_round_trip(model in model(), seed in any::<u64>()) {
        let text = model.write(&mut Random::new(seed));
        let config = parse(text.as_bytes(), &Limits::default()).unwrap();
        let document = read(&text);
        prop_assert_eq!(document.digest(), config.digest());
        let again = written(&document);
        prop_assert_eq!(parse(again.as_bytes(), &Limits::default()).unwrap().digest(), config.digest());
        prop_assert_eq!(written(&read(&again)), again);
    }

    #[test]
    fn arbitrary_bytes_never_panic(text in r#"\{"auths":[\[\]{}:,"\\ua0-9 .eE+-]{0,200}"#) {
        if let Ok(document) = Document::parse(text.as_bytes(), &Limits::default()) {
            let again = written(&document);
            prop_assert_eq!(written(&read(&again)), again);
        }
    }
}
