//! Settings of a server, and its rows as tests see them.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::faults::Fault;

/// Behaviour of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The service account.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// May delete credentials.
    pub may_delete: bool,
    /// The lifetime of access tokens (the SSO: 15 minutes).
    pub token_lifetime: Duration,
    /// The registries that there are.
    pub registries: Vec<Registry>,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault>,
}

/// A registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// Its id.
    pub id: String,
    /// Its host.
    pub host: String,
}

/// A credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user.
    pub username: String,
    /// The password.
    pub token: String,
    /// The id of the registry.
    pub registry: String,
    /// The id of the account.
    pub account: String,
    /// The resource: a cluster's external id, `rotating`, or empty.
    pub resource: String,
    /// Seconds since 1970 at which it was created.
    pub created: i64,
}

// === impl Settings ===

impl Default for Settings {
    /// On a free port of the loopback interface, with the registries of OpenShift, and nothing that gets in the way.
    fn default() -> Self {
        let registry = |id: &str, host: &str| Registry { id: id.to_owned(), host: host.to_owned() };
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            client_id: "pull-secret-service".to_owned(),
            client_secret: format!("{:032x}", rand::random::<u128>()),
            may_delete: true,
            token_lifetime: Duration::from_mins(15),
            registries: vec![
                registry("Quay_quay.io", "quay.io"),
                registry("Redhat_registry.redhat.io", "registry.redhat.io"),
                registry("Redhat_registry.connect.redhat.com", "registry.connect.redhat.com"),
            ],
            faults: Vec::new(),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credential").field("username", &self.username).finish_non_exhaustive()
    }
}
