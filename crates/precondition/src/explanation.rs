//! Why an answer is what it is.

mod words;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::number::Number;
use crate::syntax::Quantifier;

/// Every part of an expression with what was found for it.
///
/// Its text is for a person: one line for each part that is to blame. [`Explanation::tree`] has all parts.
#[derive(Debug, Clone)]
pub struct Explanation {
    pub(crate) source: Arc<str>,
    pub(crate) root: Finding,
}

/// What was found for one part of the expression.
#[derive(Debug, Clone)]
pub struct Finding {
    pub(crate) span: Range<usize>,
    pub(crate) answer: Answer,
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Vec<Self>,
    pub(crate) role: Role,
    /// Of a predicate: the element it was asked about, counted from zero.
    pub(crate) element: Option<usize>,
}

/// The answer of one part.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Another part had decided already.
    NotLookedAt,
    /// It has this value.
    Is(Shown),
    /// It has no value, for this reason.
    Unanswerable(String),
    /// It has no value because one of its parts has none.
    PartUnanswerable,
}

/// A value as far as it may be shown: texts and lists are shortened, secrets are only said to be there.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// Absent, or null.
    Nil,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text in quotes, shortened.
    Text(String),
    /// A list in brackets, shortened.
    List(String),
    /// An object with so many members.
    Object(usize),
    /// Something of this type that must not be shown.
    Hidden(Type),
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Absent, or null.
    Nil,
    /// True or false.
    Bool,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A list.
    List,
    /// An object.
    Object,
}

/// How a part makes its answer of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Literal,
    Value,
    Not,
    And,
    Or,
    Choice,
    Test,
    Each { quantifier: Quantifier, length: usize },
}

/// All parts of an explanation, one a line, indented.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'e>(&'e Explanation);

// === impl Explanation ===

impl Explanation {
    /// The finding for the whole expression.
    pub fn root(&self) -> &Finding {
        &self.root
    }

    /// One sentence for each part that is to blame.
    pub fn lines(&self) -> Vec<String> {
        words::lines(self)
    }

    /// Every part with its answer, for those who want to see all of it.
    pub fn tree(&self) -> Tree<'_> {
        Tree(self)
    }

    /// The text of a finding's part of the expression.
    pub fn source_of(&self, finding: &Finding) -> &str {
        self.source.get(finding.span.clone()).unwrap_or_default()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines().join("\n"))
    }
}

// === impl Finding ===

impl Finding {
    /// Where the part stands in the source, in bytes.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What it has come to.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// What to know about the value: why it is nil, how old it is.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its parts, in the order of the source. A predicate is here once for each element that mattered, and for no more
    /// than three others.
    pub fn parts(&self) -> &[Self] {
        &self.parts
    }

    /// Of a predicate: the element it was asked about, counted from zero.
    pub fn element(&self) -> Option<usize> {
        self.element
    }

    pub(crate) fn is(&self, wanted: bool) -> bool {
        self.answer == Answer::Is(Shown::Bool(wanted))
    }
}

// === impl Answer ===

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLookedAt => formatter.write_str("not looked at"),
            Self::Is(shown) => shown.fmt(formatter),
            Self::Unanswerable(reason) => write!(formatter, "cannot be answered: {reason}"),
            Self::PartUnanswerable => formatter.write_str("cannot be answered"),
        }
    }
}

// === impl Shown ===

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => formatter.write_str("nil"),
            Self::Bool(value) => value.fmt(formatter),
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) | Self::List(text) => formatter.write_str(text),
            Self::Object(1) => formatter.write_str("an object with 1 member"),
            Self::Object(members) => write!(formatter, "an object with {members} members"),
            Self::Hidden(kind) => write!(formatter, "{kind} that is not shown"),
        }
    }
}

// === impl Type ===

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nil => "nil",
            Self::Bool => "a truth value",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

// === impl Tree ===

impl fmt::Display for Tree<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        words::tree(self.0, formatter)
    }
}
