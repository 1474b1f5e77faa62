//! Settings of the client.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use daemon::calls::CallLog;
use daemon::connections::ClientCertificate;
use daemon::endpoint::EndpointUrl;

use crate::description::ID_LENGTH;
use crate::name::is_separated;

/// The longest description that is sent, in characters. Red Hat states no limit.
const LONGEST_SENT: usize = 255;

/// Partner and identity at Red Hat, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct RedHatSettings {
    /// Address of the API up to `/partners`, such as `https://api.access.redhat.com/management/v1`.
    pub address: EndpointUrl,
    /// Host of images: the key in `auths`.
    pub host: String,
    /// The partner that the accounts belong to.
    pub partner: Partner,
    /// The identity.
    pub certificate: ClientCertificate,
    /// Life of the bearer tokens that the registry's token service issues.
    pub token_life: Duration,
    /// File with the certificate authorities of the API, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a call of this crate, all its requests included.
    pub call_timeout: Duration,
    /// Calls that Red Hat allows in a minute.
    pub calls_per_minute: u32,
    /// Record of each request, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// The code of a partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partner(String);

/// A text that is no [`Partner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 characters of a-z and 0-9, with single '.', '_' or '-' between them")]
pub struct InvalidPartner;

// === impl RedHatSettings ===

impl RedHatSettings {
    /// The longest description of an account, in characters.
    pub const MAX_DESCRIPTION: usize = LONGEST_SENT - ID_LENGTH;
}

// === impl Partner ===

impl Partner {
    /// Returns the code.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Partner {
    type Err = InvalidPartner;

    fn from_str(text: &str) -> Result<Self, InvalidPartner> {
        let fits = text.len() <= 64 && is_separated(text);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidPartner)
    }
}

impl fmt::Display for Partner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
