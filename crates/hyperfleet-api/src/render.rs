//! Renders a resource as JSON in the form of HyperFleet's API.

use std::fmt;

use bytes::Bytes;
use fleet_model::Report;
use fleet_model::names::condition::AVAILABLE;
use serde_json::{Map, Value, json};

use crate::resource::{Resource, State, Target};

/// Renders a resource as a JSON object, with the additional view `status.adapters`.
pub fn resource(resource: &Resource) -> Map<String, Value> {
    let state = &resource.state;
    let adapters: Map<String, Value> =
        state.reports.iter().map(|(name, report)| (name.clone(), adapter(report))).collect();
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("id", json!(resource.id));
    put("kind", json!(resource.kind));
    put("name", json!(resource.name));
    put("href", json!(resource.href));
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
    if let Some(trace) = &state.trace {
        put("traceparent", json!(trace));
    }
    object
}

/// Renders a resource as JSON text.
pub fn text(resource: &Resource) -> String {
    Value::Object(self::resource(resource)).to_string()
}

/// The end of each event.
pub(crate) const END_OF_EVENT: &[u8] = b"}\n";

/// Renders an event of the change stream, one line, with a serialised object.
pub(crate) fn event(kind: &str, version: &dyn fmt::Display, object: &[u8]) -> Bytes {
    let mut line = format!("{{\"type\":\"{kind}\",\"resource_version\":\"{version}\",\"object\":").into_bytes();
    line.reserve_exact(object.len() + END_OF_EVENT.len());
    line.extend_from_slice(object);
    line.extend_from_slice(END_OF_EVENT);
    line.into()
}

/// Parses a rendered resource; its reports are left out, because they are not rendered completely.
pub fn parse(object: &Value) -> Option<Resource> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let time = |name: &str| object.get(name).and_then(Value::as_str).and_then(|time| time.parse().ok());
    let part = |value: Option<&Value>| value.cloned().unwrap_or_else(|| json!({}));
    let conditions = object.get("status").and_then(|status| status.get("conditions")).cloned()?;
    Some(Resource {
        id: text("id")?,
        kind: text("kind")?,
        name: text("name")?,
        href: text("href")?,
        owner: object.get("owner_references").and_then(|owner| serde_json::from_value(owner.clone()).ok()),
        spec: object.get("spec")?.as_object()?.clone(),
        generation: serde_json::from_value(object.get("generation")?.clone()).ok()?,
        created_time: time("created_time")?,
        created_by: text("created_by")?,
        updated_time: time("updated_time")?,
        updated_by: text("updated_by")?,
        deleted_time: time("deleted_time"),
        deleted_by: text("deleted_by"),
        state: State {
            labels: serde_json::from_value(part(object.get("labels"))).ok()?,
            references: serde_json::from_value(part(object.get("references"))).ok()?,
            tenancy: serde_json::from_value(part(object.get("tenancy"))).ok()?,
            conditions: serde_json::from_value(conditions).ok()?,
            trace: text("traceparent").and_then(|trace| trace.parse().ok()),
            ..State::default()
        },
    })
}

/// Renders the view of one adapter for expressions such as `status.adapters.dns.available == "True"`.
fn adapter(report: &Report) -> Value {
    json!({
        "available": report.status(AVAILABLE).as_str(),
        "observed_generation": report.observed_generation,
        "conditions": report.conditions,
        "data": report.data,
        "last_report_time": report.last_report_time,
    })
}

/// Returns the reference to a resource.
pub fn target(resource: &Resource) -> Target {
    Target { id: resource.id.clone(), kind: resource.kind.clone(), href: resource.href.clone() }
}
