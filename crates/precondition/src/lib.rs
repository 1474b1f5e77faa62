//! The expression language of preconditions, with an explanation of every result.
//!
//! ```
//! use precondition::{AdapterFacts, Context, Outcome, Precondition};
//!
//! let cluster = serde_json::json!({ "status": { "adapters": { "dns": { "available": "Unknown" } } } });
//! let precondition = Precondition::parse(r#"status.adapters[dns].available == "True""#)?;
//! let context = Context::of(&cluster)
//!     .at_generation(3)
//!     .with_adapters([("dns", AdapterFacts { reported_generation: 2 })]);
//! let evaluation = precondition.evaluate(&context);
//! assert_eq!(evaluation.outcome, Outcome::NotMet);
//! assert_eq!(
//!     evaluation.explanation.to_string(),
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
//! | `or` `\|\|`, `and` `&&` | stop as soon as the answer is known |
//! | `==` `!=` `<` `<=` `>` `>=` `in` `contains` `startsWith` `endsWith` `matches` | do not chain; the keywords take a `not` before them |
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
//! There is no arithmetic, and there are no slices, ranges, objects, variables, pipes, comments and methods. Each is refused
//! with a hint at its position.
//!
//! # Rules
//!
//! - An absent member is nil, and so is any member of nil and an element beyond a list's end. That is never an error.
//! - Nil is neither true nor false: as an operand of `and`, `or`, `not`, `?`, as a predicate or as the whole precondition,
//!   nil and everything else that is not a truth value makes the precondition unanswerable. So does a part that cannot be
//!   answered, unless another part decided before it.
//! - `==` and `!=` take everything. Values of different types are not equal, except numbers, which compare exactly.
//! - `<`, `<=`, `>` and `>=` take two numbers or two texts. Nil is neither, so that nothing is concluded from absence.
//! - `contains`, `startsWith`, `endsWith` and `matches` take two texts. If one is nil they are false.
//! - `in` searches a list for an element or an object for a member's name. Nil contains nothing.
//! - Functions are strict about types; nil is no list (`?? []` makes it one), since otherwise `all` would be true of it.
//! - Texts, numbers and truth values have no members; the elements of a list have no names.
//!
//! # Known differences
//!
//! From Go Expr: absence is nil everywhere, as above; names in brackets need no quotes; only paths of the
//! whole document exist; comparisons do not chain (`1 < x < 3`); equality of different types is not refused beforehand; elements
//! beyond the end are nil; integers are compared with floats exactly, and go up to `u64`; `count` needs its predicate;
//! features that are not listed above are missing.
//!
//! From the crate `expr-lang`, which serves as the oracle of tests: besides the former, it refuses nil for `in` and the
//! operators on texts, its `contains` also searches lists and objects, its `?.` is nil for values without members, a
//! predicate that is not true counts as false, `a ?? b == c` is `a ?? (b == c)`, and names that begin with a keyword
//! (`notify`) are misread.
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
//! Values at or below `spec.pullSecret`, or a path given to [`Context::hiding`], or a member with a secret name, appear in no
//! explanation, except their type and their presence. The secrecy follows the value through lists, choices, functions and
//! predicates. The name of an adapter is not secret: the report of `pullsecret` is shown.
//!
//! # Invariants
//!
//! | invariant | test |
//! |---|---|
//! | No explanation contains a secret. | `tests/language/secrecy.rs` |
//! | Parsing, evaluation and explanation are bounded for any input. | `tests/language/bounds.rs`, `benches/fuzz.rs` |
//! | The language agrees with Expr where both have an answer. | `tests/language/oracle.rs` |
//! | Every expression of the specification has its specified answer. | `tests/language/specification.rs` |

mod context;
mod evaluate;
mod explanation;
mod finding;
mod lexer;
mod number;
mod parse_error;
mod parser;
mod pattern;
mod suggestion;
mod syntax;
mod text;
mod value;

use std::fmt;
use std::sync::Arc;

pub use context::{AdapterFacts, Context};
pub use explanation::{Explanation, Tree};
pub use finding::{Answer, Finding, Shown, Type};
pub use number::Number;
pub use parse_error::ParseError;

/// A parsed expression, which can be evaluated any number of times.
#[derive(Debug, Clone)]
pub struct Precondition {
    source: Arc<str>,
    expression: Arc<syntax::Expr>,
}

/// Result of an evaluation.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The outcome.
    pub outcome: Outcome,
    /// The explanation, whose text is for people.
    pub explanation: Explanation,
}

/// The outcome of a precondition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is true.
    Met,
    /// It is false.
    NotMet,
    /// Neither: a value in the document has a type that the expression cannot use.
    Unanswerable,
}

// === impl Precondition ===

impl Precondition {
    /// Parses an expression. The error names the problem and its position.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        match parser::parse(source) {
            Ok(expression) => Ok(Self { source: source.into(), expression: Arc::new(expression) }),
            Err(error) => Err(error.within(source)),
        }
    }

    /// Evaluates the expression in a context. Never fails: an expression without an answer is `Unanswerable`.
    pub fn evaluate(&self, context: &Context<'_>) -> Evaluation {
        let (truth, root) = evaluate::evaluate(&self.expression, context);
        let outcome = match truth {
            Some(true) => Outcome::Met,
            Some(false) => Outcome::NotMet,
            None => Outcome::Unanswerable,
        };
        Evaluation { outcome, explanation: Explanation { source: Arc::clone(&self.source), root } }
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
