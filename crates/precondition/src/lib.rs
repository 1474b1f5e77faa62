//! The small language in which an adapter's preconditions are written, with an explanation of every answer.
//!
//! ```
//! use precondition::{AdapterFacts, Context, Outcome, Precondition};
//!
//! let cluster = serde_json::json!({ "status": { "adapters": { "dns": { "available": "Unknown" } } } });
//! let precondition = Precondition::parse(r#"status.adapters[dns].available == "True""#)?;
//! let context = Context::of(&cluster)
//!     .at_generation(3)
//!     .with_adapters([("dns", AdapterFacts { reported_generation: 2 })]);
//! let verdict = precondition.evaluate(&context);
//! assert_eq!(verdict.outcome, Outcome::NotMet);
//! assert_eq!(
//!     verdict.explanation.to_string(),
//!     "`status.adapters[dns].available == \"True\"` is false: left side is \"Unknown\" \
//!      (dns adapter reported at generation 2, cluster is at 3)"
//! );
//! # Ok::<(), precondition::ParseError>(())
//! ```
//!
//! # The language
//!
//! A subset of [Expr](https://expr-lang.org), as the specification writes it. From loose to tight:
//!
//! | | |
//! |---|---|
//! | `a ? b : c` | a choice |
//! | `or` `\|\|`, `and` `&&` | look no further than they must |
//! | `==` `!=` `<` `<=` `>` `>=` `in` `contains` `startsWith` `endsWith` `matches` | do not chain; the words take a `not` before them |
//! | `not` `!` | tighter than comparisons, as in Go: `not (a == b)` needs its parentheses |
//! | `a ?? b` | the first that is not nil; followed by another operator it needs parentheses, as in Go |
//! | `a.b` `a?.b` `a[b]` `a?.[b]` | members and elements; `?.` is the same as `.` |
//!
//! Values are `nil`, `true`, `false`, numbers (`-1`, `1_000`, `0x1F`, `1.5e3`), texts in `"…"`, `'…'` or, as they are,
//! `` `…` ``, and lists `[1, 2]`. Paths begin with `spec`, `status`, `metadata` or `event`; `cluster.` is the whole
//! document, so `cluster.spec` is `spec`. A name alone in brackets is a name, dashes and all:
//! `status.adapters[landing-zone]`.
//!
//! `len(x)`; `any(list, {…})`, `all`, `none`, `filter` and `count`, in whose predicates `#` is the element and `.type`
//! its member.
//!
//! There is no arithmetic, and there are no slices, ranges, objects, variables, pipes, comments and methods. Who writes
//! one is told so, at its place.
//!
//! # Rules
//!
//! - An absent member is nil, and so is any member of nil and an element beyond a list's end. That is never an error.
//! - Nil is neither true nor false: where a truth value is asked for, by `and`, `or`, `not`, `?`, a predicate or the
//!   whole precondition, nil and everything else that is not a truth value makes the verdict unanswerable. So does a
//!   part that cannot be answered, unless another part decided before it was looked at.
//! - `==` and `!=` take everything. What differs in type is not equal, save for numbers, which compare exactly.
//! - `<` and its kin take two numbers or two texts. Nil is neither, so that nothing is concluded from absence.
//! - `contains`, `startsWith`, `endsWith` and `matches` take two texts. Where one is nil they are false.
//! - `in` asks a list for an element or an object for a member's name. In nil there is nothing.
//! - Functions take what they are for; nil is no list (`?? []` makes it one), for else `all` would be true of it.
//! - Members of texts, numbers and truth values cannot be asked for; neither can a list's by name.
//!
//! # Known differences
//!
//! From Go Expr: absence is nil everywhere, as above; names in brackets need no quotes; only the whole document's paths
//! are known; comparisons do not chain (`1 < x < 3`); equality of different types is not refused beforehand; elements
//! beyond the end are nil; integers are compared with floats exactly, and go up to `u64`; `count` needs its predicate;
//! what is not in the list above is not there.
//!
//! From the crate `expr-lang`, which tests hold this one to where both have an answer: besides the former, it refuses nil
//! for `in` and the operators on texts, `contains` asks lists and objects there, `?.` is nil for members of what has none,
//! a predicate that is not true counts as false, `a ?? b == c` is `a ?? (b == c)`, and names that begin with a word of
//! the language (`notify`) are misread.
//!
//! # Bounds
//!
//! A source has at most 4096 bytes and is nested at most 64 deep; an evaluation takes at most 100 000 steps, in which
//! long texts and paths, and patterns that are not literals, count for more, and a pattern's text for 8 steps a byte; patterns
//! run in linear time and compile to at most 128 KiB. Explanations are shortened: texts to 64 characters, lists to 5
//! elements, reasons to 3 an element, lines to 2000 characters, and to 20.
//!
//! # Secrecy
//!
//! What is at or below `spec.pullSecret`, or a path given to [`Context::hiding`], or a member whose name says that it is
//! a secret, is in no explanation; only its type is, and whether it is there. That follows the value through lists,
//! choices, functions and predicates. An adapter's name is no such name: the report of `pullsecret` is shown.

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
