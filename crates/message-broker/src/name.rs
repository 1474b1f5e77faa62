//! Names of topics and subscriptions that every broker accepts.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "rabbitmq")]
use fleet_model::names::message::DEAD_LETTER_SUFFIX;

/// The name of a topic or a subscription.
///
/// Google's rules, as they are the strictest: 3 to 255 characters, letters, digits and `-._~+%`, a letter first, and not
/// `goog`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Error for a text that is not a [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have 3 to 255 letters, digits or -._~+%, begin with a letter and not with goog")]
pub struct InvalidName;

/// A subscription of a topic. Consumers with the same id share its events; every id receives all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscription {
    /// The topic.
    pub topic: Name,
    /// Id of the subscription.
    pub id: Name,
}

// === impl Name ===

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a derived name; the caller ensures that it is valid.
    pub(crate) fn derived(text: String) -> Self {
        Self(text)
    }

    /// Returns true for the name of a dead-letter topic.
    #[cfg(feature = "rabbitmq")]
    pub(crate) fn is_of_dead_letters(&self) -> bool {
        self.0.ends_with(DEAD_LETTER_SUFFIX)
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fits = (3..=255).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|char| char.is_ascii_alphanumeric() || "-._~+%".contains(char))
            && !text.starts_with("goog");
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidName) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl Subscription ===

impl Subscription {
    /// Returns the subscription with that id of that topic.
    pub fn new(topic: &str, id: &str) -> Result<Self, InvalidName> {
        Ok(Self { topic: topic.parse()?, id: id.parse()? })
    }
}

impl fmt::Display for Subscription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.id, self.topic)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("hyperfleet-system-clusters", true)]
    #[case("abc", true)]
    #[case("ab", false)]
    #[case("", false)]
    #[case("1abc", false)]
    #[case("google", false)]
    #[case("a b c", false)]
    #[case("a/b/c", false)]
    fn names_are_those_that_every_broker_accepts(#[case] name: &str, #[case] accepted: bool) {
        assert_eq!(name.parse::<Name>().is_ok(), accepted);
    }
}
