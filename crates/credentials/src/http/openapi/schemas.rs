//! The schemas of the `OpenAPI` document.

use serde_json::{Map, Value, json};

use crate::http::problem::Code;

/// Returns all schemas.
pub(super) fn all() -> Value {
    merged([credentials(), requests(), rotations(), problems(), ams()])
}

/// Returns the members of several objects as one object.
pub(super) fn merged(objects: impl IntoIterator<Item = Value>) -> Value {
    let members = objects.into_iter().filter_map(|object| match object {
        Value::Object(members) => Some(members),
        _ => None,
    });
    Value::Object(members.flatten().collect::<Map<_, _>>())
}

/// Returns a reference to a schema.
pub(super) fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn credentials() -> Value {
    json!({
        "PullSecrets": object(&["cluster_id", "state", "credentials"], &json!({
            "cluster_id": { "type": "string" },
            "state": {
                "type": "string",
                "enum": ["ready", "pending", "retiring"],
                "description": "`ready`: nodes can pull from every registry; `retiring`: all credentials are on their way out.",
            },
            "pull_secret": reference("PullSecretDocument"),
            "credentials": { "type": "array", "items": reference("Credential") },
            "created_at": time(),
            "last_rotated_at": time(),
        })),
        "PullSecretDocument": object(&["auths"], &json!({
            "auths": { "type": "object", "additionalProperties": { "type": "object", "properties": { "auth": { "type": "string" } } } },
        })),
        "Credential": object(&["credential_id", "registry_id", "state", "reason"], &json!({
            "credential_id": uuid(),
            "registry_id": { "type": "string", "description": "The name of the registry in the service's configuration." },
            "username": { "type": ["string", "null"] },
            "state": { "type": "string", "description": "A state of the ledger." },
            "reason": { "type": "string", "description": "The reason for which it is there." },
            "replaces": { "type": ["string", "null"], "format": "uuid" },
            "ordered": { "type": ["string", "null"], "enum": ["retirement", "revocation", null] },
            "created_at": time(),
            "expires_at": time(),
            "published_at": time(),
            "adopted_at": time(),
        })),
    })
}

fn requests() -> Value {
    json!({
        "NewPullSecrets": object(&[], &json!({
            "cluster_id": { "type": "string", "description": "That of the path, if it is given." },
            "cloud_provider": { "type": "string", "description": "Without effect." },
            "region": { "type": "string", "description": "Without effect." },
            "registries": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Names of registries whose search finds the cluster; all of them without it.",
            },
        })),
        "NewRotation": object(&["reason"], &json!({
            "reason": { "type": "string", "enum": ["scheduled", "compromise", "manual"] },
            "force_immediate": {
                "type": "boolean",
                "description": "Revoke the old credentials at once, whatever uses them; `compromise` does so anyway.",
            },
        })),
    })
}

fn rotations() -> Value {
    json!({
        "Rotation": object(&["rotation_id", "cluster_id", "status", "reason", "created_at", "progress"], &rotation()),
        "Rotations": object(&["rotations", "pagination"], &json!({
            "rotations": { "type": "array", "items": reference("Rotation") },
            "pagination": object(&["has_more", "total_count"], &json!({
                "next_cursor": { "type": ["string", "null"] },
                "has_more": { "type": "boolean" },
                "total_count": { "type": "integer" },
            })),
        })),
    })
}

fn problems() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let meanings: Vec<String> = Code::ALL
        .iter()
        .map(|code| format!("- `{}` ({}): {}", code.as_str(), code.status().as_u16(), code.meaning()))
        .collect();
    json!({
        "Problem": object(&["type", "title", "status", "detail", "instance", "code", "timestamp", "trace_id"], &json!({
            "type": { "type": "string", "format": "uri" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "instance": { "type": "string" },
            "code": { "type": "string", "enum": codes, "description": meanings.join("\n") },
            "timestamp": { "type": "string", "format": "date-time" },
            "trace_id": uuid(),
            "errors": { "type": "array", "items": reference("FieldError") },
        })),
        "FieldError": object(&["field", "constraint", "message"], &json!({
            "field": { "type": "string" },
            "constraint": { "type": "string" },
            "message": { "type": "string" },
        })),
    })
}

fn ams() -> Value {
    json!({
        "AmsPullSecretRequest": object(&["external_resource_id"], &json!({
            "external_resource_id": { "type": "string", "description": "The id of the cluster." },
        })),
        "AmsPullSecret": object(&["auths"], &json!({
            "auths": { "type": "object", "additionalProperties": {
                "type": "object",
                "properties": { "auth": { "type": "string" }, "email": { "type": "string", "description": "Empty." } },
            }},
        })),
        "AmsError": object(&["kind", "id", "href", "code", "reason"], &json!({
            "kind": { "type": "string", "enum": ["Error"] },
            "id": { "type": "string" },
            "href": { "type": "string" },
            "code": { "type": "string" },
            "reason": { "type": "string" },
            "details": { "type": "array", "items": reference("FieldError") },
            "operation_id": uuid(),
        })),
    })
}

fn rotation() -> Value {
    json!({
        "rotation_id": uuid(),
        "cluster_id": { "type": "string" },
        "status": { "type": "string", "enum": ["pending", "in_progress", "completed", "failed", "cancelled"] },
        "reason": { "type": "string", "enum": ["scheduled", "compromise", "manual"] },
        "force_immediate": { "type": "boolean" },
        "created_at": { "type": "string", "format": "date-time" },
        "created_by": { "type": "string" },
        "estimated_completion": time(),
        "completed_at": time(),
        "progress": object(&["phase", "new_credentials_created", "old_credentials_revoked", "credentials"], &json!({
            "phase": {
                "type": "string",
                "enum": [
                    "creating_credentials", "dual_credential_period", "awaiting_adoption", "retiring_old_credentials", "completed", "failed",
                    "cancelled",
                ],
            },
            "new_credentials_created": { "type": "boolean" },
            "old_credentials_revoked": { "type": "boolean" },
            "credentials": { "type": "array", "items": object(&["registry_id", "old_credential_id", "new_credential_id"], &json!({
                "registry_id": { "type": "string" },
                "old_credential_id": uuid(),
                "old_state": { "type": "string" },
                "old_revocation": {
                    "type": ["string", "null"],
                    "enum": ["requested", "ordered", null],
                    "description": "`requested` while another person has to approve it.",
                },
                "new_credential_id": uuid(),
                "new_state": { "type": "string" },
                "reason": { "type": "string" },
            }))},
        })),
    })
}

fn object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

fn time() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}
