//! Bodies of requests damaged at random, against the whole service in this process: no panic, no answer of 500 or above.
//!
//! The corpus is `tests/corpus/bodies`; the variable `FUZZ_INPUTS` is the number of inputs of a long run.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod service;
mod values;

use std::collections::BTreeMap;

use damage::{Random, inputs};
use serde_json::Value;
use service::Served;

/// Inputs of an ordinary run.
const INPUTS: u64 = 1_500;

/// Words that mean something here.
const WORDS: &[&[u8]] =
    &[b"[[[[[[[[[[[[[[[[", b"auths", b"redacted", b"data", b"spec", b"pullSecret", b"9223372036854775808", b"''"];

/// The requests that have a body, each with the documents of the corpus that it takes.
const REQUESTS: &[(&str, &str, &[&str])] = &[
    ("POST", "/clusters", &["cluster", "reference"]),
    ("POST", "/resources", &["cluster", "reference", "nodepool"]),
    ("POST", "/clusters/cls-fuzz/nodepools", &["nodepool"]),
    ("PATCH", "/clusters/cls-fuzz", &["patch", "cluster"]),
    ("PATCH", "/resources/cls-fuzz", &["patch"]),
    ("PUT", "/clusters/cls-fuzz/statuses", &["report", "report-2025"]),
    ("POST", "/clusters/cls-fuzz/statuses", &["report", "report-2025"]),
    ("POST", "/clusters/cls-gone/force-delete", &["reason"]),
    ("POST", "/tombstones/clusters/none/swept", &["reason"]),
];

fn corpus() -> BTreeMap<String, Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/bodies");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())).collect()
}

/// A document of the corpus, damaged as text or as JSON.
fn damaged(random: &mut Random, document: &[u8]) -> Vec<u8> {
    if random.roll(3) == 0 {
        return random.damaged(document, WORDS);
    }
    let mut value: Value = serde_json::from_slice(document).unwrap();
    for _ in 0..random.roll(4) {
        values::damage(random, &mut value);
    }
    value.to_string().into_bytes()
}

#[tokio::test]
async fn damaged_bodies_are_survived() {
    let (corpus, served) = (corpus(), Served::new().await);
    let number = inputs(INPUTS);
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for seed in 0..number {
        let mut random = Random::new(seed);
        let (method, path, documents) = REQUESTS[random.roll(REQUESTS.len())];
        let document = *random.pick(documents);
        let body = damaged(&mut random, &corpus[document]);
        let shown = String::from_utf8_lossy(&body).into_owned();
        let (status, answer) = served.ask(method, path, body).await;
        assert!(status < 500, "seed {seed}: {method} {path} {shown:?} -> {status} {answer}");
        assert!(!answer.contains("panicked"), "seed {seed}: {answer}");
        *statuses.entry(status).or_default() += 1;
    }
    if number > INPUTS {
        eprintln!("{number} bodies: {statuses:?}");
    }
    // Damage that leaves nothing valid, or everything, finds little.
    let accepted: u64 = statuses.range(200..300).map(|(_, count)| count).sum();
    assert!(accepted > number / 20 && accepted < number / 2, "{statuses:?}");
}
