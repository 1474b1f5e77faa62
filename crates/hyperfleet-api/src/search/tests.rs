//! Tests of the search language: tables of examples, properties, and both databases against the evaluation in memory.

mod databases;
mod errors;
mod fields;
mod fuzz;
mod generated;
mod matching;
mod order;
mod properties;
mod sql;

use fleet_model::{Condition, Generation, Status};
use serde_json::{Value as Json, json};

use super::*;
use crate::resource::{State, Target};

/// A node pool with values of every type.
fn example() -> Resource {
    let time = |text: &str| text.parse().unwrap();
    let condition = |kind: &str, status| Condition {
        kind: kind.to_owned(),
        status,
        reason: (kind == "Reconciled").then(|| "ReconciledAll".to_owned()),
        message: None,
        observed_generation: Generation::from(3),
        created_time: time("2026-01-01T00:00:00Z"),
        last_updated_time: time("2026-01-03T00:00:00.5Z"),
        last_transition_time: time("2026-01-02T00:00:00Z"),
        reason_since_time: time("2026-01-02T00:00:00Z"),
    };
    Resource {
        id: "0198".to_owned(),
        kind: "NodePool".to_owned(),
        name: "workers".to_owned(),
        owner: Some(Target { id: "0197".to_owned(), kind: "Cluster".to_owned(), href: String::new() }),
        spec: members(json!({
            "platform": {"gcp": {"project_id": "p-1", "zones": ["a"], "0": "zero"}, "type": "gcp"},
            "replicas": 3, "share": 0.5, "spot": true, "tiny": 1e-9, "none": null, "text": "3", "list": [{"a": 1}], "empty": "",
        })),
        href: "/api/hyperfleet/v1/clusters/0197".to_owned(),
        generation: Generation::from(4),
        created_time: time("2026-01-01T00:00:00Z"),
        created_by: "ada@example.com".to_owned(),
        updated_time: time("2026-01-02T12:00:00Z"),
        updated_by: "O'Hara \\ Söhne".to_owned(),
        deleted_time: None,
        deleted_by: None,
        state: State {
            labels: [("shard", "1"), ("cost-center", "cc-7"), ("hyperfleet.io/cluster-id", "c1")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            conditions: vec![condition("Reconciled", Status::True), condition("ProbeSuccessful", Status::False)],
            ..State::default()
        },
    }
}

fn members(value: Json) -> serde_json::Map<String, Json> {
    let Json::Object(members) = value else { panic!("{value} is not an object") };
    members
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}
