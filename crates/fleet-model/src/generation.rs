//! Generations: the revision number of a resource's desired state.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::InvalidId;

/// The revision number of a resource's desired state: counts up from 1, and a higher number is newer.
///
/// In JSON it is a number. [`Generation::NONE`] stands for "no generation observed yet", as a Kubernetes
/// `observedGeneration` of 0 does, and is older than every other generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Generation(u64);

impl Generation {
    /// No generation: what an absent or zero `observed_generation` is read as.
    pub const NONE: Self = Self(0);
    /// The generation of a new resource.
    pub const FIRST: Self = Self(1);

    /// Returns the generation with this number; `None` for 0 and for numbers beyond HyperFleet's signed 64-bit field.
    pub fn new(number: u64) -> Option<Self> {
        (1..=i64::MAX.unsigned_abs()).contains(&number).then_some(Self(number))
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the generation that follows; the last one follows itself.
    #[must_use]
    pub fn next(self) -> Self {
        Self::new(self.0.saturating_add(1)).unwrap_or(self)
    }

    /// Returns true for [`Generation::NONE`].
    pub const fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// Returns the generation, or `None` for [`Generation::NONE`].
    pub fn known(self) -> Option<Self> {
        (!self.is_none()).then_some(self)
    }
}

impl FromStr for Generation {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits_only);
        number.and_then(Self::new).ok_or(InvalidId::Generation)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl From<u32> for Generation {
    /// 0 is [`Generation::NONE`].
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

impl TryFrom<i64> for Generation {
    type Error = InvalidId;

    /// Accepts what a database or a document may hold: 0 is [`Generation::NONE`], negative numbers are refused.
    fn try_from(number: i64) -> Result<Self, InvalidId> {
        u64::try_from(number).map(Self).map_err(|_negative| InvalidId::Generation)
    }
}

impl From<Generation> for i64 {
    fn from(generation: Generation) -> Self {
        Self::try_from(generation.0).unwrap_or(Self::MAX)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1", true)]
    #[case("9223372036854775807", true)]
    #[case("9223372036854775808", false)]
    #[case("0", false)]
    #[case("-1", false)]
    #[case("+1", false)]
    #[case("1.5", false)]
    #[case("", false)]
    fn generations_in_text(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(text.parse::<Generation>().is_ok(), valid);
    }

    #[rstest]
    #[case("1", Some(1))]
    #[case("9223372036854775807", Some(i64::MAX))]
    #[case("0", Some(0))]
    #[case("-1", None)]
    #[case("1.5", None)]
    #[case("\"1\"", None)]
    #[case("9223372036854775808", None)]
    fn generations_in_json(#[case] json: &str, #[case] expected: Option<i64>) {
        let read = serde_json::from_str::<Generation>(json).ok();
        assert_eq!(read.map(i64::from), expected);
        assert_eq!(
            read.map(|generation| serde_json::to_string(&generation).unwrap()),
            expected.map(|_| json.to_owned())
        );
    }

    #[test]
    fn newer_generations_are_greater() {
        assert!(Generation::new(10) > Generation::new(9));
        assert!(Generation::NONE < Generation::FIRST);
        assert_eq!(Generation::FIRST.next(), Generation::from(2));
    }

    #[test]
    fn none_is_not_known() {
        assert_eq!(Generation::NONE.known(), None);
        assert_eq!(Generation::FIRST.known(), Some(Generation::FIRST));
    }
}
