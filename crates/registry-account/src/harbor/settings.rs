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

/// Project and identity at Harbor, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct HarborSettings {
    /// Address of Harbor, such as `https://harbor.example.com`.
    pub address: EndpointUrl,
    /// Host of images, if it is another one than the address's: the key in `auths`.
    pub host: Option<String>,
    /// The project that the robots belong to.
    pub project: ProjectName,
    /// The beginning of the names of Harbor's robots.
    pub robot_prefix: RobotPrefix,
    /// The identity: a user who administers the project, or a robot.
    pub username: Username,
    /// The identity's password.
    pub password: IdentitySecret,
    /// Life of the tokens that Harbor's token service issues: Harbor's setting `token_expiration`.
    pub token_life: Duration,
    /// File with the certificate authorities of Harbor, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a call of this crate, all its requests included.
    pub call_timeout: Duration,
    /// Calls that Harbor allows in a minute.
    pub calls_per_minute: u32,
    /// Record of each request, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// A text that is no name at Harbor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHarborName {
    /// See [`ProjectName`].
    #[error("must be 1 to 200 characters of a-z and 0-9, with single '.', '_' or '-' between them")]
    Project,
    /// See [`RobotPrefix`].
    #[error("must be 1 to 32 visible characters of ASCII without ':' and '+'")]
    Prefix,
    /// See [`Username`].
    #[error("must be 1 to 255 visible characters of ASCII without ':'")]
    Username,
}

/// The name of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName(String);

/// The beginning of the names of robots, Harbor's setting `robot_name_prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotPrefix(String);

/// The name of a user, or the whole name of a robot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username(String);

// === impl HarborSettings ===

impl HarborSettings {
    /// Returns the key in `auths`: the host of images, or that of the address with its port.
    pub fn host(&self) -> &str {
        host_of_images(&self.address, self.host.as_ref())
    }
}

// === impl ProjectName ===

impl ProjectName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProjectName {
    type Err = InvalidHarborName;

    fn from_str(text: &str) -> Result<Self, InvalidHarborName> {
        let fits = text.len() <= 200 && is_separated(text);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidHarborName::Project)
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl RobotPrefix ===

impl Default for RobotPrefix {
    fn default() -> Self {
        Self("robot$".to_owned())
    }
}

impl FromStr for RobotPrefix {
    type Err = InvalidHarborName;

    fn from_str(text: &str) -> Result<Self, InvalidHarborName> {
        let fits = is_visible(text, 32) && !text.contains([':', '+']);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidHarborName::Prefix)
    }
}

impl fmt::Display for RobotPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl Username ===

impl Username {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Username {
    type Err = InvalidHarborName;

    fn from_str(text: &str) -> Result<Self, InvalidHarborName> {
        let fits = is_visible(text, 255) && !text.contains(':');
        fits.then(|| Self(text.to_owned())).ok_or(InvalidHarborName::Username)
    }
}

fn is_visible(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("fleet", true, true, true)]
    #[case("f", true, true, true)]
    #[case("robot$", false, true, true)]
    #[case("robot$fleet+puller", false, false, true)]
    #[case("a__b", false, true, true)]
    #[case("a/b?c", false, true, true)]
    #[case("a:b", false, false, false)]
    #[case("a b", false, false, false)]
    #[case("é", false, false, false)]
    #[case("", false, false, false)]
    #[case(&"a".repeat(33), true, false, true)]
    #[case(&"a".repeat(201), false, false, true)]
    #[case(&"a".repeat(256), false, false, false)]
    fn names_can_be_sent(#[case] text: &str, #[case] project: bool, #[case] prefix: bool, #[case] username: bool) {
        let found = (
            text.parse::<ProjectName>().is_ok(),
            text.parse::<RobotPrefix>().is_ok(),
            text.parse::<Username>().is_ok(),
        );
        assert_eq!(found, (project, prefix, username));
    }
}
