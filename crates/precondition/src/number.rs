//! Numbers that compare exactly, integers and floats alike.

use std::cmp::Ordering;
use std::fmt;

/// A number of a document or of an expression.
///
/// Integers are compared as integers and with fractions without rounding: 2^53 + 1 is not 2^53, and is more than the
/// float 2^53.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// Wide enough for all of `i64` and `u64`.
    Integer(i128),
    /// Finite, as JSON and literals are.
    Float(f64),
}

/// 2^64, above every integer that `serde_json` returns as one.
const U64_RANGE: f64 = 18_446_744_073_709_551_616.0;

// === impl Number ===

impl Number {
    pub(crate) fn of(number: &serde_json::Number) -> Self {
        if let Some(integer) = number.as_i64() {
            return Self::Integer(integer.into());
        }
        if let Some(integer) = number.as_u64() {
            return Self::Integer(integer.into());
        }
        Self::Float(number.as_f64().unwrap_or(f64::MAX))
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Integer(integer) => Self::Integer(-integer),
            Self::Float(float) => Self::Float(-float),
        }
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
            (Self::Integer(left), Self::Float(right)) => mixed(left, right),
            (Self::Float(left), Self::Integer(right)) => mixed(right, left).reverse(),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other) == Ordering::Equal
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(formatter, "{integer}"),
            // The short form: `{}` would write 1e300 with all its zeros.
            Self::Float(float) => write!(formatter, "{float:?}"),
        }
    }
}

/// Integers are within (-2^65, 2^65), so where the float is beyond them its sign decides; else its whole part is exact.
fn mixed(integer: i128, float: f64) -> Ordering {
    if float >= U64_RANGE * 2.0 {
        return Ordering::Less;
    }
    if float <= -U64_RANGE * 2.0 {
        return Ordering::Greater;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the whole part, which fits: it was just bounded")]
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_fractions_compare_without_rounding() {
        let cases = [
            (Number::Integer(9_007_199_254_740_993), Number::Float(9_007_199_254_740_992.0), Ordering::Greater),
            (Number::Integer(9_007_199_254_740_993), Number::Integer(9_007_199_254_740_992), Ordering::Greater),
            (Number::Integer(u64::MAX.into()), Number::Float(U64_RANGE), Ordering::Less),
            (Number::Integer(i64::MIN.into()), Number::Float(-9_223_372_036_854_775_808.0), Ordering::Equal),
            (Number::Integer(-1), Number::Float(-1.5), Ordering::Greater),
            (Number::Integer(1), Number::Float(1.5), Ordering::Less),
            (Number::Integer(0), Number::Float(-0.0), Ordering::Equal),
            (Number::Integer(7), Number::Float(f64::MAX), Ordering::Less),
            (Number::Integer(7), Number::Float(f64::MIN), Ordering::Greater),
        ];
        for (left, right, expected) in cases {
            assert_eq!(left.compare(right), expected, "{left} and {right}");
            assert_eq!(right.compare(left), expected.reverse(), "{right} and {left}");
        }
    }
}
