//! Identities: which cluster, and which edition of what its owner asked for.

use std::fmt;
use std::str::FromStr;

/// A text that is not the identity it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// See [`ClusterId`].
    #[error("must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a letter or digit")]
    ClusterId,
    /// See [`Generation`].
    #[error("must be a whole number from 1 to 9223372036854775807")]
    Generation,
}

/// The identity of a hosted cluster, such as `cls-abc123` or a UUID: a DNS-1123 label, so that it fits unchanged
/// into every name and label made from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(String);

/// The edition of a cluster's specification: counts up from 1, and a higher one is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(u64);

// === impl ClusterId ===

impl ClusterId {
    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        is_dns_label(text).then(|| Self(text.to_owned())).ok_or(InvalidId::ClusterId)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl Generation ===

impl Generation {
    /// The generation with this number; `None` for 0 and beyond what HyperFleet's signed 64-bit field holds.
    pub fn new(number: u64) -> Option<Self> {
        (1..=i64::MAX.unsigned_abs()).contains(&number).then_some(Self(number))
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

/// Whether `text` is a DNS-1123 label: the rule for names of namespaces and for our cluster ids.
pub fn is_dns_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether `text` is a DNS-1123 subdomain (labels joined by dots, at most 253 characters): the rule for names of most
/// Kubernetes objects.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("cls-abc123", true)]
    #[case("01890a5d-ac96-774b-bcce-b302099a8057", true)]
    #[case("7", true)]
    #[case("", false)]
    #[case("Cls", false)]
    #[case("-cls", false)]
    #[case("cls-", false)]
    #[case("cls_1", false)]
    #[case("cls.1", false)]
    #[case("clé", false)]
    fn cluster_ids(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(text.parse::<ClusterId>().is_ok(), valid);
    }

    #[test]
    fn a_cluster_id_has_at_most_63_characters() {
        assert!("a".repeat(63).parse::<ClusterId>().is_ok());
        assert!("a".repeat(64).parse::<ClusterId>().is_err());
    }

    #[rstest]
    #[case("1", true)]
    #[case("9223372036854775807", true)]
    #[case("9223372036854775808", false)]
    #[case("0", false)]
    #[case("-1", false)]
    #[case("+1", false)]
    #[case("1.5", false)]
    #[case("", false)]
    fn generations(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(text.parse::<Generation>().is_ok(), valid);
    }

    #[test]
    fn newer_generations_are_greater() {
        assert!(Generation::new(10) > Generation::new(9));
    }
}
