//! Inputs that are or once were interesting, their mutations, and arbitrary text: all are answered, none panics.

use std::sync::LazyLock;

use precondition::{Context, Precondition};
use proptest::prelude::*;
use serde_json::{Value, json};

fn document() -> Value {
    json!({
        "id": "cls-123",
        "spec": { "provider": "gcp", "gcp": { "projectId": "x" }, "pullSecret": { "data": "y" }, "list": [1, 2.5, "a", null] },
        "status": {
            "phase": "Ready",
            "adapters": { "dns": { "available": "True" }, "validation": { "available": "False" } },
            "conditions": [{ "type": "Available", "status": "True" }, { "type": "Degraded", "status": "False" }],
        },
    })
}

/// One input a file; the name says what is special about it.
fn corpus() -> &'static [(String, String)] {
    static CORPUS: LazyLock<Vec<(String, String)>> = LazyLock::new(read);
    &CORPUS
}

fn read() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut inputs = files
        .map(|path| (path.display().to_string(), String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()))
        .collect::<Vec<_>>();
    inputs.sort();
    inputs
}

/// Returns true if it could be parsed.
fn survives(input: &str, document: &Value) -> bool {
    match Precondition::parse(input) {
        Ok(precondition) => {
            let evaluation = precondition.evaluate(&Context::of(document).with_event(document).at_generation(1));
            assert!(!evaluation.explanation.to_string().is_empty());
            assert!(!evaluation.explanation.tree().to_string().is_empty());
            true
        }
        Err(error) => {
            assert!(error.line() > 0 && error.column() > 0);
            assert!(error.to_string().lines().count() <= 4, "{error}");
            false
        }
    }
}

#[test]
fn the_corpus_is_survived_and_is_what_it_says() {
    let document = document();
    let corpus = corpus();
    assert!(corpus.len() >= 30);
    for (path, input) in corpus {
        let good = survives(input, &document);
        assert_eq!(good, path.contains("/good-"), "{path}\n{:?}", Precondition::parse(input).err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_survived(input in any::<String>()) {
        survives(&input, &document());
    }

    #[test]
    fn arbitrary_words_are_survived(words in prop::collection::vec(prop::sample::select(TOKENS), 0..40)) {
        survives(&words.concat(), &document());
        survives(&words.join(" "), &document());
    }

    #[test]
    fn mutations_are_survived(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), with in any::<char>(), how in 0..4_u8) {
        let corpus = corpus();
        let (_, input) = which.get(corpus);
        let mut characters = input.chars().collect::<Vec<_>>();
        let place = at.index(characters.len() + 1);
        match how {
            0 => characters.insert(place, with),
            1 => characters.truncate(place),
            2 if place < characters.len() => drop(characters.remove(place)),
            _ => drop(characters.drain(..place)),
        }
        survives(&characters.into_iter().collect::<String>(), &document());
    }
}

const TOKENS: &[&str] = &[
    "spec",
    "status",
    ".a",
    "cluster",
    "event",
    ".",
    "?.",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "#",
    ",",
    "not",
    "!",
    "and",
    "or",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    ">=",
    "in",
    "matches",
    "contains",
    "??",
    "?",
    ":",
    "nil",
    "true",
    "1",
    "-",
    "0x",
    "1.5e3",
    "\"a\"",
    "'",
    "`",
    "\\",
    "any",
    "all",
    "none",
    "filter",
    "count",
    "len",
    "(spec.list,",
    "{.type",
    "ä",
    "\n",
];
