//! Ids of clusters, and the rules for names in Kubernetes.

use std::fmt;
use std::str::FromStr;

/// Error for a text or number that is not a valid id or generation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// See [`ClusterId`].
    #[error("must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a letter or digit")]
    ClusterId,
    /// See [`Generation`](crate::Generation).
    #[error("must be a whole number from 1 to 9223372036854775807")]
    Generation,
    /// See [`Incarnation`].
    #[error("must be 1 to 64 printable ASCII characters without blanks, such as the cluster's creation time")]
    Incarnation,
}

/// The id of a hosted cluster, such as `cls-abc123` or a UUID: a DNS-1123 label, so that every name and label that is
/// derived from it can contain it unchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(String);

// === impl ClusterId ===

impl ClusterId {
    /// Returns the id as text.
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

/// Identifies one life of a cluster: the creation time that the API gives to a cluster. A cluster that was deleted and
/// created again with the same id has another incarnation. Incarnations are equal or not; they have no order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incarnation(String);

// === impl Incarnation ===

impl Incarnation {
    /// Returns the incarnation as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Incarnation {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let is_valid = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(text.to_owned())).ok_or(InvalidId::Incarnation)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns true if `text` is a DNS-1123 label: the rule for names of namespaces and for cluster ids.
pub fn is_dns_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

/// Returns true if `text` is a DNS-1123 subdomain (labels joined by dots, at most 253 characters): the rule for names
/// of most Kubernetes objects.
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

    #[rstest]
    #[case("2026-01-02T03:04:05.678Z", true)]
    #[case("01890a5d-ac96-774b-bcce-b302099a8057", true)]
    #[case("", false)]
    #[case("2026-01-02 03:04", false)]
    #[case("é", false)]
    fn incarnations(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(text.parse::<Incarnation>().is_ok(), valid);
    }

    #[test]
    fn a_cluster_id_has_at_most_63_characters() {
        assert!("a".repeat(63).parse::<ClusterId>().is_ok());
        assert!("a".repeat(64).parse::<ClusterId>().is_err());
    }
}
