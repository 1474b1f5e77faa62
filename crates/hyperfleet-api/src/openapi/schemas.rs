//! What answers look like.

use serde_json::{Map, Value, json};

use super::parameters::ID;
use super::{requests, schema};
use crate::entity::{Descriptor, Registry};
use crate::problem::Code;

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

/// What is the same for every kind.
pub(super) fn common() -> Map<String, Value> {
    let answers = vec![
        ("Resource", resource(None)),
        ("ResourceList", list("A page of resources.", &schema("Resource"))),
        ("ResourceStatus", status()),
        ("Condition", condition()),
        ("AdapterView", adapter_view()),
        ("AdapterStatus", adapter_status()),
        ("AdapterStatusList", list("A page of adapters' last reports.", &schema("AdapterStatus"))),
        ("AdapterCondition", adapter_condition()),
        ("Transition", transition()),
        ("TransitionList", list("A page of transitions, newest first; the last 50 are kept.", &schema("Transition"))),
        ("Target", target()),
        ("ChangeEvent", change_event()),
        ("Problem", problem()),
        ("FieldError", field_error()),
        ("Service", service()),
    ];
    answers.into_iter().chain(requests::common()).map(|(name, schema)| (name.to_owned(), schema)).collect()
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
        "description": "What is wanted of it, and what is known about it.",
        "type": "object",
        "required": required,
        "properties": {
            "id": { "type": "string", "pattern": ID },
            "kind": kind,
            "name": { "type": "string" },
            "href": { "description": "Where it is served.", "type": "string", "format": "uri-reference" },
            "spec": schema("Spec"),
            "labels": { "description": "Absent if there are none.", "type": "object", "additionalProperties": texts },
            "tenancy": { "description": "Whose it is.", "type": "object", "additionalProperties": texts },
            "generation": generation("Counts up with each change of what is wanted, and with the deletion."),
            "status": schema("ResourceStatus"),
            "references": {
                "description": "By type of reference; absent if there are none.",
                "type": "object",
                "additionalProperties": targets,
            },
            "owner_references": schema("Target"),
            "created_time": time("When it was created."),
            "created_by": { "type": "string" },
            "updated_time": time("When what is wanted last changed."),
            "updated_by": { "type": "string" },
            "deleted_time": time("When its deletion was asked for; absent while it lives."),
            "deleted_by": { "type": "string" },
        },
    })
}

fn status() -> Value {
    json!({
        "description": "What is the case, by the adapters' reports.",
        "type": "object",
        "required": ["conditions", "adapters"],
        "properties": {
            "conditions": {
                "description": "What the server concludes: Reconciled, LastKnownReconciled, one for each required adapter \
                                that has reported, and those of the configuration.",
                "type": "array",
                "items": schema("Condition"),
            },
            "adapters": {
                "description": "Each adapter's last report, by its name, for expressions such as \
                                `status.adapters.dns.available == \"True\"`.",
                "type": "object",
                "additionalProperties": schema("AdapterView"),
            },
        },
    })
}

fn condition() -> Value {
    json!({
        "description": "A conclusion of the server.",
        "type": "object",
        "required": [
            "type", "status", "observed_generation", "created_time", "last_updated_time", "last_transition_time",
        ],
        "properties": {
            "type": { "type": "string", "minLength": 1 },
            "status": { "type": "string", "enum": ["True", "False"] },
            "reason": { "description": "One word, for programs.", "type": "string" },
            "message": { "description": "A sentence, for people.", "type": "string" },
            "observed_generation": generation("The generation that it speaks of."),
            "created_time": time("When a condition of this type first appeared."),
            "last_updated_time": time("When what it rests on was last observed."),
            "last_transition_time": time("When its status last changed."),
        },
    })
}

fn adapter_view() -> Value {
    json!({
        "description": "An adapter's last report at a glance.",
        "type": "object",
        "required": ["available", "observed_generation", "conditions", "data", "last_report_time"],
        "properties": {
            "available": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "observed_generation": generation("The generation that it looked at."),
            "conditions": { "type": "array", "items": schema("AdapterCondition") },
            "data": { "type": "object" },
            "last_report_time": time("The adapter's own time."),
        },
    })
}

