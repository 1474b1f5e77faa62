//! Settings of the client.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use daemon::calls::CallLog;
use daemon::endpoint::EndpointUrl;

use crate::client::host_of_images;
use crate::identity::IdentitySecret;
use crate::name::is_separated;

/// Organization, team and identity at Quay, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct QuaySettings {
    /// Address of Quay, such as `https://quay.io`.
    pub address: EndpointUrl,
    /// Host of images, if it is another one than the address's: the key in `auths`.
    pub host: Option<String>,
    /// The organization that the robots belong to.
    pub organization: OrganizationName,
    /// The team that may pull, of which each permitted robot is a member.
    pub team: TeamName,
    /// The identity: the access token of an OAuth application with the scope `org:admin`.
    pub token: IdentitySecret,
    /// File with the certificate authorities of Quay, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a call of this crate, all its requests included.
    pub call_timeout: Duration,
    /// Calls that Quay allows in a minute.
    pub calls_per_minute: u32,
    /// Record of each request, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// A text that is no name of an organization or a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuayName {
    /// See [`OrganizationName`].
    #[error("must be 2 to 200 characters of a-z and 0-9, with single '.', '_' or '-' between them")]
    Organization,
    /// See [`TeamName`].
    #[error("must be 2 to 200 characters of a-z, 0-9, '_' and '-', beginning with a letter")]
    Team,
}

/// The name of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationName(String);

/// The name of a team of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamName(String);

// === impl QuaySettings ===

impl QuaySettings {
    /// Returns the key in `auths`: the host of images, or that of the address with its port.
    pub fn host(&self) -> &str {
        host_of_images(&self.address, self.host.as_ref())
    }
}

// === impl OrganizationName ===

impl OrganizationName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OrganizationName {
    type Err = InvalidQuayName;

    fn from_str(text: &str) -> Result<Self, InvalidQuayName> {
        let fits = (2..=200).contains(&text.len()) && is_separated(text);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidQuayName::Organization)
    }
}

impl fmt::Display for OrganizationName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl TeamName ===

impl TeamName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TeamName {
    type Err = InvalidQuayName;

    fn from_str(text: &str) -> Result<Self, InvalidQuayName> {
        let is_name = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "_-".contains(char);
        let fits = (2..=200).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.chars().all(is_name);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidQuayName::Team)
    }
}

impl fmt::Display for TeamName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("hyperfleet", true, true)]
    #[case("hyper-fleet_1", true, true)]
    #[case("hyper.fleet", true, false)]
    #[case("1fleet", true, false)]
    #[case("a__b", false, true)]
    #[case("a", false, false)]
    #[case("Fleet", false, false)]
    #[case("a/b", false, false)]
    #[case("a?b", false, false)]
    fn names_are_safe_in_addresses(#[case] name: &str, #[case] organization: bool, #[case] team: bool) {
        let found = (name.parse::<OrganizationName>().is_ok(), name.parse::<TeamName>().is_ok());
        assert_eq!(found, (organization, team));
    }
}
