//! A resource as the specification's expressions know it: `spec`, `status.adapters`, `metadata`.

mod report;

use fleet_model::names::condition::SUCCESSFUL_SUFFIX;
use serde_json::{Map, Value, json};

use crate::Generation;
use crate::wire::Resource;

pub use report::ReportView;

/// A resource as expressions see it. Of its pull secret it has only the redacted placeholder.
#[derive(Clone, PartialEq)]
pub struct View {
    /// The whole resource.
    pub document: Value,
    /// Its status, with `adapters` by their names; without such a view of the API, made of the adapters' conditions.
    pub status: Value,
    /// Its id, name, kind, labels, tenancy, generation and time of deletion.
    pub metadata: Value,
    /// Its generation.
    pub generation: Generation,
}

// === impl View ===

impl View {
    /// The view of a resource.
    pub fn of(resource: &Resource) -> Self {
        Self {
            document: serde_json::to_value(resource).unwrap_or(Value::Null),
            status: status(resource),
            metadata: metadata(resource),
            generation: resource.generation,
        }
    }

    /// Returns the reports by adapter.
    pub fn reports(&self) -> impl Iterator<Item = (&str, ReportView<'_>)> {
        let adapters = self.status.get("adapters").and_then(Value::as_object);
        adapters.into_iter().flatten().map(|(name, report)| (name.as_str(), ReportView::of(report)))
    }

    /// Returns the report of an adapter.
    pub fn report(&self, adapter: &str) -> Option<ReportView<'_>> {
        self.status.get("adapters")?.get(adapter).map(ReportView::of)
    }

    /// Returns the generations that adapters have reported about.
    pub fn reported_generations(&self) -> impl Iterator<Item = (&str, u64)> {
        self.reports().filter_map(|(name, report)| Some((name, report.generation()?.get())))
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("View").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

fn status(resource: &Resource) -> Value {
    let adapters = resource.status.adapters.clone().unwrap_or_else(|| from_conditions(resource));
    json!({ "conditions": resource.status.conditions, "adapters": adapters })
}

/// HyperFleet's own server has no view of adapters, but a condition for each required one. It has no data: for that the reports
/// are read.
fn from_conditions(resource: &Resource) -> Map<String, Value> {
    let named = |condition: &crate::Condition| {
        let name = condition.kind.strip_suffix(SUCCESSFUL_SUFFIX)?;
        let report = json!({
            "available": condition.status.as_str(),
            "observed_generation": condition.observed_generation.known(),
        });
        Some((kebab(name), report))
    };
    resource.status.conditions.iter().filter_map(named).collect()
}

fn metadata(resource: &Resource) -> Value {
    json!({
        "id": resource.id,
        "name": resource.name,
        "kind": resource.kind,
        "labels": resource.labels,
        "tenancy": resource.tenancy,
        "generation": resource.generation,
        "deletionTimestamp": resource.deleted_time,
    })
}

/// `MyAdapter` is the adapter `my-adapter`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_are_known_by_their_reports_or_by_the_conditions() {
        let resource = |status: Value| -> Resource {
            serde_json::from_value(json!({"id": "a", "generation": 2, "status": status})).unwrap()
        };
        let view = View::of(&resource(json!({"adapters": {"dns": {"available": "True", "observed_generation": 1}}})));
        assert_eq!(view.reported_generations().collect::<Vec<_>>(), [("dns", 1)]);
        let condition = json!({"type": "LandingZoneSuccessful", "status": "False", "observed_generation": 2});
        let view = View::of(&resource(json!({"conditions": [condition]})));
        assert_eq!(view.report("landing-zone").unwrap().available(), Some("False"));
        assert_eq!((view.generation, &view.metadata["generation"]), (Generation::from(2), &json!(2)));
    }
}
