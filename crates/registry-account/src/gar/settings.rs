//! Settings of the client.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use daemon::calls::CallLog;
use daemon::endpoint::EndpointUrl;

use crate::client::host_of_images;

/// The longest address of a service account, in bytes.
const LONGEST_ACCOUNT: usize = 255;

/// Registry and service account at Google Cloud, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct GarSettings {
    /// Address of the registry, such as `https://europe-west1-docker.pkg.dev`.
    pub address: EndpointUrl,
    /// Host of images, if it is another one than the address's: the key in `auths`.
    pub host: Option<String>,
    /// The service account whose tokens are minted. It may read images, and nothing else.
    pub service_account: ServiceAccount,
    /// Life of a token: up to one hour, or up to twelve where an organization policy allows it.
    pub token_life: Duration,
    /// Address of the IAM Service Account Credentials API.
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

/// The address of a service account, such as `puller@fleet.iam.gserviceaccount.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount(String);

/// A text that is no address of a service account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the address of a service account, such as puller@PROJECT.iam.gserviceaccount.com")]
pub struct InvalidServiceAccount;

// === impl GarSettings ===

impl GarSettings {
    /// Returns the key in `auths`: the host of images, or that of the address with its port.
    pub fn host(&self) -> &str {
        host_of_images(&self.address, self.host.as_ref())
    }
}

// === impl ServiceAccount ===

impl FromStr for ServiceAccount {
    type Err = InvalidServiceAccount;

    fn from_str(text: &str) -> Result<Self, InvalidServiceAccount> {
        let is_name = |part: &str| {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
            !part.is_empty() && part.bytes().all(fits)
        };
        let fits = text.len() <= LONGEST_ACCOUNT
            && text.split_once('@').is_some_and(|(name, domain)| is_name(name) && is_name(domain));
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidServiceAccount) }
    }
}

impl fmt::Display for ServiceAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
