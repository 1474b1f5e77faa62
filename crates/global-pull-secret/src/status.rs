//! What the hosted cluster's admin reads: conditions in a ConfigMap, each change an Event.

use std::collections::BTreeMap;

use docker_config::merge::Decision;
use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};

use crate::decide::probe::Told;
use crate::reason::Reason;

/// One statement, as Kubernetes writes conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `Valid`, `Merged`, `CredentialsAccepted`, `RolledOut` or `Degraded`.
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
    /// What registries have said of credentials, as JSON; absent where they are not asked.
    pub const CREDENTIALS: &str = "credentials";
    /// Whose entry was taken, a line a registry.
    pub const REGISTRIES: &str = "registries";
    /// Which revision of the merged Secret the conditions are about; absent where there is none.
    pub const REVISION: &str = "revision";
    /// From when on a ready Pod of the syncer has that revision.
    pub const SETTLED_AT: &str = "settled-at";
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

/// What was told of credentials last.
pub fn told_of(status: &ConfigMap) -> Vec<Told> {
    let text = status.data.as_ref().and_then(|data| data.get(key::CREDENTIALS));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Which revision the status is about.
pub fn revision_of(status: &ConfigMap) -> Option<&str> {
    status.data.as_ref()?.get(key::REVISION).map(String::as_str)
}

/// From when on a ready Pod has that revision.
pub fn settled_at(status: &ConfigMap) -> Option<Timestamp> {
    status.data.as_ref()?.get(key::SETTLED_AT)?.parse().ok()
}

/// When the status was written.
pub fn written_at(status: &ConfigMap) -> Option<Timestamp> {
    status.metadata.annotations.as_ref()?.get(names::ANNOTATION_WRITTEN_AT)?.parse().ok()
}

/// The data of the ConfigMap.
pub fn data(
    conditions: &[Condition],
    because: &[Decision],
    told: &[Told],
    revision: Option<(&str, Timestamp)>,
) -> BTreeMap<String, String> {
    let lines = |lines: Vec<String>| lines.into_iter().map(|line| line + "\n").collect::<String>();
    let revision = revision.into_iter().flat_map(|(revision, settled_at)| {
        [(key::REVISION.to_owned(), revision.to_owned()), (key::SETTLED_AT.to_owned(), settled_at.to_string())]
    });
    let credentials =
        (!told.is_empty()).then(|| (key::CREDENTIALS.to_owned(), serde_json::to_string(told).unwrap_or_default()));
    let all = [
        (key::CONDITIONS.to_owned(), serde_json::to_string(conditions).unwrap_or_default()),
        (key::SUMMARY.to_owned(), lines(conditions.iter().map(Condition::line).collect())),
        (key::REGISTRIES.to_owned(), lines(because.iter().map(ToString::to_string).collect())),
    ];
    all.into_iter().chain(revision).chain(credentials).collect()
}
