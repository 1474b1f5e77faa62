//! Marks what goes beyond HyperFleet's contract, and derives the document of the contract alone.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The `OpenAPI` extension that marks operations, parameters, members and responses that HyperFleet's own server does not have.
pub(super) const BEYOND: &str = "x-beyond-hyperfleet";

/// Sections of a document whose entries are dropped when nothing refers to them.
const COMPONENTS: [&str; 4] = ["headers", "parameters", "responses", "schemas"];
/// The methods of a path.
const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// Returns the value with the extension.
pub(super) fn beyond(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.insert(BEYOND.to_owned(), json!(true));
    }
    value
}

/// Returns a document without what is marked, and without what then has no use.
pub fn core(document: &Value) -> Value {
    let mut core = document.clone();
    let marked = references(&core).into_iter().filter(|reference| is_marked_at(document, reference)).collect();
    remove(&mut core, &marked);
    if let Some(paths) = core.get_mut("paths").and_then(Value::as_object_mut) {
        paths.retain(|_, item| METHODS.iter().any(|method| item.get(method).is_some()));
    }
    while drop_unused(&mut core) {}
    core
}

/// The references of a document, such as `#/components/schemas/Target`.
fn references(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).map(str::to_owned);
            // A discriminator names schemas without `$ref`.
            let mapped = members.get("mapping").and_then(Value::as_object).into_iter().flat_map(Map::values);
            let mapped = mapped.filter_map(Value::as_str).map(str::to_owned);
            members.values().flat_map(references).chain(own).chain(mapped).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => BTreeSet::new(),
    }
}

fn is_marked(value: &Value) -> bool {
    value.get(BEYOND) == Some(&Value::Bool(true))
}

fn is_marked_at(document: &Value, reference: &str) -> bool {
    reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer)).is_some_and(is_marked)
}

/// Removes what is marked, and references to it.
fn remove(value: &mut Value, marked: &BTreeSet<String>) {
    let refers =
        |value: &Value| value.get("$ref").and_then(Value::as_str).is_some_and(|reference| marked.contains(reference));
    // A media type goes with its schema.
    let goes = |value: &Value| is_marked(value) || refers(value) || value.get("schema").is_some_and(refers);
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !goes(member));
            members.values_mut().for_each(|member| remove(member, marked));
            let known: Option<BTreeSet<String>> =
                members.get("properties").and_then(Value::as_object).map(|known| known.keys().cloned().collect());
            if let (Some(known), Some(Value::Array(required))) = (known, members.get_mut("required")) {
                required.retain(|name| name.as_str().is_none_or(|name| known.contains(name)));
            }
        }
        Value::Array(items) => {
            items.retain(|item| !goes(item));
            for item in items {
                remove(item, marked);
            }
        }
        _ => {}
    }
}

/// Drops the components that nothing refers to; returns true if there were any.
fn drop_unused(document: &mut Value) -> bool {
    let used = references(document);
    let mut dropped = false;
    for section in COMPONENTS {
        let entries = document.pointer_mut(&format!("/components/{section}")).and_then(Value::as_object_mut);
        if let Some(entries) = entries {
            let before = entries.len();
            entries.retain(|name, _| used.contains(&format!("#/components/{section}/{name}")));
            dropped |= entries.len() < before;
        }
    }
    dropped
}
