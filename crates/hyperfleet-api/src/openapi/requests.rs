//! The schemas of request bodies, with the rules that the server checks.

use fleet_model::names::condition::{APPLIED, AVAILABLE, HEALTH};
use serde_json::{Map, Value, json};

use super::reference::schema;
use super::superset::{BEYOND, beyond};
use crate::entity::{Descriptor, ReferenceRule, Registry};
use crate::resource::ID_PATTERN;

/// The syntax of names: a DNS label; its maximum length depends on the kind.
const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// The syntax of a label's value and of the last part of its key.
const LABEL: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";

/// The syntax of a part of a DNS name.
const DNS: &str = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";

/// The bodies of each kind.
pub(super) fn of_kinds(registry: &Registry) -> Map<String, Value> {
    let mut schemas = Map::new();
    for descriptor in registry.descriptors() {
        let kind = &descriptor.kind;
        schemas.insert(format!("{kind}Create"), creation(descriptor));
        schemas.insert(format!("{kind}Patch"), patch(kind, &references(&descriptor.references)));
    }
    let roots = registry.descriptors().iter().filter(|descriptor| descriptor.parent_kind.is_none());
    let roots: Vec<&str> = roots.map(|root| root.kind.as_str()).collect();
    schemas.insert("ResourceCreate".to_owned(), any_creation(&roots));
    let any = json!({
        "description": "By type of reference; the kind defines the types.",
        "type": ["object", "null"],
        "additionalProperties": { "type": ["array", "null"], "items": target(None) },
    });
    schemas.insert("ResourcePatch".to_owned(), patch("resource", &any));
    schemas
}

/// The bodies and parts of bodies that are the same for every kind.
pub(super) fn common() -> Vec<(&'static str, Value)> {
    vec![
        ("Labels", labels()),
        ("Spec", spec()),
        ("ForceDelete", force_delete()),
        ("Report", report()),
        ("ReportedCondition", reported_condition()),
        ("Metadata", metadata()),
    ]
}

fn creation(descriptor: &Descriptor) -> Value {
    let Descriptor { kind, references: rules, spec_schema_name, .. } = descriptor;
    let mut required = vec!["kind", "name", "spec"];
    if rules.iter().any(|rule| rule.min > 0) {
        required.push("references");
    }
    let more = spec_schema_name.as_ref().map_or_else(String::new, |name| {
        format!(" Its spec must satisfy `{name}` of the document in `server.openapi_schema_path`.")
    });
    json!({
        "description": format!("The desired state of a new {kind}.{more} Unknown members are ignored."),
        "type": "object",
        "required": required,
        "properties": {
            "id": {
                BEYOND: true,
                "description": "An id of the client's choice, unique over all kinds. By default the server generates a UUID, version 7. Where tenants are isolated, only identities with `all_tenants` may choose one.",
                "type": ["string", "null"],
                "pattern": ID_PATTERN,
                "maxLength": 63,
            },
            "kind": { "type": "string", "enum": [kind] },
            "name": {
                "description": "Unique among the resources of the kind, or below the owner, that are not deleted.",
                "type": "string",
                "pattern": NAME,
                "minLength": descriptor.min_name_length(),
                "maxLength": descriptor.max_name_length(),
            },
            "spec": schema("Spec"),
            "labels": schema("Labels"),
            "references": references(rules),
        },
    })
}

fn any_creation(roots: &[&str]) -> Value {
    if roots.is_empty() {
        return json!({ "description": "No kinds are configured, so nothing can be created.", "not": {} });
    }
    let one = |kind: &&str| schema(&format!("{kind}Create"));
    let mapping: Map<String, Value> =
        roots.iter().map(|kind| ((*kind).to_owned(), json!(format!("#/components/schemas/{kind}Create")))).collect();
    json!({
        "description": "The desired state of a new resource. A kind with a parent can only be created below an owner.",
        "oneOf": roots.iter().map(one).collect::<Vec<_>>(),
        "discriminator": { "propertyName": "kind", "mapping": mapping },
    })
}

fn patch(kind: &str, references: &Value) -> Value {
    json!({
        "description": format!(
            "The changes of a {kind}. Each given member replaces the stored one as a whole: send the complete spec. A change \
             makes a new generation; given references always count as a change."
        ),
        "type": "object",
        "additionalProperties": false,
        "minProperties": 1,
        "properties": {
            "spec": { "anyOf": [schema("Spec"), { "type": "null" }] },
            "labels": schema("Labels"),
            "references": references,
        },
    })
}

fn references(rules: &[ReferenceRule]) -> Value {
    let of = |rule: &ReferenceRule| {
        let mut targets = json!({
            "description": format!("{} of the kind {}", bounds(rule), rule.target_kind),
            "type": ["array", "null"],
            "items": target(Some(&rule.target_kind)),
        });
        if let Some(members) = targets.as_object_mut() {
            if rule.max > 0 {
                members.insert("maxItems".to_owned(), json!(rule.max));
            }
            if rule.min > 0 {
                members.insert("minItems".to_owned(), json!(rule.min));
                members.insert("type".to_owned(), json!("array"));
            }
        }
        (rule.ref_type.clone(), targets)
    };
    let properties: Map<String, Value> = rules.iter().map(of).collect();
    let required: Vec<&str> = rules.iter().filter(|rule| rule.min > 0).map(|rule| rule.ref_type.as_str()).collect();
    let mut references = json!({
        "description": "The references by type. A resource that is referred to cannot be deleted.",
        "type": if required.is_empty() { json!(["object", "null"]) } else { json!("object") },
        "additionalProperties": false,
        "properties": properties,
    });
    if let (false, Some(members)) = (required.is_empty(), references.as_object_mut()) {
        members.insert("required".to_owned(), json!(required));
    }
    references
}

