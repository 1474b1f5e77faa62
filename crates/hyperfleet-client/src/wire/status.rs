//! What is concluded and reported about a resource.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody can say, or it is a word that this client does not know.
    #[serde(other)]
    Unknown,
}

/// One finding about a resource: the API's own conclusion, or an adapter's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Such as `Reconciled` or `Available`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: Status,
    /// One word, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation that it speaks of; adapters' findings leave it to their report.
    #[serde(default, alias = "observedGeneration", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When a condition of this type first appeared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<Timestamp>,
    /// When what it rests on was last observed.
    #[serde(default, alias = "lastUpdatedTime", skip_serializing_if = "Option::is_none")]
    pub last_updated_time: Option<Timestamp>,
    /// When its status last changed.
    #[serde(default, alias = "lastTransitionTime", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

/// The last stored report of an adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusItem {
    /// Who reports.
    pub adapter: String,
    /// The generation that it looked at.
    #[serde(default, alias = "observedGeneration")]
    pub observed_generation: i64,
    /// What it found.
    #[serde(default, deserialize_with = "super::null_is_default")]
    pub conditions: Vec<Condition>,
    /// Whatever else the adapter tells.
    #[serde(default, deserialize_with = "super::null_is_default")]
    pub data: Map<String, Value>,
    /// About the run behind the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// When this adapter's first report was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<Timestamp>,
    /// When this one was.
    #[serde(default, alias = "lastUpdated", skip_serializing_if = "Option::is_none")]
    pub last_report_time: Option<Timestamp>,
}

/// About the run behind a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are the contract's and say it")]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// A change of one of an adapter's findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Whose finding.
    pub adapter: String,
    /// Of which type, such as `Available`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it was; `None` at the first report.
    #[serde(default)]
    pub from: Option<Status>,
    /// What it became.
    pub to: Status,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation that the adapter looked at.
    #[serde(default)]
    pub observed_generation: i64,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

// === impl Status ===

impl Status {
    /// The status as the contract writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

// === impl StatusItem ===

impl StatusItem {
    /// Its finding of that type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}
