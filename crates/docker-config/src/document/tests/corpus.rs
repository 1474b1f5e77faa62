//! Good documents, damaged in thousands of ways: nothing panics, nothing leaks.

use damage::Random;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::documents::model;
use super::good::GOOD;
use super::laws::everything_shown;

const DAMAGES_EACH: u64 = 60;

#[test]
fn damaged_examples_never_panic() {
    for (name, document, _, _) in GOOD {
        for seed in 0..DAMAGES_EACH {
            let damaged = Random::new(seed).damaged(document.as_bytes(), &[]);
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
            let damaged = Random::new(seed << 32 | round).damaged(document.as_bytes(), &[]);
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

fn names(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Object(members) => {
            members.iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(names(value))).collect()
        }
        serde_json::Value::Array(values) => values.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}
