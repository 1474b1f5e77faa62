//! Settings of a server, and its state as tests see it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;

use super::operation::Operation;
use crate::http_faults::Fault;

/// Behaviour of a server.
#[derive(Clone)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The project that there is.
    pub project: String,
    /// Everyone may pull from the project.
    pub is_public: bool,
    /// The beginning of the names of robots (`robot_name_prefix`).
    pub robot_prefix: String,
    /// The user who calls the API.
    pub username: String,
    /// The user's password.
    pub password: String,
    /// The user is a robot, which may not change other robots.
    pub is_robot: bool,
    /// The lifetime of the tokens that the registry takes (`token_expiration`: 30 minutes).
    pub bearer_lifetime: Duration,
    /// Writes pulls to the audit log, unless `pull_audit_log_disable` is set.
    pub audits_pulls: bool,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault<Operation>>,
}

/// A robot as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Robot {
    /// Its number.
    pub id: u64,
    /// The name with prefix and project.
    pub name: String,
    /// The password.
    pub secret: String,
    /// The description.
    pub description: String,
    /// The time of its creation.
    pub created: Timestamp,
    /// Days until it expires; -1 for never.
    pub duration: i64,
    /// It is not accepted.
    pub disabled: bool,
    /// It may pull from the project.
    pub pulls: bool,
}

/// A pull of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The whole name of the robot.
    pub username: String,
    /// The repository with its project, and the tag or digest.
    pub resource: String,
    /// The time.
    pub at: Timestamp,
}

// === impl Settings ===

impl Default for Settings {
    /// On a free port of the loopback interface, with an administrator of the project `hyperfleet`, and nothing that gets in the
    /// way.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            project: "hyperfleet".to_owned(),
            is_public: false,
            robot_prefix: "robot$".to_owned(),
            username: "pull-secret-service".to_owned(),
            password: format!("{:032x}", rand::random::<u128>()),
            is_robot: false,
            bearer_lifetime: Duration::from_mins(30),
            audits_pulls: true,
            faults: Vec::new(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { project, username, faults, .. } = self;
        let mut settings = formatter.debug_struct("Settings");
        settings.field("project", project).field("username", username).field("faults", faults).finish_non_exhaustive()
    }
}

impl fmt::Debug for Robot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, description, disabled, pulls, .. } = self;
        let mut robot = formatter.debug_struct("Robot");
        robot.field("id", id).field("name", name).field("description", description);
        robot.field("disabled", disabled).field("pulls", pulls).finish_non_exhaustive()
    }
}
