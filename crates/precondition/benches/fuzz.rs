//! A million random inputs, made of the corpus, of words and of nothing: none panics, none exhausts the stack.
//!
//! The generator is seeded, by `PRECONDITION_FUZZ_SEED` or else by a constant, so that what was found is found again.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops where it cannot go on")]

use std::time::Instant;

use precondition::{Context, Outcome, Precondition};
use serde_json::{Value, json};

const INPUTS: u32 = 1_000_000;
const MAX_LENGTH: usize = 200;
/// The default stack size of a thread.
const STACK: usize = 2 << 20;

const TOKENS: &[&str] = &[
    "spec",
    "status",
    ".a",
    ".list",
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
    " not ",
    "!",
    " and ",
    " or ",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    ">=",
    " in ",
    " matches ",
    " contains ",
    "??",
    "?",
    ":",
    "nil",
    "true",
    "false",
    "1",
    "-",
    "0x",
    "1.5e3",
    "\"a\"",
    "'",
    "`",
    "\\",
    "any(",
    "all(",
    "none(",
    "filter(",
    "count(",
    "len(",
    "spec.list,",
    "{.type",
    "ä",
    "\n",
    " ",
    "=",
    "&",
    "|",
    "spec.list",
    "status.conditions",
    "[dns]",
    "[a-b]",
    "\u{0}",
];

/// Counts of outcomes: a generator that only makes nonsense proves nothing.
#[derive(Debug, Default)]
struct Counts {
    refused: u32,
    met: u32,
    not_met: u32,
    unanswerable: u32,
    longest_explanation: usize,
}

fn main() {
    std::thread::Builder::new().stack_size(STACK).spawn(fuzz).unwrap().join().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock, and takes its seed from the command line")]
fn fuzz() {
    let seed = std::env::var("PRECONDITION_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random(seed.unwrap_or(0x5eed_0f5e_ed0f_5eed));
    let corpus = corpus();
    let document = document();
    let context = Context::of(&document).at_generation(2).with_adapters([]);
    let mut counts = Counts::default();
    let start = Instant::now();
    for _ in 0..INPUTS {
        let input = input(&mut random, &corpus);
        ask(&input, &context, &mut counts);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{INPUTS} inputs in {seconds:.1} s, {:.2} µs each: {counts:?}", seconds * 1e6 / f64::from(INPUTS));
    assert!(counts.met > INPUTS / 1000 && counts.not_met > INPUTS / 1000 && counts.unanswerable > INPUTS / 1000);
}

fn ask(input: &str, context: &Context<'_>, counts: &mut Counts) {
    let precondition = match Precondition::parse(input) {
        Ok(precondition) => precondition,
        Err(error) => {
            counts.refused += 1;
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let evaluation = precondition.evaluate(context);
    match evaluation.outcome {
        Outcome::Met => counts.met += 1,
        Outcome::NotMet => counts.not_met += 1,
        Outcome::Unanswerable => counts.unanswerable += 1,
    }
    let text = evaluation.explanation.to_string();
    assert!(!text.is_empty(), "{input}");
    assert!(!text.contains("hunter2"), "{input}");
    counts.longest_explanation = counts.longest_explanation.max(text.len());
}

fn input(random: &mut Random, corpus: &[String]) -> String {
    match random.below(8) {
        0 => (0..random.below(MAX_LENGTH)).map(|_| random.character()).collect(),
        1 => (0..random.below(MAX_LENGTH))
            .map(|_| char::from(u8::try_from(32 + random.below(95)).unwrap_or(b' ')))
            .collect(),
        2 | 3 => (0..random.below(40)).filter_map(|_| random.pick(TOKENS).copied()).collect(),
        _ => mutated(random, corpus),
    }
}

/// One of the corpus with a few words put in, taken out, or replaced by a part of another.
fn mutated(random: &mut Random, corpus: &[String]) -> String {
    let mut input = random.pick(corpus).cloned().unwrap_or_default().chars().collect::<Vec<_>>();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let until = (at + random.below(8)).min(input.len());
        let with = match random.below(3) {
            0 => String::new(),
            1 => random.pick(TOKENS).copied().unwrap_or_default().to_owned(),
            _ => {
                let other = random.pick(corpus).cloned().unwrap_or_default();
                let skipped = random.below(other.chars().count() + 1);
                other.chars().skip(skipped).take(random.below(30)).collect()
            }
        };
        input.splice(at..until, with.chars());
    }
    input.into_iter().collect()
}

fn corpus() -> Vec<String> {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus")).unwrap();
    let mut inputs = files
        .map(|file| String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned())
        .collect::<Vec<_>>();
    inputs.sort();
    inputs
}

fn document() -> Value {
    json!({
        "id": "cls-123",
        "spec": {
            "provider": "gcp", "gcp": { "projectId": "x" }, "pullSecret": { "data": "hunter2", "list": ["hunter2"] },
            "list": [1, 2.5, "a", null, [1], { "type": "x" }], "a": { "a": { "b": true } }, "password": "hunter2",
        },
        "status": {
            "phase": "Ready",
            "adapters": { "dns": { "available": "True" }, "validation": { "available": "False" }, "a-b": {} },
            "conditions": [{ "type": "Available", "status": "True" }, { "type": "Degraded", "status": "False" }],
        },
    })
}

/// xorshift64*: good enough to make nonsense, and always the same.
struct Random(u64);

// === impl Random ===

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let thrown = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(thrown).unwrap_or(0) % bound.max(1)
    }

    fn character(&mut self) -> char {
        u32::try_from(self.below(0x11_0000)).ok().and_then(char::from_u32).unwrap_or('x')
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let index = self.below(of.len());
        of.get(index)
    }
}
