//! Settings of a server, its state as tests see it, and the calls that it has received.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::operation::Operation;
use crate::http_faults::Fault;

/// Behaviour of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The organization that there is.
    pub organization: String,
    /// The name of the service that issued tokens are for; Quay's is the name of its host.
    pub service: String,
    /// The tokens of the API.
    pub tokens: Vec<ApiToken>,
    /// The repositories that are there at the start, without the organization's name.
    pub repositories: BTreeSet<String>,
    /// The teams that are there at the start, with the role `member`.
    pub teams: BTreeSet<String>,
    /// The lifetime of the tokens that a registry takes, and of those that are exchanged for a cluster's token (Quay: an hour).
    pub bearer_lifetime: Duration,
    /// The time after which a list of robots shows that one was created or deleted.
    pub list_lag: Duration,
    /// Writes refused logins to the usage log (Quay's `ACTION_LOG_AUDIT_LOGIN_FAILURES`).
    pub audit_login_failures: bool,
    /// The issuers of clusters' tokens with their keys (a JWK Set), which Quay would fetch from them.
    pub issuers: BTreeMap<String, Value>,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault<Operation>>,
    /// Minimum time of every call.
    pub latency: Duration,
    /// The time by which the server's clock is behind this machine's at the start.
    pub clock_lag: Duration,
}

/// A token of an OAuth application, which a user has made.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// The token itself.
    pub secret: String,
    /// The user, whose name the usage log has.
    pub user: String,
    /// Has the scope `org:admin`.
    pub admin: bool,
    /// The lifetime since the server's start (Quay: ten years).
    pub lifetime: Duration,
}

/// A robot as it is stored.
#[derive(Clone, PartialEq)]
pub struct Robot {
    /// The name without the organization's.
    pub name: String,
    /// The password.
    pub password: String,
    /// The description.
    pub description: String,
    /// The unstructured metadata.
    pub metadata: Map<String, Value>,
    /// The time of the creation.
    pub created: Timestamp,
    /// The time at which it got a token last, to a minute.
    pub last_accessed: Option<Timestamp>,
    /// The teams that it is a member of.
    pub teams: BTreeSet<String>,
    /// The repositories on which it has a permission of its own.
    pub repositories: BTreeSet<String>,
}

/// A pull of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The robot that pulled, with the organization's name.
    pub robot: String,
    /// The repository, without the organization's name.
    pub repository: String,
    /// The tag, or the digest.
    pub reference: String,
    /// The puller's address.
    pub address: String,
    /// The puller's `User-Agent`.
    pub agent: String,
}

/// A call that was received. It never holds a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The robot with the organization's name, the team or the repository that it is about; empty if there is none.
    pub target: String,
    /// The status that was answered; none while it waits, and for good if its connection was cut or it hung.
    pub outcome: Option<u16>,
}

// === impl Settings ===

impl Default for Settings {
    /// On a free port of the loopback interface, with one token that may do everything, the team `pullers`, the repository
    /// `release`, and nothing that gets in the way.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            organization: "hyperfleet".to_owned(),
            service: "quay.example.com".to_owned(),
            tokens: vec![ApiToken::admin()],
            repositories: ["release".to_owned()].into(),
            teams: ["pullers".to_owned()].into(),
            bearer_lifetime: Duration::from_hours(1),
            list_lag: Duration::ZERO,
            audit_login_failures: true,
            issuers: BTreeMap::new(),
            faults: Vec::new(),
            latency: Duration::ZERO,
            clock_lag: Duration::ZERO,
        }
    }
}

// === impl ApiToken ===

impl ApiToken {
    /// A random token with every right, for ten years.
    pub fn admin() -> Self {
        Self {
            secret: format!("{:032x}", rand::random::<u128>()),
            user: "pull-secret-service".to_owned(),
            admin: true,
            lifetime: Duration::from_hours(24 * 3652),
        }
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secret: _, user, admin, lifetime } = self;
        let mut token = formatter.debug_struct("ApiToken");
        token.field("user", user).field("admin", admin).field("lifetime", lifetime).finish_non_exhaustive()
    }
}

// === impl Robot ===

impl fmt::Debug for Robot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut robot = formatter.debug_struct("Robot");
        robot.field("name", &self.name).field("description", &self.description).field("metadata", &self.metadata);
        robot.field("teams", &self.teams).field("repositories", &self.repositories).finish_non_exhaustive()
    }
}
