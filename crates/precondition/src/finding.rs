//! The finding for one part of an expression: its answer, its parts, and the notes about its value.

use std::fmt;
use std::ops::Range;

use crate::number::Number;
use crate::syntax::Quantifier;

/// The finding for one part of an expression.
#[derive(Debug, Clone)]
pub struct Finding {
    pub(crate) span: Range<usize>,
    pub(crate) answer: Answer,
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Vec<Self>,
    pub(crate) role: Role,
    /// The index of the element that a predicate was evaluated for.
    pub(crate) element: Option<usize>,
}

/// The answer of one part.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Another part had decided already, so it was not evaluated.
    NotEvaluated,
    /// It has this value.
    Is(Shown),
    /// It has no value, for this reason.
    Unanswerable(String),
    /// It has no value because one of its parts has none.
    PartUnanswerable,
}

/// A value in a form that is safe to print: texts and lists are shortened, secrets are reduced to their type.
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
    /// An object with this number of members.
    Object(usize),
    /// A secret of this type.
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

/// The way in which a part derives its answer from its parts.
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

// === impl Finding ===

impl Finding {
    /// The byte range of the part in the source.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The answer.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Notes about the value, such as the reason why it is nil, or its age.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The parts, in the order of the source. A predicate occurs once for each decisive element, and for at most three others.
    pub fn parts(&self) -> &[Self] {
        &self.parts
    }

    /// The index of the element that a predicate was evaluated for.
    pub fn element(&self) -> Option<usize> {
        self.element
    }

    pub(crate) fn source_in<'s>(&self, source: &'s str) -> &'s str {
        source.get(self.span.clone()).unwrap_or_default()
    }

    pub(crate) fn is(&self, truth: bool) -> bool {
        self.answer == Answer::Is(Shown::Bool(truth))
    }
}

// === impl Answer ===

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEvaluated => formatter.write_str("not evaluated"),
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

impl Shown {
    /// Returns true for exactly the text of a condition's status.
    pub(crate) fn is_status(&self) -> bool {
        matches!(self, Self::Text(text) if matches!(text.as_str(), "\"True\"" | "\"False\"" | "\"true\"" | "\"false\""))
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
