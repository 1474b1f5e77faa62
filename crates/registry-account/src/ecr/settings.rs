//! Settings of the client.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use daemon::calls::CallLog;
use daemon::endpoint::EndpointUrl;

use crate::client::host_of_images;

/// The longest ARN of a role: 64 characters of a name, 512 of a path, and what precedes them.
const LONGEST_ROLE: usize = 640;

/// Registry, region and role at AWS, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct EcrSettings {
    /// Address of the registry, such as `https://123456789012.dkr.ecr.eu-central-1.amazonaws.com`.
    pub address: EndpointUrl,
    /// Host of images, if it is another one than the address's: the key in `auths`.
    pub host: Option<String>,
    /// The registry's region, which is also that of signatures.
    pub region: Region,
    /// The role whose tokens are minted. It may read images, and nothing else.
    pub role: RoleArn,
    /// Address of the ECR API: see [`Region::token_address`].
    pub token_address: EndpointUrl,
    /// File with the certificate authorities of both, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a call of this crate, all its requests included.
    pub call_timeout: Duration,
    /// Calls that are made in a minute at most.
    pub calls_per_minute: u32,
    /// Record of each request, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// A region, such as `eu-central-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region(String);

/// A text that is no region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a region, such as eu-central-1")]
pub struct InvalidRegion;

/// The ARN of a role, such as `arn:aws:iam::123456789012:role/puller`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleArn(String);

/// A text that is no ARN of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the ARN of a role, such as arn:aws:iam::123456789012:role/puller")]
pub struct InvalidRole;

// === impl EcrSettings ===

impl EcrSettings {
    /// Returns the key in `auths`: the host of images, or that of the address with its port.
    pub fn host(&self) -> &str {
        host_of_images(&self.address, self.host.as_ref())
    }
}

// === impl Region ===

impl Region {
    /// Returns the address of the ECR API in the region; `None` in AWS's isolated and sovereign partitions, which have domains of their
    /// own.
    pub fn token_address(&self) -> Option<String> {
        if ["eu-iso", "eusc-", "us-iso"].iter().any(|partition| self.0.starts_with(partition)) {
            return None;
        }
        let suffix = if self.0.starts_with("cn-") { ".cn" } else { "" };
        Some(format!("https://api.ecr.{self}.amazonaws.com{suffix}"))
    }
}

impl FromStr for Region {
    type Err = InvalidRegion;

    fn from_str(text: &str) -> Result<Self, InvalidRegion> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = text.len() <= 32 && text.contains('-') && !text.starts_with('-') && text.bytes().all(fits);
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidRegion) }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl RoleArn ===

impl FromStr for RoleArn {
    type Err = InvalidRole;

    fn from_str(text: &str) -> Result<Self, InvalidRole> {
        let parts: Vec<_> = text.splitn(6, ':').collect();
        let ["arn", partition, "iam", "", account, resource] = parts[..] else { return Err(InvalidRole) };
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        let is_role = resource.strip_prefix("role/").is_some_and(|name| !name.is_empty() && !name.ends_with('/'));
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>\\".contains(&byte);
        let fits = text.len() <= LONGEST_ROLE && text.bytes().all(fits) && partition.starts_with("aws");
        if fits && is_account && is_role { Ok(Self(text.to_owned())) } else { Err(InvalidRole) }
    }
}

impl fmt::Display for RoleArn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
