//! A resource of the fleet: its desired state, the reports of its adapters, and the conditions that follow.

use std::collections::BTreeMap;

use fleet_model::{Condition, Generation, Report, TraceContext};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A cluster, a node pool, or a resource of another configured kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The id, unique over all kinds: a `UUIDv7`, or chosen by the client.
    pub id: String,
    /// The kind of its descriptor, such as `Cluster`.
    pub kind: String,
    /// The name, unique among the active resources of its kind (and tenancy, or owner).
    pub name: String,
    /// The path under which it is served.
    pub href: String,
    /// The parent, if its kind has one.
    pub owner: Option<Target>,
    /// The desired state. An inline pull secret is redacted; the encrypted document is stored beside the resource.
    pub spec: Map<String, Value>,
    /// Counts up from 1 with each change of spec, labels or references, and with the deletion.
    pub generation: Generation,
    /// The time of the creation.
    pub created_time: Timestamp,
    /// The identity that created it.
    pub created_by: String,
    /// The time of the last change of spec, labels or references; reports do not count.
    pub updated_time: Timestamp,
    /// The identity of the last change.
    pub updated_by: String,
    /// The time at which its deletion was requested.
    pub deleted_time: Option<Timestamp>,
    /// The identity that requested the deletion.
    pub deleted_by: Option<String>,
    /// The parts that are stored as one document.
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
    /// The tenancy, by dimension.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tenancy: BTreeMap<String, String>,
    /// The conditions that follow from the reports, in the order in which they are rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The last stored report of each adapter, by the adapter's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reports: BTreeMap<String, Report>,
    /// The span of the request that has made the current generation; `None` if it was not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
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

// === impl Resource ===

impl Resource {
    /// Returns true once its deletion has been requested.
    pub fn is_terminating(&self) -> bool {
        self.deleted_time.is_some()
    }

    /// Returns the condition of that type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.state.conditions.iter().find(|condition| condition.kind == kind)
    }
}
