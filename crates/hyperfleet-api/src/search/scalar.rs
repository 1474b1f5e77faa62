//! The values that are compared: those of resources and those in searches.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::mem::discriminant;
use std::ops::Range;

use database::Value;
use serde_json::Value as Json;

/// One value. Texts sort by their bytes, as in both databases.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Scalar<'a> {
    Text(Cow<'a, str>),
    /// A number of a column, or a time in microseconds since 1970.
    Number(i64),
    /// A number of a spec: a 64-bit float, as in JSON.
    Real(f64),
    /// A boolean of a spec.
    Bool(bool),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Every spelling of a comparison.
const SPELLINGS: &[(&str, Comparison)] = &[
    ("=", Comparison::Equal),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<>", Comparison::NotEqual),
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
];

// === impl Scalar ===

impl<'a> Scalar<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Objects and arrays are never compared, and null is no value.
    pub(super) fn of_json(value: &'a Json) -> Option<Self> {
        match value {
            Json::String(text) => Some(Self::text(text)),
            Json::Number(number) => number.as_f64().map(Self::Real),
            Json::Bool(value) => Some(Self::Bool(*value)),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// The text of a JSON value, which comparisons with a text see; `None` for objects, arrays, and numbers that the
    /// databases write in different ways.
    pub(super) fn text_of_json(value: &'a Json) -> Option<Self> {
        match value {
            Json::String(text) => Some(Self::text(text)),
            Json::Bool(value) => Some(Self::Text(value.to_string().into())),
            Json::Number(number) if number.as_f64().is_some_and(is_plain) => {
                Some(Self::Text(number.to_string().into()))
            }
            Json::Number(_) | Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// Compares two values; `None` if their types differ.
    pub(super) fn compare(&self, other: &Scalar<'_>) -> Option<Ordering> {
        if discriminant(self) == discriminant(other) { self.partial_cmp(other) } else { None }
    }

    pub(super) fn parameter(&self) -> Value {
        match self {
            Self::Text(text) => Value::Text(text.clone().into_owned()),
            Self::Number(number) => Value::Number(*number),
            Self::Real(real) => Value::Real(*real),
            Self::Bool(value) => Value::Text(value.to_string()),
        }
    }
}

/// The size of numbers that are written as digits with a point at most, never with an exponent.
pub(super) const PLAIN: Range<f64> = 1e-5..1e16;

/// True if the number's text is the same in both databases and in memory.
pub(super) fn is_plain(number: f64) -> bool {
    number == 0.0 || PLAIN.contains(&number.abs())
}

// === impl Comparison ===

impl Comparison {
    pub(super) fn parse(symbol: &str) -> Option<Self> {
        SPELLINGS.iter().find(|(spelling, _)| *spelling == symbol).map(|(_, comparison)| *comparison)
    }

    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// The comparison with its sides exchanged.
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    pub(super) fn negated_if(self, negated: bool) -> Self {
        match self {
            _ if !negated => self,
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    pub(super) fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}
