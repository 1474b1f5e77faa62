//! The language as its users see it: what is read, what is answered, what is explained.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bounds;
mod corpus;
mod explanations;
mod grammar;
mod mistakes;
mod operators;
mod oracle;
mod secrecy;
mod specification;

use precondition::{Context, Outcome, Precondition};
use serde_json::Value;

/// `true`, `false`, or what is explained where there is no answer.
fn answer(document: &Value, expression: &str) -> String {
    let precondition = Precondition::parse(expression).unwrap_or_else(|error| panic!("{expression}\n{error}"));
    let evaluation = precondition.evaluate(&Context::of(document));
    match evaluation.outcome {
        Outcome::Met => "true".to_owned(),
        Outcome::NotMet => "false".to_owned(),
        Outcome::Unanswerable => evaluation.explanation.to_string(),
    }
}

/// The explanation of an expression that is false or has no answer.
fn explained(document: &Value, expression: &str) -> String {
    Precondition::parse(expression).unwrap().evaluate(&Context::of(document)).explanation.to_string()
}
