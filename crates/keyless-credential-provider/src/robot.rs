//! Names of robots.

use std::fmt;
use std::str::FromStr;

/// The longest name of an organization or of a robot in bytes (Quay's limit).
const LONGEST_PART: usize = 255;

/// A robot at Quay with its organization: `ORGANIZATION+ROBOT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robot(String);

/// A text that is no [`Robot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be ORGANIZATION+ROBOT, each of a-z, 0-9, '.', '_' and '-'")]
pub struct InvalidRobot;

// === impl Robot ===

impl Robot {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Robot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Robot {
    type Err = InvalidRobot;

    fn from_str(text: &str) -> Result<Self, InvalidRobot> {
        let (organization, robot) = text.split_once('+').ok_or(InvalidRobot)?;
        let fits = is_part(organization) && is_part(robot);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidRobot)
    }
}

fn is_part(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    (1..=LONGEST_PART).contains(&part.len()) && part.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("hyperfleet+hf-pull", true)]
    #[case("a+b", true)]
    #[case("my.org_1+robot-2", true)]
    #[case("hyperfleet", false)]
    #[case("+robot", false)]
    #[case("org+", false)]
    #[case("org+a+b", false)]
    #[case("org+a:b", false)]
    #[case("Org+a", false)]
    #[case("org+a b", false)]
    #[case("org+a\r\nX: y", false)]
    #[case("", false)]
    fn names_of_robots(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(text.parse::<Robot>().is_ok(), fits);
    }

    #[test]
    fn a_part_has_an_end() {
        let robot = |length: usize| format!("org+{}", "a".repeat(length)).parse::<Robot>();
        assert!(robot(LONGEST_PART).is_ok() && robot(LONGEST_PART + 1).is_err());
    }
}
