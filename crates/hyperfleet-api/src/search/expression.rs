//! The expressions of a search, and their evaluation in memory.
//!
//! There is no negation of a whole expression: the parser moves it down to the tests (`not (a = 1 or b < 2)` becomes
//! `a != 1 and b >= 2`, which is the same in SQL's three-valued logic). SQL's `unknown` therefore needs no counterpart: a
//! test of an absent value is false, and so is its negation.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::field::Field;
use super::pattern::Pattern;
use super::scalar::{Comparison, Scalar};
use crate::resource::Resource;

#[derive(Clone, Debug)]
pub(super) enum Expression {
    All(Vec<Self>),
    Any(Vec<Self>),
    Test(Field, Test),
}

/// A test of one field.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Null {
        negated: bool,
    },
    Compare(Comparison, Scalar<'static>),
    /// All values have one type.
    In {
        negated: bool,
        values: Vec<Scalar<'static>>,
    },
    Like {
        negated: bool,
        pattern: Pattern,
    },
}

// === impl Expression ===

impl Expression {
    pub(super) fn matches(&self, resource: &Resource) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(resource)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(resource)),
            Self::Test(field, test) => field.passes(test, resource),
        }
    }
}

// === impl Field ===

impl Field {
    fn passes(&self, test: &Test, resource: &Resource) -> bool {
        let condition = |kind: &str| resource.condition(kind);
        match self {
            Self::Column(column) => test.holds((column.value)(resource)),
            Self::Label(key) => test.holds(resource.state.labels.get(key).map(|value| Scalar::text(value))),
            Self::Spec(path) => test.holds_for_json(find(&resource.spec, path)),
            Self::Status(kind) => test.holds(condition(kind).map(|found| Scalar::text(found.status.as_str()))),
            Self::Part(kind, part) => test.holds(condition(kind).and_then(part.value)),
        }
    }
}

/// The value at a path of the spec; `None` if it is absent or null.
fn find<'a>(spec: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = rest.iter().try_fold(spec.get(first)?, |value, segment| value.as_object()?.get(segment))?;
    (!value.is_null()).then_some(value)
}

// === impl Test ===

impl Test {
    fn holds(&self, value: Option<Scalar<'_>>) -> bool {
        match (self, value) {
            (Self::Null { negated }, value) => value.is_none() != *negated,
            (Self::Compare(comparison, expected), Some(value)) => {
                value.compare(expected).is_some_and(|ordering| comparison.accepts(ordering))
            }
            (Self::In { negated, values }, Some(value)) => {
                let mut found = values.iter().map(|expected| value.compare(expected));
                if *negated {
                    found.all(|ordering| ordering.is_some_and(Ordering::is_ne))
                } else {
                    found.any(|ordering| ordering.is_some_and(Ordering::is_eq))
                }
            }
            (Self::Like { negated, pattern }, Some(Scalar::Text(text))) => pattern.matches(&text) != *negated,
            (_, None) | (Self::Like { .. }, Some(_)) => false,
        }
    }

    /// A value of the type that the test compares with; `None` for patterns, which are for texts.
    pub(super) fn sample(&self) -> Option<&Scalar<'static>> {
        match self {
            Self::Compare(_, value) => Some(value),
            Self::In { values, .. } => values.first(),
            Self::Null { .. } | Self::Like { .. } => None,
        }
    }

    /// Tests a JSON value. Objects and arrays are not null, but no comparison with them is true.
    fn holds_for_json(&self, value: Option<&Value>) -> bool {
        if let Self::Null { negated } = self {
            return value.is_none() != *negated;
        }
        let is_text = matches!(self.sample(), None | Some(Scalar::Text(_)));
        self.holds(value.and_then(if is_text { Scalar::text_of_json } else { Scalar::of_json }))
    }
}
