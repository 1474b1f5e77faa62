//! Ids of AMS.

use std::fmt;
use std::str::FromStr;

/// Characters of a KSUID.
const KSUID_LENGTH: usize = 27;
/// The longest id of a registry in bytes.
const LONGEST_REGISTRY: usize = 255;

/// The id of a row: a KSUID. Ids sort by the time of creation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ksuid(String);

/// The id of a registry, such as `Quay_quay.io`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryId(String);

/// A text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// See [`Ksuid`].
    #[error("must be 27 letters and digits")]
    Ksuid,
    /// See [`RegistryId`].
    #[error("must be 1 to 255 characters of letters, digits, '.', '_' and '-'")]
    Registry,
}

// === impl Ksuid ===

impl Ksuid {
    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Ksuid {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let fits = text.len() == KSUID_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| Self(text.to_owned())).ok_or(InvalidId::Ksuid)
    }
}

impl fmt::Display for Ksuid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl RegistryId ===

impl RegistryId {
    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RegistryId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits = (1..=LONGEST_REGISTRY).contains(&text.len()) && text.bytes().all(is_part);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidId::Registry)
    }
}

impl fmt::Display for RegistryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("2bJ3Yx8ZtSdk6kWqYmX0h1cQv9A", true)]
    #[case("2bJ3Yx8ZtSdk6kWqYmX0h1cQv9", false)]
    #[case("2bJ3Yx8ZtSdk6kWqYmX0h1cQv9'", false)]
    #[case("", false)]
    fn only_a_ksuid_goes_into_a_search(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(text.parse::<Ksuid>().is_ok(), fits);
    }

    #[rstest]
    #[case("Quay_quay.io", true)]
    #[case("a' or 'a' = 'a", false)]
    #[case("a/b", false)]
    #[case("", false)]
    fn only_a_plain_id_of_a_registry_does(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(text.parse::<RegistryId>().is_ok(), fits);
    }
}
