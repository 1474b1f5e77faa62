//! The schemas of responses.

use serde_json::{Map, Value, json};

use super::reference::schema;
use super::superset::{BEYOND, beyond};
use super::{derived, requests};
use crate::entity::{Descriptor, Registry};
use crate::resource::ID_PATTERN;

/// The resources of each kind, and lists of them.
pub(super) fn of_kinds(registry: &Registry) -> Map<String, Value> {
    let mut schemas = Map::new();
    for descriptor in registry.descriptors() {
        schemas.insert(descriptor.kind.clone(), resource(Some(descriptor)));
        let items = list(&format!("A page of resources of the kind {}.", descriptor.kind), &schema(&descriptor.kind));
        schemas.insert(format!("{}List", descriptor.kind), items);
    }
    schemas
}

/// The schemas that are the same for every kind.
pub(super) fn common() -> Map<String, Value> {
    let responses = vec![
        ("Resource", resource(None)),
        ("ResourceList", list("A page of resources.", &schema("Resource"))),
        ("ResourceStatus", status()),
        ("Condition", condition()),
        ("AdapterView", adapter_view()),
        ("AdapterStatus", adapter_status()),
        ("AdapterStatusList", list("A page of adapters' latest reports.", &schema("AdapterStatus"))),
        ("AdapterCondition", adapter_condition()),
        ("Transition", transition()),
        ("TransitionList", list("A page of transitions, newest first; the last 50 are kept.", &schema("Transition"))),
        ("ChangeEvent", change_event()),
    ];
    let written = responses.into_iter().chain(requests::common()).map(|(name, schema)| (name.to_owned(), schema));
    written.chain(derived::schemas()).collect()
}

fn resource(descriptor: Option<&Descriptor>) -> Value {
    let mut required = vec![
        "id",
        "kind",
        "name",
        "href",
        "spec",
        "tenancy",
        "generation",
        "status",
        "created_time",
        "created_by",
        "updated_time",
        "updated_by",
    ];
    if descriptor.is_some_and(|descriptor| descriptor.parent_kind.is_some()) {
        required.push("owner_references");
    }
    let kind = match descriptor {
        Some(descriptor) => json!({ "type": "string", "enum": [descriptor.kind] }),
        None => json!({ "type": "string" }),
    };
    let targets = json!({ "type": "array", "minItems": 1, "items": schema("Target") });
    let texts = json!({ "type": "string" });
    json!({
        "description": "A resource: its desired state and its status.",
        "type": "object",
        "required": required,
        "properties": {
            "id": { "type": "string", "pattern": ID_PATTERN },
            "kind": kind,
            "name": { "type": "string" },
            "href": { "description": "The path of the resource.", "type": "string", "format": "uri-reference" },
            "spec": schema("Spec"),
            "labels": { "description": "The labels; absent if there are none.", "type": "object", "additionalProperties": texts },
            "tenancy": { "description": "The tenancy.", "type": "object", "additionalProperties": texts },
            "generation": generation("The revision of the desired state; increases with each change and with the deletion."),
            "status": schema("ResourceStatus"),
            "references": {
                "description": "The references by type; absent if there are none.",
                "type": "object",
                "additionalProperties": targets,
            },
            "owner_references": schema("Target"),
            "created_time": time("The time of the creation."),
            "created_by": { "type": "string" },
            "updated_time": time("The time of the last change of the desired state."),
            "updated_by": { "type": "string" },
            "deleted_time": time("The time at which its deletion was requested; absent before."),
            "deleted_by": { "type": "string" },
            "traceparent": {
                BEYOND: true,
                "description": "The trace context of the request that has made this generation, in the W3C's form; absent if it was not \
                                traced.",
                "type": "string",
            },
        },
    })
}

fn status() -> Value {
    json!({
        "description": "The status, derived from the adapters' reports.",
        "type": "object",
        "required": ["conditions", "adapters"],
        "properties": {
            "conditions": {
                "description": "The derived conditions: Reconciled, LastKnownReconciled, one for each required adapter that \
                                has reported, and those of the configuration.",
                "type": "array",
                "items": schema("Condition"),
            },
            "adapters": {
                BEYOND: true,
                "description": "The latest report of each adapter by name, for expressions such as \
                                `status.adapters.dns.available == \"True\"`.",
                "type": "object",
                "additionalProperties": schema("AdapterView"),
            },
        },
    })
}

