//! Measures validation, as a ratio to `serde_json` parsing the same bytes.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use docker_config::Limits;

const ROUNDS: u32 = 2_000;

fn main() {
    println!("{:>8}  {:>7}  {:>12}  {:>12}  {:>6}", "entries", "bytes", "validate", "serde_json", "ratio");
    for entries in [1, 4, 40, 400] {
        let document = document(entries);
        let limits = Limits { max_bytes: usize::MAX, ..Limits::default() };
        let validate = per_round(|| drop(black_box(docker_config::parse(black_box(document.as_bytes()), &limits))));
        let baseline = per_round(|| drop(black_box(serde_json::from_str::<serde_json::Value>(black_box(&document)))));
        let ratio = validate / baseline;
        println!("{entries:>8}  {:>7}  {validate:>9.1} µs  {baseline:>9.1} µs  {ratio:>6.1}", document.len());
    }
}

fn document(entries: usize) -> String {
    let entry = |index| {
        format!(r#""registry-{index}.example.com":{{"auth":"dXNlcjpwYXNzd29yZA==","email":"user@example.com"}}"#)
    };
    format!(r#"{{"auths":{{{}}}}}"#, (0..entries).map(entry).collect::<Vec<_>>().join(","))
}

/// Microseconds per round, after as many rounds to warm up.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn per_round(mut work: impl FnMut()) -> f64 {
    (0..ROUNDS).for_each(|_| work());
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| work());
    start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
}
