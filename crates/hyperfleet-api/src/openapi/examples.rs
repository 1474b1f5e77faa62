//! Example requests; a test sends each of them.

use fleet_model::names::condition::{APPLIED, AVAILABLE, HEALTH};
use serde_json::{Map, Value, json};

use super::superset::beyond;
use crate::entity::{Descriptor, ReferenceRule};

/// Bodies that create a resource of that kind.
pub(super) fn creation(descriptor: &Descriptor) -> Value {
    let kind = &descriptor.kind;
    let name = sample_name(descriptor);
    if kind != "Cluster" {
        let mut body = json!({ "kind": kind, "name": name, "spec": {} });
        let required: Map<String, Value> = descriptor.references.iter().filter_map(needed).collect();
        if let (false, Some(members)) = (required.is_empty(), body.as_object_mut()) {
            members.insert("references".to_owned(), Value::Object(required));
        }
        return named("minimal", "The required members", &body);
    }
    let document =
        r#"{"auths":{"quay.io":{"auth":"b3BlcmF0b3I6bm90LWEtcmVhbC1wYXNzd29yZA==","email":"user@example.com"}}}"#;
    let spec = |pull_secret: Value| json!({ "provider": "gcp", "gcp": { "projectId": "customer-prod-12345" }, "pullSecret": pull_secret });
    let body = |id: &str, name: &str, spec: Value| {
        json!({
            "id": id,
            "kind": kind,
            "name": name,
            "labels": { "environment": "production", "hyperfleet.io/shard": "1" },
            "spec": spec,
        })
    };
    let inline = body("cls-123", "production-cluster", spec(json!({ "data": document })));
    let secret = json!({ "namespace": "clusters", "name": "cls-124-pull-secret", "key": ".dockerconfigjson" });
    let referring = body("cls-124", "staging-cluster", spec(json!({ "secretRef": secret })));
    let mut examples = named("inline", "With its pull secret, which is encrypted at rest", &inline);
    add(&mut examples, "referring", "With a reference to its pull secret", &referring);
    examples
}

/// Bodies that change a resource.
pub(super) fn patch() -> Value {
    let labels = json!({ "labels": { "environment": "production", "hyperfleet.io/shard": "2" } });
    let spec = json!({ "spec": { "provider": "gcp", "gcp": { "projectId": "customer-prod-67890" } } });
    let mut examples = named("labels", "New labels", &labels);
    add(&mut examples, "spec", "A new spec, which must be complete", &spec);
    examples
}

/// Bodies of an adapter's report.
pub(super) fn report() -> Value {
    let condition = |kind: &str, reason: &str, message: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": message });
    let conditions = [
        condition(AVAILABLE, "AllRecordsCreated", "All DNS records created and verified"),
        condition(APPLIED, "JobLaunched", "DNS Job created successfully"),
        condition(HEALTH, "NoErrors", "DNS adapter executed without errors"),
    ];
    let data = json!({ "recordsCreated": ["api.cluster.example.com", "*.apps.cluster.example.com"] });
    let current = json!({
        "adapter": "dns",
        "observed_generation": 1,
        "conditions": conditions,
        "data": data,
        "metadata": { "job_name": "dns-cls-123-gen1", "job_namespace": "hyperfleet-system", "attempt": 1 },
    });
    let legacy = json!({ "adapter": "dns", "observedGeneration": 1, "conditions": conditions, "data": data });
    let mut examples = named("current", "Current member names", &current);
    add(&mut examples, "legacy", "Member names of 2025", &legacy);
    if let Some(legacy) = examples.get_mut("legacy") {
        *legacy = beyond(legacy.take());
    }
    examples
}

/// The body of a forced deletion.
pub(super) fn force_delete() -> Value {
    let body = json!({ "reason": "the management cluster is lost, so no adapter can clean up" });
    named("reason", "With a reason", &body)
}

/// The required references of a type; `None` if none is required.
fn needed(rule: &ReferenceRule) -> Option<(String, Value)> {
    let targets = (1..=rule.min).map(|number| json!({ "id": format!("{}-{number}", rule.target_kind.to_lowercase()) }));
    (rule.min > 0).then(|| (rule.ref_type.clone(), targets.collect()))
}

fn sample_name(descriptor: &Descriptor) -> String {
    let mut name: String = descriptor.kind.to_lowercase().chars().take(descriptor.max_name_length()).collect();
    while name.len() < descriptor.min_name_length() {
        name.push('0');
    }
    name
}

fn named(name: &str, summary: &str, value: &Value) -> Value {
    let mut examples = Value::Object(Map::new());
    add(&mut examples, name, summary, value);
    examples
}

fn add(examples: &mut Value, name: &str, summary: &str, value: &Value) {
    if let Some(examples) = examples.as_object_mut() {
        examples.insert(name.to_owned(), json!({ "summary": summary, "value": value }));
    }
}
