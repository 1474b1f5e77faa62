//! How a resource looks to those who read it.

use serde_json::{Map, Value, json};

use crate::entity::Registry;
use crate::resource::{Report, Resource, Status, Target};

/// A resource as JSON, in the contract's form (and with the view `status.adapters`).
pub fn resource(resource: &Resource, registry: &Registry) -> Map<String, Value> {
    let state = &resource.state;
    let href = registry.href(&resource.kind, &resource.id, resource.owner.as_ref().map(|owner| owner.id.as_str()));
    let adapters: Map<String, Value> =
        state.reports.iter().map(|(name, report)| (name.clone(), adapter(report))).collect();
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("id", json!(resource.id));
    put("kind", json!(resource.kind));
    put("name", json!(resource.name));
    put("href", json!(href));
    put("spec", Value::Object(resource.spec.clone()));
    put("tenancy", json!(state.tenancy));
    put("generation", json!(resource.generation));
    put("status", json!({ "conditions": state.conditions, "adapters": adapters }));
    put("created_time", json!(resource.created_time));
    put("created_by", json!(resource.created_by));
    put("updated_time", json!(resource.updated_time));
    put("updated_by", json!(resource.updated_by));
    if !state.labels.is_empty() {
        put("labels", json!(state.labels));
    }
    if !state.references.is_empty() {
        put("references", json!(state.references));
    }
    if let Some(owner) = &resource.owner {
        put("owner_references", json!(owner));
    }
    if let Some(deleted) = &resource.deleted_time {
        put("deleted_time", json!(deleted));
    }
    if let Some(by) = &resource.deleted_by {
        put("deleted_by", json!(by));
    }
    object
}

/// The view of one adapter that the specification's expressions look at: `status.adapters.dns.available == "True"`.
fn adapter(report: &Report) -> Value {
    json!({
        "available": report.status("Available").as_str(),
        "observed_generation": report.observed_generation,
        "conditions": report.conditions,
        "data": report.data,
        "last_report_time": report.last_report_time,
    })
}

/// How a resource is referred to.
pub fn target(resource: &Resource, registry: &Registry) -> Target {
    Target {
        id: resource.id.clone(),
        kind: resource.kind.clone(),
        href: registry.href(&resource.kind, &resource.id, resource.owner.as_ref().map(|owner| owner.id.as_str())),
    }
}

/// Whether a status is shown as good news.
pub fn is_good(status: Status) -> bool {
    status == Status::True
}
