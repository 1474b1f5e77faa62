//! A resource of the fleet, as it is read and as it is created.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::view::ReportView;
use crate::{Condition, Generation, TraceContext};

/// A cluster, a node pool, or whatever else the API serves.
///
/// Members that a projection (`fields`) leaves out have their default: empty, absent, [`Generation::NONE`].
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// `UUIDv7`, or what its creator chose.
    pub id: String,
    /// Such as `Cluster`.
    #[serde(default)]
    pub kind: String,
    /// Unique among the living resources of its kind.
    #[serde(default)]
    pub name: String,
    /// The path under which it is served.
    #[serde(default)]
    pub href: String,
    /// The desired state. Today's APIs hold an inline pull secret here unencrypted, so `Debug` does not show it.
    #[serde(default)]
    pub spec: Value,
    /// Kubernetes-style labels.
    #[serde(default, deserialize_with = "super::null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The owner, by tenancy dimension.
    #[serde(default, deserialize_with = "super::null_is_default")]
    pub tenancy: BTreeMap<String, String>,
    /// Counts up with each change of what is wanted, and with the deletion.
    #[serde(default)]
    pub generation: Generation,
    /// The status.
    #[serde(default, deserialize_with = "super::null_is_default")]
    pub status: ResourceStatus,
    /// Creation time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<Timestamp>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Time of the last change of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_time: Option<Timestamp>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    /// Trace of the change that has made this generation; `None` where there is none, and for a malformed one.
    #[serde(default, deserialize_with = "super::trace", skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceContext>,
    /// Time of the deletion request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_time: Option<Timestamp>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<String>,
    /// The resource that it belongs to; one object, whatever the name says.
    #[serde(default, rename = "owner_references", skip_serializing_if = "Option::is_none")]
    pub owner: Option<Reference>,
    /// Other resources that it refers to, by the type of reference.
    #[serde(default, deserialize_with = "super::null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub references: BTreeMap<String, Vec<Reference>>,
}

/// The status of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceStatus {
    /// The conditions that the API computes.
    #[serde(default, deserialize_with = "super::null_is_default")]
    pub conditions: Vec<Condition>,
    /// View of each adapter's report that the specification's expressions read; `None` if the API has no such view, as HyperFleet's
    /// own server ([`Calls::with_adapters`](crate::Calls::with_adapters) completes it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapters: Option<Map<String, Value>>,
}

/// Another resource, as an owner or a reference names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Its id.
    pub id: String,
    /// Its kind; of a reference that is written, the API finds it out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The path of the resource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub href: String,
}

/// A resource that is to be created.
#[derive(Clone, Default, PartialEq, Serialize)]
pub struct NewResource {
    /// Its id; `None` lets the API choose, the only way at HyperFleet's own server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Such as `Cluster`.
    pub kind: String,
    /// Unique among the living resources of its kind.
    pub name: String,
    /// The desired state; `Debug` does not show it, as it may hold a pull secret.
    pub spec: Map<String, Value>,
    /// Kubernetes-style labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Other resources that it refers to, by the type of reference.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub references: BTreeMap<String, Vec<Reference>>,
}

// === impl Resource ===

impl Resource {
    /// Returns true if the resource is terminating.
    pub fn is_deleting(&self) -> bool {
        self.deleted_time.is_some()
    }

    /// The condition of that type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Resource")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("generation", &self.generation)
            .field("deleted_time", &self.deleted_time)
            .field("conditions", &self.status.conditions)
            .finish_non_exhaustive()
    }
}

// === impl ResourceStatus ===

impl ResourceStatus {
    /// Returns the reports by adapter; none if the API has no view of them.
    pub fn reports(&self) -> impl Iterator<Item = (&str, ReportView<'_>)> {
        self.adapters.iter().flatten().map(|(name, report)| (name.as_str(), ReportView::of(report)))
    }
}

// === impl NewResource ===

impl fmt::Debug for NewResource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NewResource")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Page, Report, Status};

    #[test]
    fn what_the_api_writes_today_is_read_in_full() {
        let resource: Resource = serde_json::from_value(json!({
            "id": "019a", "kind": "NodePool", "name": "workers",
            "href": "/api/hyperfleet/v1/clusters/c/nodepools/019a",
            "spec": {"replicas": 3}, "tenancy": {}, "generation": 2,
            "status": {"conditions": [{
                "type": "Reconciled", "status": "False", "reason": "ReconciledMissingAdapters", "message": "…",
                "observed_generation": 2, "created_time": "2026-01-01T00:00:00Z",
                "last_updated_time": "2026-01-01T00:00:00.000001Z", "last_transition_time": "2026-01-01T01:00:00+01:00",
            }]},
            "created_time": "2026-01-01T00:00:00Z", "created_by": "a@b", "updated_time": "2026-01-01T00:00:00Z",
            "updated_by": "a@b", "deleted_time": "2026-01-02T00:00:00Z", "deleted_by": "a@b",
            "owner_references": {"id": "c", "kind": "Cluster", "href": "/…"},
            "references": {"wif_config": [{"id": "w", "kind": "WifConfig", "href": "/…"}]},
            "a_member_of_tomorrow": [1, 2, 3],
        }))
        .unwrap();
        assert!(resource.is_deleting());
        assert_eq!(resource.condition("Reconciled").unwrap().status, Status::False);
        assert_eq!(resource.owner.unwrap().id, "c");
        assert_eq!(resource.references["wif_config"].len(), 1);
    }

    #[test]
    fn what_is_absent_or_null_has_its_default() {
        let page: Page<Resource> = serde_json::from_value(json!({"items": [
            {"id": "a"},
            {"id": "b", "labels": null, "tenancy": null, "references": null, "status": {"conditions": null}},
            {"id": "c", "status": null, "deleted_time": null, "traceparent": "not one"},
        ]}))
        .unwrap();
        assert_eq!(
            page.items.iter().filter(|resource| resource.is_deleting() || resource.traceparent.is_some()).count(),
            0
        );
        let item: Report = serde_json::from_value(json!({
            "adapter": "dns", "observedGeneration": 4, "data": null,
            "conditions": [{"type": "Available", "status": "Perhaps"}],
        }))
        .unwrap();
        assert_eq!(item.observed_generation, Generation::from(4));
        assert_eq!(item.condition("Available").unwrap().status, Status::Unknown);
    }

    #[test]
    fn debug_does_not_show_what_is_wanted() {
        let spec = json!({"pullSecret": {"data": "hunter2"}});
        let resource = Resource { id: "a".into(), spec: spec.clone(), ..Resource::default() };
        let new = NewResource { spec: spec.as_object().unwrap().clone(), ..NewResource::default() };
        assert!(!format!("{resource:?} {new:?}").contains("hunter2"));
    }
}
