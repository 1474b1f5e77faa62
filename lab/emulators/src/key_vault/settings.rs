//! Settings of a server, and the calls that it has received.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::faults::Fault;
use super::operation::{Operation, Permission};

/// Behaviour of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The tenant that issues tokens, by its id.
    pub tenant: String,
    /// Those that can get a token.
    pub identities: Vec<Identity>,
    /// The lifetime of access tokens (Entra: 60 to 90 minutes).
    pub token_lifetime: Duration,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault>,
    /// Minimum time of every call.
    pub latency: Duration,
    /// The time that a deletion, a recovery and a purge take (Azure: up to a minute). Until then the name is taken, and the
    /// secret is neither among the secrets nor among the deleted ones.
    pub transition: Duration,
    /// The time after which a new version is seen by reads.
    pub version_lag: Duration,
    /// Refuses to purge deleted secrets before their retention ends.
    pub purge_protection: bool,
    /// The time for which a deleted secret can be recovered, in days: 7 to 90.
    pub recoverable_days: u16,
}

/// An application that can authenticate, and its rights on the vault.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The application's id.
    pub client_id: String,
    /// The client secret with which it can authenticate.
    pub secret: Option<String>,
    /// The subject of the assertions with which it can authenticate; see [`super::KeyVault::assertion`].
    pub subject: Option<String>,
    /// Its rights.
    pub permissions: BTreeSet<Permission>,
}

/// A call that was received. It never holds a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The name of the secret, with a slash and the version if the caller gave one; empty for lists of secrets and tokens.
    pub resource: String,
    /// The status that was answered; none while it waits, and for good if its connection was cut or it hung.
    pub outcome: Option<u16>,
}

// === impl Settings ===

impl Default for Settings {
    /// On a free port of the loopback interface, for one identity that may do everything, with nothing that gets in the way.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            tenant: "7e0e6f2c-5d3b-4f39-9c56-1f1a2b0c4d5e".to_owned(),
            identities: vec![Identity::admin()],
            token_lifetime: Duration::from_hours(1),
            faults: Vec::new(),
            latency: Duration::ZERO,
            transition: Duration::ZERO,
            version_lag: Duration::ZERO,
            purge_protection: false,
            recoverable_days: 90,
        }
    }
}

// === impl Identity ===

impl Identity {
    /// An identity with every right and a random client secret.
    pub fn admin() -> Self {
        Self {
            client_id: "c2a7d1b0-38a4-4b1e-8d0e-6a5f4c3b2a19".to_owned(),
            secret: Some(format!("{:032x}", rand::random::<u128>())),
            subject: Some("system:serviceaccount:hyperfleet:pull-secret".to_owned()),
            permissions: Permission::ALL.into(),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client_id, secret, subject, permissions } = self;
        formatter
            .debug_struct("Identity")
            .field("client_id", client_id)
            .field("secret", &secret.as_ref().map(|_| "redacted"))
            .field("subject", subject)
            .field("permissions", permissions)
            .finish()
    }
}
