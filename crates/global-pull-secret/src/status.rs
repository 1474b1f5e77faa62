//! What the hosted cluster's admin reads: conditions in a ConfigMap, each change an Event.

use std::collections::BTreeMap;

use docker_config::merge::Decision;
use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};

use crate::reason::Reason;

/// One statement, as Kubernetes writes conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `Valid`, `Merged`, `RolledOut` or `Degraded`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Since when the status is what it is.
    pub last_transition_time: Timestamp,
}

/// The keys of the ConfigMap.
pub mod key {
    /// The conditions, as JSON.
    pub const CONDITIONS: &str = "conditions";
    /// Whose entry was taken, a line a registry.
    pub const REGISTRIES: &str = "registries";
    /// Which revision of the merged Secret the conditions are about; absent where there is none.
    pub const REVISION: &str = "revision";
    /// The conditions, a line each.
    pub const SUMMARY: &str = "summary";
}

impl Condition {
    /// A condition as of `now`.
    pub fn new(kind: &str, holds: Option<bool>, reason: Reason, message: String, now: Timestamp) -> Self {
        let status = match holds {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        Self {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.as_str().to_owned(),
            message,
            last_transition_time: now,
        }
    }

    /// Whether both say the same, whenever they began.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let Self { kind, status, reason, message, last_transition_time: _ } = self;
        (kind, status, reason, message) == (&other.kind, &other.status, &other.reason, &other.message)
    }

    /// One line.
    pub fn line(&self) -> String {
        format!("{}={} ({}): {}", self.kind, self.status, self.reason, self.message)
    }
}

/// The conditions that were told last.
pub fn conditions_of(status: &ConfigMap) -> Vec<Condition> {
    let text = status.data.as_ref().and_then(|data| data.get(key::CONDITIONS));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// When the status was written.
pub fn written_at(status: &ConfigMap) -> Option<Timestamp> {
    status.metadata.annotations.as_ref()?.get(names::ANNOTATION_WRITTEN_AT)?.parse().ok()
}

/// The data of the ConfigMap.
pub fn data(conditions: &[Condition], because: &[Decision], revision: Option<&str>) -> BTreeMap<String, String> {
    let lines = |lines: Vec<String>| lines.into_iter().map(|line| line + "\n").collect::<String>();
    let revision = revision.map(|revision| (key::REVISION.to_owned(), revision.to_owned()));
    let told = [
        (key::CONDITIONS.to_owned(), serde_json::to_string(conditions).unwrap_or_default()),
        (key::SUMMARY.to_owned(), lines(conditions.iter().map(Condition::line).collect())),
        (key::REGISTRIES.to_owned(), lines(because.iter().map(ToString::to_string).collect())),
    ];
    told.into_iter().chain(revision).collect()
}
