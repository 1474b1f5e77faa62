//! Settings of a server, and its state as tests see it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;

use super::operation::Operation;
use crate::http_faults::Fault;

/// Behaviour of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on, twice; port 0 takes free ones.
    pub listen: SocketAddr,
    /// The code of the partner that there is.
    pub partner: String,
    /// The lifetime of passwords; `None` for no end.
    pub password_lifetime: Option<Duration>,
    /// The lifetime of the tokens that the registry takes.
    pub bearer_lifetime: Duration,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault<Operation>>,
}

/// An account as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The name, without the prefix of the login.
    pub name: String,
    /// The description.
    pub description: String,
    /// The password.
    pub password: String,
    /// The time of its creation.
    pub created: Timestamp,
    /// It was deleted, and can be recovered.
    pub is_deleted: bool,
}

// === impl Settings ===

impl Default for Settings {
    /// On free ports of the loopback interface, with the partner `hyperfleet`, and nothing that gets in the way.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            partner: "hyperfleet".to_owned(),
            password_lifetime: None,
            bearer_lifetime: Duration::from_mins(5),
            faults: Vec::new(),
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, created, is_deleted, .. } = self;
        let mut account = formatter.debug_struct("Account");
        account.field("name", name).field("description", description).field("created", created);
        account.field("is_deleted", is_deleted).finish_non_exhaustive()
    }
}
