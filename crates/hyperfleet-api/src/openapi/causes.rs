//! Causes in the document: their paths and schemas.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::operation::{Access, Operation, SuccessResponse};
use super::parameters::shared;
use super::reference::schema;
use crate::entity::{BASE_PATH, Descriptor, Registry};

/// The path of the causes of a kind that has required adapters.
pub(super) fn paths(descriptor: &Descriptor) -> Map<String, Value> {
    let Descriptor { kind, plural, required_adapters, .. } = descriptor;
    if required_adapters.is_empty() {
        return Map::new();
    }
    let adapter = json!({
        "name": "adapter",
        "in": "query",
        "required": true,
        "description": "The adapter whose condition is grouped.",
        "schema": { "type": "string", "enum": required_adapters },
    });
    let read = Operation {
        id: format!("list{kind}Causes"),
        tag: kind.clone(),
        summary: format!("Read what blocks an adapter on resources of the kind {kind}"),
        description:
            "Groups the resources for which the adapter's condition is not True at their generation: those with one reason, \
             and with messages that differ only in names, numbers and quoted values, are one cause. That of most resources \
             comes first, then the oldest. It needs the permission to list."
                .to_owned(),
        parameters: vec![adapter, shared("Search")],
        responses: vec![SuccessResponse::json(StatusCode::OK, "The causes.", schema("Causes"))],
        problems: vec![StatusCode::BAD_REQUEST],
        access: Access::Reads,
        is_beyond: true,
        ..Operation::default()
    };
    Map::from_iter([(format!("{BASE_PATH}/causes/{plural}"), json!({ "get": read.value() }))])
}

/// The schemas, if there is a path that uses them.
pub(super) fn schemas(registry: &Registry) -> impl Iterator<Item = (String, Value)> {
    let is_used = registry.descriptors().iter().any(|descriptor| !descriptor.required_adapters.is_empty());
    let schemas = is_used.then(|| [("Causes", causes()), ("Cause", cause())]);
    schemas.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema))
}

fn causes() -> Value {
    json!({
        "description": "The resources for which an adapter's work is not done, by cause.",
        "type": "object",
        "required": ["condition", "total", "done", "items"],
        "properties": {
            "condition": text("The type of the condition that repeats what the adapter reports."),
            "total": count("The number of resources.", 0),
            "done": count("The number of those whose condition is True at their generation.", 0),
            "items": { "type": "array", "items": schema("Cause") },
        },
    })
}

fn cause() -> Value {
    let flag = |description: &str| json!({ "description": description, "type": "boolean" });
    let time = |description: &str| json!({ "description": description, "type": "string", "format": "date-time" });
    let example = json!({
        "type": "object",
        "required": ["id", "name"],
        "properties": { "id": text("The id."), "name": text("The name.") },
    });
    json!({
        "description": "Resources with one reason and messages of one form.",
        "type": "object",
        "required": ["outdated", "terminating", "count", "examples"],
        "properties": {
            "status": {
                "description": "The status of the condition; absent where the adapter has not reported.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": text("The reason of the condition."),
            "outdated": flag("True if the condition is of an older generation."),
            "terminating": flag("True if the deletion of the resources was requested."),
            "message": text("The message of the first example; absent where there are too many different ones."),
            "count": count("The number of resources.", 1),
            "since_time": time("The time since which the first of the resources has the reason."),
            "last_report_time": time("The time of the adapter's last report about any of the resources."),
            "examples": { "description": "Some of the resources.", "type": "array", "maxItems": 3, "items": example },
        },
    })
}

fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn count(description: &str, minimum: u64) -> Value {
    json!({ "description": description, "type": "integer", "format": "int64", "minimum": minimum })
}
