//! Names of projects, locations, secrets and versions.

use std::fmt;
use std::str::FromStr;

/// A text that is no valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// See [`ProjectId`].
    #[error(
        "must be 6 to 30 characters of a-z, 0-9 and '-', beginning with a letter and not ending with '-' \
         (an organisation's domain and ':' may stand before it)"
    )]
    Project,
    /// See [`Location`].
    #[error("must be a location such as `europe-west1`")]
    Location,
    /// See [`SecretId`].
    #[error("must be 1 to 255 characters of A-Z, a-z, 0-9, '_' and '-'")]
    Secret,
    /// See [`StorePath`].
    #[error("must be parts of A-Z, a-z, 0-9, '.', '_' and '-' with '/' between them")]
    Path,
}

/// The project of a cloud provider that contains secrets, such as `redhat-prod-12345`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProjectId(String);

/// A cloud's location, such as `europe-west1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location(String);

/// The name of a secret within its store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretId(String);

/// A folder of secrets, or a namespace or mount at OpenBao or Vault, without slashes at its ends. It goes into addresses, so no
/// part is empty or relative.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorePath(String);

/// The number of a version within its secret: the first is 1, each later one is one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionNumber(u64);

// === impl ProjectId ===

impl FromStr for ProjectId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (domain, id) = text.rsplit_once(':').map_or((None, text), |(domain, id)| (Some(domain), id));
        let domain_fits = domain.is_none_or(|domain| {
            !domain.is_empty() && domain.bytes().all(|byte| is_lower_alphanumeric(byte) || b".-".contains(&byte))
        });
        let fits = (6..=30).contains(&id.len())
            && id.starts_with(|first: char| first.is_ascii_lowercase())
            && id.bytes().all(|byte| is_lower_alphanumeric(byte) || byte == b'-')
            && !id.ends_with('-');
        (fits && domain_fits).then(|| Self(text.to_owned())).ok_or(InvalidName::Project)
    }
}

// === impl Location ===

impl FromStr for Location {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fits = (2..=40).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(|byte| is_lower_alphanumeric(byte) || byte == b'-');
        fits.then(|| Self(text.to_owned())).ok_or(InvalidName::Location)
    }
}

// === impl SecretId ===

impl FromStr for SecretId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fits = (1..=255).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        fits.then(|| Self(text.to_owned())).ok_or(InvalidName::Secret)
    }
}

// === impl StorePath ===

impl StorePath {
    /// Length of the longest one.
    const LONGEST: usize = 200;
}

impl FromStr for StorePath {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
                && part.bytes().any(|byte| byte != b'.')
        };
        let path = text.trim_matches('/');
        let fits = path.len() <= Self::LONGEST && path.split('/').all(is_part);
        fits.then(|| Self(path.to_owned())).ok_or(InvalidName::Path)
    }
}

// === impl VersionNumber ===

impl VersionNumber {
    /// The number of a secret's first version.
    pub const FIRST: Self = Self(1);

    /// Returns the version with this number; `None` for 0.
    pub fn new(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// Returns the number as an integer.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of the next version.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the number of the version before.
    pub fn previous(self) -> Option<Self> {
        Self::new(self.0 - 1)
    }
}

impl FromStr for VersionNumber {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        text.parse().ok().and_then(Self::new).ok_or(InvalidName::Secret)
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Implements `as_str` and `Display` of a name.
macro_rules! text {
    ($($name:ident)+) => {$(
        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )+};
}
text!(ProjectId Location SecretId StorePath);

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("redhat-prod-12345", true)]
    #[case("example.com:my-project", true)]
    #[case("abcdef", true)]
    #[case("abcde", false)]
    #[case("1project", false)]
    #[case("project-", false)]
    #[case("Project-1", false)]
    #[case("project_1", false)]
    #[case(":my-project", false)]
    #[case("a23456789-123456789-123456789-1", false)]
    #[case("projects/other-project", false)]
    fn project_ids(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(text.parse::<ProjectId>().is_ok(), valid);
    }

    #[rstest]
    #[case("hyperfleet-cls-123-pull-secret", true)]
    #[case("A_b-9", true)]
    #[case("", false)]
    #[case("a.b", false)]
    #[case("a/versions/1", false)]
    #[case("sécret", false)]
    fn secret_ids(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(text.parse::<SecretId>().is_ok(), valid);
    }

    #[rstest]
    #[case("pull-secrets", Some("pull-secrets"))]
    #[case("/tenants/acme_1/v1.0/", Some("tenants/acme_1/v1.0"))]
    #[case("", None)]
    #[case("/", None)]
    #[case("a//b", None)]
    #[case("a/../b", None)]
    #[case(".", None)]
    #[case("a b", None)]
    #[case("a?b", None)]
    #[case("a%2fb", None)]
    fn store_paths(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(text.parse::<StorePath>().ok().as_ref().map(StorePath::as_str), expected);
        assert_eq!("a".repeat(201).parse::<StorePath>(), Err(InvalidName::Path));
    }

    #[test]
    fn a_secret_id_has_at_most_255_characters() {
        assert!("a".repeat(255).parse::<SecretId>().is_ok());
        assert!("a".repeat(256).parse::<SecretId>().is_err());
    }
}
