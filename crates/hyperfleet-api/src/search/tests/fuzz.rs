//! Searches damaged at random: parsing, matching and the SQL survive each, and what is refused says where.
//!
//! The corpus is `tests/corpus/searches.txt`; the variable `FUZZ_INPUTS` is the number of inputs of a long run.

use damage::{Random, inputs};

use super::properties::check;
use super::*;

/// Inputs of an ordinary run.
const INPUTS: u64 = 5_000;

const CORPUS: &str = include_str!("../../../tests/corpus/searches.txt");

/// Words that mean something here.
const WORDS: &[&[u8]] = &[
    b" and ",
    b" or ",
    b" not ",
    b" in ",
    b" like ",
    b" ilike ",
    b" between ",
    b" is ",
    b"(",
    b")",
    b"((((((((",
    b"'",
    b"''",
    b"`",
    b"%",
    b"_",
    b"!=",
    b"<>",
    b"<=",
    b";",
    b"--",
    b"$1",
    b"\n",
    b"\xc3\xa9",
    b"-",
    b"9223372036854775808",
    b"1.5Ki",
    b".",
    b"..",
    b"/",
    b"labels.",
    b"spec.",
    b"status.conditions.",
    b"created_time",
    b"name",
];

#[test]
fn damaged_searches_are_survived() {
    let corpus: Vec<&str> = CORPUS.lines().collect();
    for line in &corpus {
        assert_eq!(Search::parse(line).map(|_search| ()).map_err(|error| error.to_string()), Ok(()));
    }
    let (number, mut parsed) = (inputs(INPUTS), 0);
    for seed in 0..number {
        let mut random = Random::new(seed);
        let line = random.pick(&corpus);
        let damaged = random.damaged(line.as_bytes(), WORDS);
        let text = String::from_utf8_lossy(&damaged);
        check(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}: {text:?}"));
        parsed += u64::from(Search::parse(&text).is_ok());
        if let Ok(order) = Order::parse(&[text.clone().into_owned()]) {
            assert!(order.sql().contains("r.id"), "seed {seed}");
        }
        if let Ok(Some(fields)) = Fields::parse(&[text.into_owned()]) {
            fields.apply(r#"{"id": "1", "spec": {"a": [1]}}"#).unwrap();
        }
    }
    // Damage that leaves nothing valid, or everything, finds little.
    assert!(parsed > number / 20 && parsed < number, "{parsed} of {number} are valid");
}
