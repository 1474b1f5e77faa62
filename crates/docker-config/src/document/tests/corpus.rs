//! Good documents, damaged in thousands of ways: nothing panics, nothing leaks.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::documents::{Random, model};
use super::good::GOOD;
use super::laws::everything_shown;

const DAMAGES_EACH: u64 = 60;

#[test]
fn damaged_examples_never_panic() {
    for (name, document, _, _) in GOOD {
        for seed in 0..DAMAGES_EACH {
            let damaged = damage(document.as_bytes(), &mut Random::new(seed));
            assert!(!everything_shown(&damaged).is_empty(), "{name}");
        }
        for end in 0..document.len() {
            assert!(!everything_shown(&document.as_bytes()[..end]).is_empty(), "{name}");
        }
    }
}

#[test]
fn damaged_documents_show_no_value() {
    let mut runner = TestRunner::deterministic();
    let models = model();
    for seed in 0..60 {
        let model = models.new_tree(&mut runner).unwrap().current();
        let document = model.write(&mut Random::new(seed));
        for round in 0..DAMAGES_EACH {
            let damaged = damage(document.as_bytes(), &mut Random::new(seed << 32 | round));
            let shown = everything_shown(&damaged);
            let names = serde_json::from_slice(&damaged).map_or_else(|_| Vec::new(), |v| names(&v));
            // Damage may turn a value into a name, and names are shown.
            let secrets = model.secrets().into_iter();
            for secret in secrets.filter(|s| !names.iter().any(|name| name.contains(s))) {
                assert!(!shown.contains(&secret), "{secret} in {shown}");
            }
        }
    }
}

/// One to three times: cut, flip, repeat, insert or swap.
fn damage(document: &[u8], random: &mut Random) -> Vec<u8> {
    const INSERTED: &[&[u8]] =
        &[b"{", b"}", b"[", b"]", b"\"", b",", b":", b"\\", b"null", b"0", b"\0", b"\xFF", b"\\u0000", b"@", b" "];
    let mut bytes = document.to_vec();
    for _ in 0..=random.roll(3) {
        let at = random.roll(bytes.len() + 1);
        let until = (at + random.roll(20)).min(bytes.len());
        match random.roll(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..until)),
            2 => bytes.extend_from_within(at..until),
            3 => drop(bytes.splice(at..at, INSERTED[random.roll(INSERTED.len())].iter().copied())),
            4 => bytes[at..until].reverse(),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.roll(8);
                }
            }
        }
    }
    bytes
}

fn names(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Object(members) => {
            members.iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(names(value))).collect()
        }
        serde_json::Value::Array(values) => values.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}
