//! Settings of the client.

use std::path::PathBuf;
use std::time::Duration;

use daemon::endpoint::EndpointUrl;

/// Addresses, identity, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct AmsSettings {
    /// Address of AMS, such as `https://api.openshift.com`.
    pub address: EndpointUrl,
    /// The SSO's address for tokens.
    pub token_address: EndpointUrl,
    /// The service account.
    pub client_id: String,
    /// File with its secret; read whenever a token is asked for.
    pub client_secret_file: PathBuf,
    /// File with the certificate authorities of both, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a call of this crate, all its requests included.
    pub call_timeout: Duration,
}
