//! The small language in which an adapter's preconditions are written, with an explanation of every answer.

mod context;
mod evaluate;
mod explanation;
mod lexer;
mod number;
mod parse_error;
mod parser;
mod pattern;
mod similar;
mod syntax;
mod value;

use std::fmt;
use std::sync::Arc;

pub use context::{AdapterFacts, Context};
pub use explanation::{Answer, Explanation, Finding, Shown, Tree, Type};
pub use number::Number;
pub use parse_error::ParseError;

/// An expression that was read, and can be evaluated any number of times.
#[derive(Debug, Clone)]
pub struct Precondition {
    source: Arc<str>,
    expression: Arc<syntax::Expr>,
}

/// What a precondition came to, and why.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Whether it is met.
    pub outcome: Outcome,
    /// Why; its text is for a person.
    pub explanation: Explanation,
}

/// Whether a precondition is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is true.
    Met,
    /// It is false.
    NotMet,
    /// It is neither: the document holds something that the expression cannot ask about.
    Unanswerable,
}

// === impl Precondition ===

impl Precondition {
    /// Reads an expression, or says what is wrong with it and where.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        match parser::parse(source) {
            Ok(expression) => Ok(Self { source: source.into(), expression: Arc::new(expression) }),
            Err(fault) => Err(fault.within(source)),
        }
    }

    /// Asks the context. Never fails: what cannot be answered is a verdict, too.
    pub fn evaluate(&self, context: &Context<'_>) -> Verdict {
        let (truth, root) = evaluate::evaluate(&self.expression, context);
        let outcome = match truth {
            Some(true) => Outcome::Met,
            Some(false) => Outcome::NotMet,
            None => Outcome::Unanswerable,
        };
        Verdict { outcome, explanation: Explanation { source: Arc::clone(&self.source), root } }
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)
    }
}
