//! A resource of the fleet with all that is known of it: what is wanted, what adapters report, what follows from both.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A cluster, a node pool, or whatever else the configuration registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// `UUIDv7`, or what the client chose; unique over all kinds.
    pub id: String,
    /// The kind of its descriptor, such as `Cluster`.
    pub kind: String,
    /// Unique among the living resources of its kind (and tenancy, or owner).
    pub name: String,
    /// Where it is served.
    pub href: String,
    /// The resource that it belongs to, if its kind has a parent.
    pub owner: Option<Target>,
    /// What is wanted. An inline pull secret is redacted here; its content is kept sealed, elsewhere.
    pub spec: Map<String, Value>,
    /// Counts up from 1 with each change of spec, labels or references, and with the deletion.
    pub generation: i64,
    /// When it was created.
    pub created_time: Timestamp,
    /// By whom.
    pub created_by: String,
    /// When spec, labels or references were last changed; status reports do not count.
    pub updated_time: Timestamp,
    /// By whom.
    pub updated_by: String,
    /// When its deletion was asked for.
    pub deleted_time: Option<Timestamp>,
    /// By whom.
    pub deleted_by: Option<String>,
    /// What is searched seldom or through tables of its own.
    pub state: State,
}

/// The parts of a resource that are stored as one document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Kubernetes-style labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Other resources that it refers to, by the type of reference.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub references: BTreeMap<String, Vec<Target>>,
    /// Whose it is, by tenancy dimension.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tenancy: BTreeMap<String, String>,
    /// What follows from the reports, in the order in which it is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The last stored report of each adapter, by the adapter's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reports: BTreeMap<String, Report>,
}

/// The syntax of ids: a DNS label.
pub const ID_PATTERN: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";

/// A reference to another resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The id of the resource.
    #[schemars(regex(pattern = ID_PATTERN))]
    pub id: String,
    /// The kind of the resource.
    pub kind: String,
    /// The path of the resource.
    #[schemars(extend("format" = "uri-reference"))]
    pub href: String,
}

/// What the API itself concludes about a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Such as `Reconciled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds; a conclusion is never `Unknown`.
    pub status: Status,
    /// One word, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation that it speaks of.
    pub observed_generation: i64,
    /// When a condition of this type first appeared.
    pub created_time: Timestamp,
    /// When what it rests on was last observed.
    pub last_updated_time: Timestamp,
    /// When its status last changed.
    pub last_transition_time: Timestamp,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Status {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

/// The last stored report of an adapter about a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Who reports.
    pub adapter: String,
    /// The generation that it looked at.
    pub observed_generation: i64,
    /// What it found; `Available`, `Applied` and `Health` at least.
    pub conditions: Vec<ReportedCondition>,
    /// Whatever else the adapter tells.
    #[serde(default)]
    pub data: Map<String, Value>,
    /// About the run behind the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// When this adapter's first report was observed.
    pub created_time: Timestamp,
    /// The adapter's own time of this report (`observed_time`).
    pub last_report_time: Timestamp,
}

/// One finding of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCondition {
    /// Such as `Available`.
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
    /// When its status last changed, in the adapter's time.
    pub last_transition_time: Timestamp,
}

/// About the run behind a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's and say it")]
pub struct Metadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

// === impl Resource ===

impl Resource {
    /// Whether its deletion was asked for.
    pub fn is_terminating(&self) -> bool {
        self.deleted_time.is_some()
    }

    /// The condition of that type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.state.conditions.iter().find(|condition| condition.kind == kind)
    }
}

// === impl Report ===

impl Report {
    /// What it says about that type of condition; `Unknown` where it says nothing.
    pub fn status(&self, kind: &str) -> Status {
        self.condition(kind).map_or(Status::Unknown, |condition| condition.status)
    }

    /// Its condition of that type.
    pub fn condition(&self, kind: &str) -> Option<&ReportedCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

// === impl Status ===

impl Status {
    /// The status with that name, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::True, Self::False, Self::Unknown].into_iter().find(|status| status.as_str() == text)
    }

    /// The status as the contract writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}
