//! Settings of the client.

use std::path::PathBuf;
use std::time::Duration;

use daemon::calls::CallLog;
use daemon::endpoint::EndpointUrl;
use uuid::Uuid;

use crate::client::host_of_images;
use crate::identity::IdentitySecret;

/// Registry and application at Azure, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct AcrSettings {
    /// Address of the registry, such as `https://fleet.azurecr.io`.
    pub address: EndpointUrl,
    /// Host of images, if it is another one than the address's: the key in `auths`.
    pub host: Option<String>,
    /// The tenant of the application.
    pub tenant: Uuid,
    /// The application, or managed identity, whose tokens are minted. It may pull images, and nothing else.
    pub application: Uuid,
    /// The token that the application's federated credential trusts.
    pub token: IdentitySecret,
    /// Address of Microsoft Entra ID.
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

// === impl AcrSettings ===

impl AcrSettings {
    /// Returns the key in `auths`: the host of images, or that of the address with its port.
    pub fn host(&self) -> &str {
        host_of_images(&self.address, self.host.as_ref())
    }
}
