//! Tombstones in the document: their paths, body and schemas.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::operation::{Access, Operation, SuccessResponse};
use super::parameters::{self, shared};
use super::reference::schema;
use super::schemas::list;
use crate::entity::{BASE_PATH, Descriptor};

/// The paths of the tombstones of a kind.
pub(super) fn paths(descriptor: &Descriptor) -> Map<String, Value> {
    let Descriptor { kind, plural, .. } = descriptor;
    let base = format!("{BASE_PATH}/tombstones/{plural}");
    let read = Operation {
        id: format!("list{kind}Tombstones"),
        tag: kind.clone(),
        summary: format!("Read the tombstones of resources of the kind {kind}"),
        description:
            "A forced deletion leaves one until the copies in it are swept, or for `tombstones.retention`. Oldest \
                      first."
                .to_owned(),
        parameters: vec![shared("Page"), shared("Size")],
        responses: vec![SuccessResponse::json(StatusCode::OK, "A page of tombstones.", schema("TombstoneList"))],
        problems: vec![StatusCode::BAD_REQUEST],
        access: Access::Reads,
        is_beyond: true,
        ..Operation::default()
    };
    let swept = Operation {
        id: format!("post{kind}TombstoneSwept"),
        tag: kind.clone(),
        summary: format!("Report that copies of a removed resource of the kind {kind} are deleted"),
        description: "A tombstone without copies is removed.".to_owned(),
        body: Some((schema("Swept"), example())),
        responses: vec![
            SuccessResponse::json(StatusCode::OK, "The tombstone with the copies that are left.", schema("Tombstone")),
            SuccessResponse::empty("No copies are left, and the tombstone is removed."),
        ],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        access: Access::Writes,
        is_beyond: true,
        ..Operation::default()
    };
    let parameters = vec![parameters::id("tombstone_id", "tombstone")];
    let of_one = json!({ "parameters": parameters, "post": swept.value() });
    [(base.clone(), json!({ "get": read.value() })), (format!("{base}/{{tombstone_id}}/swept"), of_one)]
        .into_iter()
        .collect()
}

/// The schemas.
pub(super) fn schemas() -> impl Iterator<Item = (String, Value)> {
    let copies = json!({
        "description": "The copies, as adapters have reported them in `data.copies`.",
        "type": "array",
        "items": { "type": "object" },
    });
    let swept = json!({
        "description": "The copies that are deleted, as the tombstone has them.",
        "type": "object",
        "required": ["copies"],
        "properties": { "copies": { "type": "array" } },
    });
    let schemas = [
        ("Tombstone", tombstone(&copies)),
        ("TombstoneList", list("A page of tombstones.", &schema("Tombstone"))),
        ("Swept", swept),
    ];
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema))
}

fn tombstone(copies: &Value) -> Value {
    let text = |description: &str| json!({ "description": description, "type": "string" });
    let time = |description: &str| json!({ "description": description, "type": "string", "format": "date-time" });
    json!({
        "description": "The record of a resource that was removed by force.",
        "type": "object",
        "required": [
            "id", "resource_id", "kind", "name", "incarnation", "generation", "tenancy", "removed_time", "removed_by", "reason",
            "copies",
        ],
        "properties": {
            "id": text("The id of the tombstone."),
            "resource_id": text("The id of the removed resource."),
            "kind": text("The kind of the removed resource."),
            "name": text("The name of the removed resource."),
            "incarnation": time("The creation time of the removed resource, which tells it from others with its id."),
            "generation": { "description": "The last generation.", "type": "integer", "format": "int64", "minimum": 1 },
            "tenancy": { "description": "The tenancy.", "type": "object", "additionalProperties": { "type": "string" } },
            "removed_time": time("The time of the removal."),
            "removed_by": text("The identity that removed it."),
            "reason": text("The reason that was given."),
            "copies": copies,
        },
    })
}

fn example() -> Value {
    let copy = json!({ "kind": "secret", "project": "my-project", "name": "hyperfleet-cls-123-pull-secret" });
    json!({ "one": { "summary": "One copy", "value": { "copies": [copy] } } })
}
