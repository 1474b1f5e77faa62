//! The syntax tree of an expression.

use std::ops::Range;

use regex::Regex;

use crate::number::Number;

/// A part of an expression, and its byte range in the source.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) kind: Kind,
    pub(crate) span: Range<usize>,
}

/// Chains of one operator are one node: the depth of a tree is the depth of its parentheses, not its length.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Nil,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Expr>),
    Root(Root),
    /// `#`, the element that a predicate is evaluated for.
    Element,
    Access {
        base: Box<Expr>,
        steps: Vec<Step>,
    },
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Coalesce(Vec<Expr>),
    Test(Box<Test>),
    Choice(Box<Choice>),
    Length(Box<Expr>),
    Each(Box<Each>),
}

/// The root of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Root {
    Spec,
    Status,
    Metadata,
    Event,
    /// Any other member of the whole document: `cluster.name`.
    Other(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) key: Key,
}

#[derive(Debug, Clone)]
pub(crate) enum Key {
    Name(String),
    Computed(Expr),
}

#[derive(Debug, Clone)]
pub(crate) struct Test {
    pub(crate) operator: Operator,
    /// `not in`, `not contains` and so on.
    pub(crate) negated: bool,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
    /// The right side of `matches`, if it is a literal.
    pub(crate) pattern: Option<Regex>,
}

#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) condition: Expr,
    pub(crate) then: Expr,
    pub(crate) otherwise: Expr,
}

#[derive(Debug, Clone)]
pub(crate) struct Each {
    pub(crate) quantifier: Quantifier,
    pub(crate) list: Expr,
    pub(crate) predicate: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Any,
    All,
    None,
    Filter,
    Count,
}

// === impl Root ===

impl Root {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Spec => "spec",
            Self::Status => "status",
            Self::Metadata => "metadata",
            Self::Event => "event",
            Self::Other(name) => name,
        }
    }

    /// The root for `cluster.NAME`.
    pub(crate) fn of_document(name: String) -> Self {
        match name.as_str() {
            "spec" => Self::Spec,
            "status" => Self::Status,
            "metadata" => Self::Metadata,
            _ => Self::Other(name),
        }
    }
}

// === impl Operator ===

impl Operator {
    /// The operator of a symbol or a keyword.
    pub(crate) fn of(text: &str) -> Option<Self> {
        Some(match text {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "in" => Self::In,
            "matches" => Self::Matches,
            "contains" => Self::Contains,
            "startsWith" => Self::StartsWith,
            "endsWith" => Self::EndsWith,
            _ => return None,
        })
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Matches => "matches",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
        }
    }

    /// Returns true for operators that compare by order.
    pub(crate) fn orders(self) -> bool {
        matches!(self, Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual)
    }

    /// Returns true for keywords, which may follow `not`.
    pub(crate) fn is_word(self) -> bool {
        matches!(self, Self::In | Self::Matches | Self::Contains | Self::StartsWith | Self::EndsWith)
    }
}

// === impl Quantifier ===

impl Quantifier {
    pub(crate) fn of(text: &str) -> Option<Self> {
        Some(match text {
            "any" => Self::Any,
            "all" => Self::All,
            "none" => Self::None,
            "filter" => Self::Filter,
            "count" => Self::Count,
            _ => return None,
        })
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
            Self::None => "none",
            Self::Filter => "filter",
            Self::Count => "count",
        }
    }
}