fn bounds(rule: &ReferenceRule) -> String {
    match (rule.min, rule.max) {
        (0, 0) => "Any number".to_owned(),
        (min, 0) => format!("At least {min}"),
        (0, max) => format!("At most {max}"),
        (min, max) => format!("{min} to {max}"),
    }
}

fn target(kind: Option<&str>) -> Value {
    let kind = match kind {
        Some(kind) => json!({ "type": ["string", "null"], "enum": [kind, "", null] }),
        None => json!({ "type": ["string", "null"] }),
    };
    json!({
        "type": "object",
        "required": ["id"],
        "properties": { "id": { "type": "string", "pattern": ID_PATTERN, "maxLength": 63 }, "kind": kind },
    })
}

fn labels() -> Value {
    json!({
        "description": "Labels by the syntax of Kubernetes.",
        "type": ["object", "null"],
        "propertyNames": { "maxLength": 255, "pattern": format!(r"^({DNS}(\.{DNS})*/)?{LABEL}$") },
        "additionalProperties": { "type": "string", "pattern": format!("^({LABEL})?$") },
    })
}

fn spec() -> Value {
    json!({
        "description": "The desired state, in the form that the kind's adapters expect. Numbers have at most 64 bits, so that \
                        none is rounded; texts have no NUL character.",
        "type": "object",
        "properties": { "pullSecret": {
            "description": "The pull secret: inline in `data`, or a reference in `secretRef`.",
            "properties": {
                "data": {
                    "description": "A Docker config document: as text, in base64, or as an object. It is stored encrypted \
                                    and returned as `{\"redacted\": true, \"digest\": …}`; a PATCH with that keeps it. The digest is null for callers that may not read pull secrets.",
                    "type": ["string", "object", "null"],
                },
                "secretRef": { "description": "A Secret of the management cluster: `namespace`, `name`, `key`." },
            },
        }},
    })
}

fn force_delete() -> Value {
    json!({
        "description": "The reason for which adapters are not waited for.",
        "type": "object",
        "required": ["reason"],
        "properties": { "reason": {
            "description": "Logged together with the caller.",
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
        }},
    })
}

fn report() -> Value {
    let generation = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": i32::MAX });
    let with = |description: &str, mut schema: Value| {
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".to_owned(), json!(description));
        }
        schema
    };
    // The server ignores an older name beside the current one, so it has no type.
    let alias = |name: &str| {
        let description = format!("An older name of `{name}`; ignored if that is given.");
        beyond(json!({ "description": description, "deprecated": true }))
    };
    let mandatory = [AVAILABLE, APPLIED, HEALTH];
    let contains = mandatory.map(|kind| {
        json!({ "contains": { "type": "object", "required": ["type"], "properties": { "type": { "const": kind } } } })
    });
    json!({
        "description": "An adapter's report about a resource. Unknown members are ignored.",
        "type": "object",
        "required": ["adapter", "conditions"],
        "anyOf": [
            { "required": ["observed_generation"] },
            { BEYOND: true, "required": ["observedGeneration"], "properties": { "observedGeneration": generation } },
        ],
        "properties": {
            "adapter": { "description": "The name of the adapter; any name is accepted.", "type": "string", "minLength": 1 },
            "observed_generation": with("The generation that the adapter observed.", generation.clone()),
            "observedGeneration": alias("observed_generation"),
            "observed_time": with(
                "The time of the observation, by default now. At most 5 minutes ahead and 30 minutes ago. A report that \
                 is older than the adapter's latest one about the same generation is discarded.",
                json!({ "type": ["string", "null"], "format": "date-time" }),
            ),
            "observedTime": alias("observed_time"),
            "lastUpdated": beyond(with(
                "As observed_time, in the contract of 2025; it may be any time ago.",
                json!({ "type": ["string", "null"], "format": "date-time" }),
            )),
            "conditions": {
                "description": "The conditions: at least Available, Applied and Health, each type once. Finalized is True once \
                                the adapter has cleaned up.",
                "type": "array",
                "minItems": mandatory.len(),
                "items": schema("ReportedCondition"),
                "allOf": contains,
            },
            "data": { "description": "Further data, for people and other adapters.", "type": ["object", "null"] },
            "metadata": { "anyOf": [schema("Metadata"), { "type": "null" }] },
        },
    })
}

fn reported_condition() -> Value {
    json!({
        "description": "A condition in a report. The server determines the time of its last transition.",
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": { "type": "string", "minLength": 1 },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": { "description": "The reason in one word, for programs.", "type": ["string", "null"] },
            "message": { "description": "An explanation, for people.", "type": ["string", "null"] },
        },
    })
}

fn metadata() -> Value {
    let text = json!({ "type": ["string", "null"] });
    let time = json!({ "type": ["string", "null"], "format": "date-time" });
    json!({
        "description": "The Job behind a report.",
        "type": "object",
        "properties": {
            "job_name": text,
            "job_namespace": text,
            "attempt": { "type": ["integer", "null"], "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX },
            "started_time": time,
            "completed_time": time,
            "duration": text,
        },
    })
}
