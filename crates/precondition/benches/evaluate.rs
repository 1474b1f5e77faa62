//! Measures the specification's expressions, as a ratio to `expr-lang` in the same run.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops where it cannot go on")]

use std::hint::black_box;
use std::time::Instant;

use expr::Environment;
use precondition::{Context, Outcome, Precondition};
use serde_json::{Value, json};

const ROUNDS: u32 = 20_000;

/// As the specification has them, and as expr-lang takes them: it knows no names in brackets.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("spec.provider == \"gcp\"", "spec.provider == \"gcp\""),
    ("spec.gcp.projectId != nil", "spec.gcp.projectId != nil"),
    ("spec.pullSecret.data != nil", "spec.pullSecret.data != nil"),
    ("status.adapters[validation].available == \"True\"", "status.adapters[\"validation\"].available == \"True\""),
    ("status.adapters[dns].available == \"True\"", "status.adapters[\"dns\"].available == \"True\""),
    ("status.adapters[placement].available == \"True\"", "status.adapters[\"placement\"].available == \"True\""),
];

fn main() {
    let document = document();
    let context = Context::of(&document);
    let their_context = expr::Context::from_serialize(&document).unwrap();
    let environment = Environment::new();
    println!(
        "{:<50}  {:>9}  {:>9}  {:>6}  {:>9}  {:>9}  {:>6}",
        "", "parse", "expr-lang", "ratio", "evaluate", "expr-lang", "ratio"
    );
    for (own, reference) in EXPRESSIONS {
        let precondition = Precondition::parse(own).unwrap();
        let program = expr::compile(reference).unwrap();
        assert_eq!(precondition.evaluate(&context).outcome, Outcome::Met);
        assert_eq!(environment.run(&program, &their_context).unwrap().as_bool(), Some(true));
        let parse = per_round(|| drop(black_box(Precondition::parse(black_box(own)))));
        let their_parse = per_round(|| drop(black_box(expr::compile(black_box(reference)))));
        let evaluate = per_round(|| drop(black_box(precondition.evaluate(black_box(&context)))));
        let their_run = per_round(|| drop(black_box(environment.run(black_box(&program), &their_context))));
        let (parse_ratio, run_ratio) = (parse / their_parse, evaluate / their_run);
        println!(
            "{own:<50}  {parse:>6.2} µs  {their_parse:>6.2} µs  {parse_ratio:>6.2}  {evaluate:>6.2} µs  {their_run:>6.2} µs  {run_ratio:>6.2}"
        );
    }
    hostile();
}

/// Expressions that reach the bound on steps, or nearly: the longest evaluations.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn hostile() {
    let many = (0..90_000).map(|index| json!({ format!("member-{index}"): "x" })).collect::<Vec<_>>();
    let document = json!({ "spec": { "many": many, "text": "a".repeat(12_400), "few": [1, 2, 3, 4, 5, 6, 7, 8, 9] } });
    let nested = format!("{}false{}", "any(spec.few, ".repeat(20), ")".repeat(20));
    for hostile in [
        "any(spec.many, {.membre-0 == 1})".replace("-0", ""),
        "spec.text matches '([a-z]?){20}([a-z]{1,20}){20}[0-9]'".to_owned(),
        "any(spec.many, {'x' matches (nil ?? '[a-z]{1,500}')})".to_owned(),
        "spec.many == filter(spec.many, {# in spec.many})".to_owned(),
        nested,
    ] {
        let precondition = Precondition::parse(&hostile).unwrap();
        let start = Instant::now();
        let evaluation = precondition.evaluate(&Context::of(&document));
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        println!(
            "{:<70}  {:?} after {milliseconds:.1} ms",
            hostile.chars().take(70).collect::<String>(),
            evaluation.outcome
        );
    }
}

/// A cluster as the API renders it, of an ordinary size.
fn document() -> Value {
    let adapter =
        |name: &str| json!({ "adapter": name, "available": "True", "data": { "a": "x".repeat(40), "b": [1, 2, 3] } });
    json!({
        "id": "cls-123", "kind": "Cluster", "name": "production", "generation": 3,
        "spec": {
            "provider": "gcp",
            "gcp": { "projectId": "customer-prod-12345", "region": "europe-west1", "labels": { "a": "b" } },
            "pullSecret": { "data": "x".repeat(3000) },
        },
        "status": { "adapters": { "validation": adapter("validation"), "dns": adapter("dns"), "placement": adapter("placement") } },
    })
}

/// Microseconds a round, after as many rounds to warm up.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn per_round(mut work: impl FnMut()) -> f64 {
    (0..ROUNDS).for_each(|_| work());
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| work());
    start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
}