fn adapter_status() -> Value {
    json!({
        "description": "An adapter's last report, as it is stored.",
        "type": "object",
        "required": ["adapter", "observed_generation", "conditions", "data", "created_time", "last_report_time"],
        "properties": {
            "adapter": { "type": "string", "minLength": 1 },
            "observed_generation": generation("The generation that it looked at."),
            "conditions": { "type": "array", "items": schema("AdapterCondition") },
            "data": { "type": "object" },
            "metadata": schema("Metadata"),
            "created_time": time("The time of this adapter's first report."),
            "last_report_time": time("The time of this one."),
        },
    })
}

fn adapter_condition() -> Value {
    json!({
        "description": "A finding of an adapter.",
        "type": "object",
        "required": ["type", "status", "last_transition_time"],
        "properties": {
            "type": { "type": "string", "minLength": 1 },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": { "type": "string" },
            "message": { "type": "string" },
            "last_transition_time": time("When its status last changed, in the adapter's time."),
        },
    })
}

fn transition() -> Value {
    let statuses = ["True", "False", "Unknown"];
    let text = json!({ "type": ["string", "null"] });
    json!({
        "description": "A condition that changed its status.",
        "type": "object",
        "required": ["adapter", "type", "from", "to", "reason", "message", "observed_generation", "time"],
        "properties": {
            "adapter": { "description": "Whose condition; `hyperfleet` where the server concluded it.", "type": "string" },
            "type": { "type": "string", "minLength": 1 },
            "from": { "type": ["string", "null"], "enum": [statuses[0], statuses[1], statuses[2], null] },
            "to": { "type": "string", "enum": statuses },
            "reason": text,
            "message": text,
            "observed_generation": generation("The generation that it speaks of."),
            "time": time("When, in the time of whoever observed it."),
        },
    })
}

fn target() -> Value {
    json!({
        "description": "Another resource.",
        "type": "object",
        "required": ["id", "kind", "href"],
        "properties": {
            "id": { "type": "string", "pattern": ID },
            "kind": { "type": "string" },
            "href": { "type": "string", "format": "uri-reference" },
        },
    })
}

fn change_event() -> Value {
    json!({
        "description": "A line of a change stream. The object is the resource; of a BOOKMARK only the kind; of an ERROR, \
                        after which the stream ends, a problem. A DELETED object is as it last was.",
        "type": "object",
        "required": ["type", "resource_version", "object"],
        "properties": {
            "type": { "type": "string", "enum": ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] },
            "resource_version": { "description": "Where to go on, as `resource_version`.", "type": "string" },
            "object": { "type": "object" },
        },
    })
}

fn problem() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "description": "Why a request was not carried out (RFC 9457).",
        "type": "object",
        "required": ["type", "title", "status", "detail", "instance", "code", "timestamp", "trace_id"],
        "properties": {
            "type": { "type": "string", "format": "uri" },
            "title": { "type": "string" },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "description": "What is wrong and what to do, for people.", "type": "string" },
            "instance": { "description": "The request's path.", "type": "string" },
            "code": { "description": "Which problem it is, for programs.", "type": "string", "enum": codes },
            "timestamp": time("When."),
            "trace_id": { "description": "The request in the server's log.", "type": "string", "format": "uuid" },
            "errors": { "type": "array", "minItems": 1, "items": schema("FieldError") },
        },
    })
}

fn field_error() -> Value {
    json!({
        "description": "Where in the request.",
        "type": "object",
        "required": ["field", "message"],
        "properties": {
            "field": { "description": "A member's path or a parameter's name.", "type": "string" },
            "value": { "description": "What was given, where showing it is harmless.", "type": "string" },
            "constraint": {
                "type": "string",
                "enum": ["required", "min", "max", "min_length", "max_length", "pattern", "enum", "format", "unique"],
            },
            "message": { "type": "string" },
        },
    })
}

fn service() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "href", "version", "build_time"],
        "properties": {
            "id": { "type": "string", "enum": ["hyperfleet"] },
            "kind": { "type": "string", "enum": ["API"] },
            "href": { "type": "string", "format": "uri-reference" },
            "version": { "type": "string" },
            "build_time": { "type": "string" },
        },
    })
}

fn list(description: &str, item: &Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "required": ["page", "size", "total", "items"],
        "properties": {
            "page": { "type": "integer", "minimum": 1 },
            "size": { "description": "How many are on this page.", "type": "integer", "minimum": 0, "maximum": 100 },
            "total": { "description": "How many there are.", "type": "integer", "format": "int64", "minimum": 0 },
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
