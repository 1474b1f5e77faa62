//! Renders a resource as JSON in the form of HyperFleet's API.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use fleet_model::names::condition::AVAILABLE;
use fleet_model::{Condition, Generation, Report, ReportedCondition, TraceContext};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::resource::{Resource, State, Target};
use crate::tenancy::Tenancy;

/// A resource as it is rendered: its members in the order of their names, with the additional view `status.adapters`.
#[derive(Serialize)]
struct Rendered<'a> {
    created_by: &'a str,
    created_time: &'a Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_time: Option<&'a Timestamp>,
    generation: Generation,
    href: &'a str,
    id: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<&'a Target>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    references: &'a BTreeMap<String, Vec<Target>>,
    spec: &'a Map<String, Value>,
    status: RenderedStatus<'a>,
    tenancy: &'a Tenancy,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a TraceContext>,
    updated_by: &'a str,
    updated_time: &'a Timestamp,
}

#[derive(Serialize)]
struct RenderedStatus<'a> {
    adapters: Adapters<'a>,
    conditions: &'a [Condition],
}

/// The view of the adapters' reports, by the adapter's name.
struct Adapters<'a>(&'a BTreeMap<String, Report>);

/// The view of one adapter for expressions such as `status.adapters.dns.available == "True"`.
#[derive(Serialize)]
struct Adapter<'a> {
    available: &'static str,
    conditions: &'a [ReportedCondition],
    data: &'a Map<String, Value>,
    last_report_time: &'a Timestamp,
    observed_generation: Generation,
}

impl Serialize for Adapters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, report)| {
            let adapter = Adapter {
                available: report.status(AVAILABLE).as_str(),
                conditions: &report.conditions,
                data: &report.data,
                last_report_time: &report.last_report_time,
                observed_generation: report.observed_generation,
            };
            (name, adapter)
        }))
    }
}

/// Renders a resource as JSON text.
pub fn text(resource: &Resource) -> String {
    let state = &resource.state;
    let rendered = Rendered {
        created_by: &resource.created_by,
        created_time: &resource.created_time,
        deleted_by: resource.deleted_by.as_deref(),
        deleted_time: resource.deleted_time.as_ref(),
        generation: resource.generation,
        href: &resource.href,
        id: &resource.id,
        kind: &resource.kind,
        labels: &state.labels,
        name: &resource.name,
        owner_references: resource.owner.as_ref(),
        references: &state.references,
        spec: &resource.spec,
        status: RenderedStatus { adapters: Adapters(&state.reports), conditions: &state.conditions },
        tenancy: &state.tenancy,
        traceparent: state.trace.as_ref(),
        updated_by: &resource.updated_by,
        updated_time: &resource.updated_time,
    };
    // Maps with texts as keys always serialise.
    serde_json::to_string(&rendered).unwrap_or_default()
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

/// Returns the reference to a resource.
pub fn target(resource: &Resource) -> Target {
    Target { id: resource.id.clone(), kind: resource.kind.clone(), href: resource.href.clone() }
}
