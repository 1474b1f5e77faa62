//! An entry of the usage log.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::shown::{avatar, date};
use crate::quay::fields::{field, set};
use crate::quay::settings::Pull;

/// The kind of an entry about a pull.
const PULL: &str = "pull_repo";

/// One entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) kind: &'static str,
    /// A robot or user; none once the robot is deleted.
    pub(super) performer: Option<String>,
    pub(super) address: String,
    pub(super) metadata: Value,
}

// === impl Entry ===

impl Entry {
    pub(super) fn of_pull(at: Timestamp, namespace: &str, pull: &Pull) -> Self {
        let Pull { robot, repository, reference, address, agent } = pull;
        let what = if reference.contains(':') { "manifest_digest" } else { "tag" };
        let metadata = json!({
            "repo": repository, "namespace": namespace, "user-agent": agent, "robot": robot, what: reference,
        });
        Self { at, kind: PULL, performer: Some(robot.clone()), address: address.clone(), metadata }
    }

    pub(super) fn pull(&self) -> Option<Pull> {
        let text = |name: &str| field(&self.metadata, name).as_str().map(str::to_owned);
        Some(Pull {
            robot: text("robot").filter(|_| self.kind == PULL)?,
            repository: text("repo")?,
            reference: text("tag").or_else(|| text("manifest_digest"))?,
            address: self.address.clone(),
            agent: text("user-agent")?,
        })
    }

    pub(super) fn document(&self) -> Value {
        let mut document =
            json!({"kind": self.kind, "metadata": self.metadata, "ip": self.address, "datetime": date(self.at)});
        if let Some(name) = &self.performer {
            let is_robot = name.contains('+');
            let kind = if is_robot { "robot" } else { "user" };
            set(
                &mut document,
                "performer",
                json!({"kind": "user", "name": name, "is_robot": is_robot, "avatar": avatar(name, kind)}),
            );
        }
        document
    }
}