fn condition() -> Value {
    json!({
        "description": "A condition that the server derives.",
        "type": "object",
        "required": [
            "type", "status", "observed_generation", "created_time", "last_updated_time", "last_transition_time",
        ],
        "properties": {
            "type": { "type": "string", "minLength": 1 },
            "status": { "type": "string", "enum": ["True", "False"] },
            "reason": { "description": "The reason in one word, for programs.", "type": "string" },
            "message": { "description": "An explanation, for people.", "type": "string" },
            "observed_generation": generation("The generation that the condition describes."),
            "created_time": time("The time at which a condition of this type first appeared."),
            "last_updated_time": time("The time at which its evidence was last observed."),
            "last_transition_time": time("The time of the last change of its status."),
            "reason_since_time": beyond(time("The time since which status and reason are what they are.")),
        },
    })
}

fn adapter_view() -> Value {
    json!({
        "description": "A summary of an adapter's latest report.",
        "type": "object",
        "required": ["available", "observed_generation", "conditions", "data", "last_report_time"],
        "properties": {
            "available": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "observed_generation": generation("The generation that the adapter observed."),
            "conditions": { "type": "array", "items": schema("AdapterCondition") },
            "data": { "type": "object" },
            "last_report_time": time("The time of the report, by the adapter's clock."),
        },
    })
}

fn adapter_status() -> Value {
    json!({
        "description": "An adapter's latest report, as stored.",
        "type": "object",
        "required": ["adapter", "observed_generation", "conditions", "data", "created_time", "last_report_time"],
        "properties": {
            "adapter": { "type": "string", "minLength": 1 },
            "observed_generation": generation("The generation that the adapter observed."),
            "conditions": { "type": "array", "items": schema("AdapterCondition") },
            "data": { "type": "object" },
            "metadata": schema("Metadata"),
            "created_time": time("The time of the adapter's first report."),
            "last_report_time": time("The time of this report."),
        },
    })
}

fn adapter_condition() -> Value {
    json!({
        "description": "A condition in an adapter's report.",
        "type": "object",
        "required": ["type", "status", "last_transition_time"],
        "properties": {
            "type": { "type": "string", "minLength": 1 },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": { "type": "string" },
            "message": { "type": "string" },
            "last_transition_time": time("The time of the last change of its status, by the adapter's clock."),
        },
    })
}

fn transition() -> Value {
    let statuses = ["True", "False", "Unknown"];
    let text = json!({ "type": ["string", "null"] });
    json!({
        "description": "A change of a condition's status or reason; where only the reason changed, `from` is `to`.",
        "type": "object",
        "required": ["adapter", "type", "from", "to", "reason", "message", "observed_generation", "time"],
        "properties": {
            "adapter": { "description": "The adapter that reported the condition; `hyperfleet-api` for conditions of the server.", "type": "string" },
            "type": { "type": "string", "minLength": 1 },
            "from": { "type": ["string", "null"], "enum": [statuses[0], statuses[1], statuses[2], null] },
            "to": { "type": "string", "enum": statuses },
            "reason": text,
            "message": text,
            "observed_generation": generation("The generation that the condition describes."),
            "time": time("The time of the change, by the clock of the observer."),
        },
    })
}

fn change_event() -> Value {
    json!({
        BEYOND: true,
        "description": "A line of a change stream. The object is the resource; for BOOKMARK only the kind; for ERROR, which \
                        ends the stream, a problem. The object of DELETED is its last state.",
        "type": "object",
        "required": ["type", "resource_version", "object"],
        "properties": {
            "type": { "type": "string", "enum": ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] },
            "resource_version": { "description": "The version from which to resume, as `resource_version`.", "type": "string" },
            "object": { "type": "object" },
        },
    })
}

pub(super) fn list(description: &str, item: &Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "required": ["page", "size", "total", "items"],
        "properties": {
            "page": { "type": "integer", "minimum": 1 },
            "size": { "description": "The number of items on this page.", "type": "integer", "minimum": 0, "maximum": 100 },
            "total": { "description": "The number of items on all pages.", "type": "integer", "format": "int64", "minimum": 0 },
            "items": { "type": "array", "maxItems": 100, "items": item },
        },
    })
}

fn generation(description: &str) -> Value {
    json!({ "description": description, "type": "integer", "format": "int64", "minimum": 1 })
}

fn time(description: &str) -> Value {
    json!({ "description": description, "type": "string", "format": "date-time" })
}
