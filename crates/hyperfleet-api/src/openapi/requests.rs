//! What request bodies look like, with the rules that the server checks.

use serde_json::{Map, Value, json};

use super::parameters::ID;
use super::schema;
use crate::entity::{Descriptor, ReferenceRule, Registry};

/// A name: a DNS label without its bound, which is the kind's.
const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// A label's value, or the last part of its key: up to 63 characters.
const LABEL: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";

/// A part of a DNS name.
const DNS: &str = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";

/// The bodies that are of a kind.
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
        "description": "By type of reference; which types there are, the kind says.",
        "type": ["object", "null"],
        "additionalProperties": { "type": ["array", "null"], "items": target(None) },
    });
    schemas.insert("ResourcePatch".to_owned(), patch("resource", &any));
    schemas
}

/// The bodies, and parts of bodies, that are the same for every kind.
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
        "description": format!("What is wanted of a new {kind}.{more} Members that are not known are ignored."),
        "type": "object",
        "required": required,
        "properties": {
            "id": {
                "description": "The client's own id, unique over all kinds. Without it the server makes a UUID, version 7.",
                "type": ["string", "null"],
                "pattern": ID,
                "maxLength": 63,
            },
            "kind": { "type": "string", "enum": [kind] },
            "name": {
                "description": "Unique among those that live: of a kind, or below an owner.",
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
        return json!({ "description": "No kinds are served, so nothing can be created.", "not": {} });
    }
    let one = |kind: &&str| schema(&format!("{kind}Create"));
    let mapping: Map<String, Value> =
        roots.iter().map(|kind| ((*kind).to_owned(), json!(format!("#/components/schemas/{kind}Create")))).collect();
    json!({
        "description": "What is wanted of a new resource. A kind that has a parent can only be created below one.",
        "oneOf": roots.iter().map(one).collect::<Vec<_>>(),
        "discriminator": { "propertyName": "kind", "mapping": mapping },
    })
}

fn patch(what: &str, references: &Value) -> Value {
    json!({
        "description": format!(
            "What is to change of a {what}. Each member that is given replaces what is there as a whole: send the complete \
             spec. A change makes a new generation; references that are given always count as one."
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
        "description": "What it refers to, by type of reference. What is referred to cannot be deleted.",
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
        "properties": { "id": { "type": "string", "pattern": ID, "maxLength": 63 }, "kind": kind },
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
        "description": "What is wanted, in whatever form the kind's adapters expect. Numbers have at most 64 bits, as they \
                        would be rounded otherwise; texts have no NUL character.",
        "type": "object",
        "properties": { "pullSecret": {
            "description": "The pull secret: inline in `data`, or where it is in `secretRef`.",
            "properties": {
                "data": {
                    "description": "A Docker config document: as text, in base64, or as an object. It is encrypted at rest \
                                    and read back as `{\"redacted\": true, \"digest\": …}`; a PATCH with that keeps it.",
                    "type": ["string", "object", "null"],
                },
                "secretRef": { "description": "A Secret of the management cluster: `namespace`, `name`, `key`." },
            },
        }},
    })
}

fn force_delete() -> Value {
    json!({
        "description": "Why adapters are not waited for.",
        "type": "object",
        "required": ["reason"],
        "properties": { "reason": {
            "description": "It is written to the log, with the caller.",
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
        }},
    })
}

fn report() -> Value {
    let generation = json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": i64::MAX });
    let with = |description: &str, mut schema: Value| {
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".to_owned(), json!(description));
        }
        schema
    };
    // An older name is not looked at where today's is there, so it has no type of its own.
    let alias = |name: &str| {
        let description = format!("An older name of `{name}`; it does not count where that is there.");
        json!({ "description": description, "deprecated": true })
    };
    let mandatory = ["Available", "Applied", "Health"];
    let contains = mandatory.map(|kind| {
        json!({ "contains": { "type": "object", "required": ["type"], "properties": { "type": { "const": kind } } } })
    });
    json!({
        "description": "What an adapter found when it looked at a resource. Members that are not known are ignored.",
        "type": "object",
        "required": ["adapter", "conditions"],
        "anyOf": [
            { "required": ["observed_generation"] },
            { "required": ["observedGeneration"], "properties": { "observedGeneration": generation } },
        ],
        "properties": {
            "adapter": { "description": "Who reports; any name may.", "type": "string", "minLength": 1 },
            "observed_generation": with("The generation that it looked at.", generation.clone()),
            "observedGeneration": alias("observed_generation"),
            "observed_time": with(
                "When it looked; now, if it does not say. At most 5 minutes ahead and 30 minutes ago. A report that is \
                 older than the adapter's last one about the same generation is discarded.",
                json!({ "type": ["string", "null"], "format": "date-time" }),
            ),
            "observedTime": alias("observed_time"),
            "lastUpdated": alias("observed_time"),
            "conditions": {
                "description": "What it found: Available, Applied and Health at least, each type once. Finalized says that \
                                it has cleaned up.",
                "type": "array",
                "minItems": mandatory.len(),
                "items": schema("ReportedCondition"),
                "allOf": contains,
            },
            "data": { "description": "Whatever else it tells, for people and other adapters.", "type": ["object", "null"] },
            "metadata": { "anyOf": [schema("Metadata"), { "type": "null" }] },
        },
    })
}

fn reported_condition() -> Value {
    json!({
        "description": "One finding. When its status last changed, the server finds out by itself.",
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": { "type": "string", "minLength": 1 },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": { "description": "One word, for programs.", "type": ["string", "null"] },
            "message": { "description": "A sentence, for people.", "type": ["string", "null"] },
        },
    })
}

fn metadata() -> Value {
    let text = json!({ "type": ["string", "null"] });
    let time = json!({ "type": ["string", "null"], "format": "date-time" });
    json!({
        "description": "About the run behind a report.",
        "type": "object",
        "properties": {
            "job_name": text,
            "job_namespace": text,
            "attempt": { "type": ["integer", "null"], "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX },
            "started_time": time,
            "completed_time": time,
            "duration": text,
        },
    })
}
