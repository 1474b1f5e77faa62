//! Defaults of each kind, and the members that the server sets itself.

use base64::Engine as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::meta::{self, stamp};
use super::resources::Resource;
use super::validate::{self, names};
use super::value::{BASE64, child, decode_base64, list, object_at, set, set_default, take, text};

mod pods;

/// Sets the defaults of the kind; the writer of the object owns them too.
pub(crate) fn fill(resource: &Resource, object: &mut Value) {
    tidy(object);
    if let Some(schema) = resource.schema() {
        validate::fill(schema, object);
    }
    if resource.custom.is_some() {
        return;
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "secrets") => secret(object),
        ("", "configmaps") => config_map(object),
        ("", "events") => event(object),
        ("", "namespaces") => namespace(object),
        ("", "pods") => pods::pod(object),
        ("batch", "jobs") => job(object),
        ("apps", "daemonsets") => daemon_set(object),
        ("apiextensions.k8s.io", _) => definition(object),
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => role(object),
        ("rbac.authorization.k8s.io", _) => binding(object),
        _ => {}
    }
}

/// Sets the members that only the server sets; they have no manager.
pub(crate) fn add(resource: &Resource, object: &mut Value, now: Timestamp) {
    if resource.custom.is_some() {
        return;
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => set(object, &["spec", "finalizers"], json!(["kubernetes"])),
        ("", "pods") => pods::admit(object),
        ("batch", "jobs") => {
            select(object);
            set_default(object, &["status"], json!({}));
        }
        ("apps", "deployments") => set_default(object, &["status"], json!({})),
        ("apps", "daemonsets") => {
            for counter in ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"] {
                set_default(object, &["status", counter], 0);
            }
        }
        ("apiextensions.k8s.io", _) => establish(object, now),
        _ => {}
    }
}

/// Leaves out what a typed server would not write: nulls and empty containers in metadata.
fn tidy(object: &mut Value) {
    let metadata = object_at(object, &["metadata"]);
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    // An empty list of managed fields is a request of its own, which the bookkeeping handles.
    metadata.retain(|name, value| name == "managedFields" || !is_nothing(value));
}

/// Puts the texts of a Secret among its data, and writes the data as Go does.
fn secret(object: &mut Value) {
    set_default(object, &["type"], "Opaque");
    if let Some(Value::Object(texts)) = take(object, &["stringData"]) {
        for (name, value) in texts {
            let encoded = BASE64.encode(value.as_str().unwrap_or_default());
            set(object, &["data", &name], encoded);
        }
    }
    if object.get("data").is_some_and(|data| data.is_null() || *data == json!({})) {
        take(object, &["data"]);
    }
    if let Some(Value::Object(data)) = object.get_mut("data") {
        for value in data.values_mut() {
            // In Go a null is an empty byte string, and what was read is encoded anew.
            let content = decode_base64(value.as_str().unwrap_or_default()).unwrap_or_default();
            *value = BASE64.encode(content).into();
        }
    }
}

/// Content that is empty is not there.
fn config_map(object: &mut Value) {
    for member in ["data", "binaryData"] {
        if object.get(member).is_some_and(|content| content.is_null() || *content == json!({})) {
            take(object, &[member]);
        }
    }
}

fn event(object: &mut Value) {
    for member in ["reportingComponent", "reportingInstance"] {
        set_default(object, &[member], "");
    }
}

fn namespace(object: &mut Value) {
    let name = meta::name(object).to_owned();
    set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
    set_default(object, &["status", "phase"], "Active");
}

fn job(object: &mut Value) {
    let spec = child(object, "spec");
    object_at(spec, &["template", "spec"]);
    let is_per_index = spec.get("backoffLimitPerIndex").is_some_and(|limit| !limit.is_null());
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        set_default(spec, &["completions"], 1);
    }
    set_default(spec, &["parallelism"], 1);
    set_default(spec, &["backoffLimit"], if is_per_index { i32::MAX } else { 6 });
    set_default(spec, &["completionMode"], "NonIndexed");
    set_default(spec, &["suspend"], false);
    set_default(spec, &["manualSelector"], false);
    let rules = spec.pointer_mut("/podFailurePolicy/rules").and_then(Value::as_array_mut);
    let conditions = rules.into_iter().flatten().filter_map(|rule| rule.get_mut("onPodConditions")?.as_array_mut());
    conditions.flatten().for_each(|condition| set_default(condition, &["status"], "True"));
    let replacement = if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    set_default(spec, &["podReplacementPolicy"], replacement);
    pods::template(spec);
}

/// Makes a Job select its own Pods only.
fn select(object: &mut Value) {
    let (uid, name) = (meta::uid(object).to_owned(), meta::name(object).to_owned());
    if names::label_value(&name).is_some() {
        // It is refused: its name cannot be a label.
        return;
    }
    let spec = child(object, "spec");
    if spec.get("manualSelector") != Some(&json!(true)) && spec.get("selector").is_none() {
        set(spec, &["selector", "matchLabels", "batch.kubernetes.io/controller-uid"], uid.clone());
        let labels = object_at(spec, &["template", "metadata", "labels"]);
        for prefix in ["", "batch.kubernetes.io/"] {
            labels.entry(format!("{prefix}controller-uid")).or_insert_with(|| uid.clone().into());
            labels.entry(format!("{prefix}job-name")).or_insert_with(|| name.clone().into());
        }
    }
    let labels = spec.pointer("/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|_| object.pointer("/metadata/labels").is_none()) {
        // A Job without labels takes those of its template, as the typed server does.
        set(object, &["metadata", "labels"], labels);
    }
}

fn daemon_set(object: &mut Value) {
    set_default(object, &["spec", "revisionHistoryLimit"], 10);
    set_default(object, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if text(object, "/spec/updateStrategy/type") == "RollingUpdate" {
        set_default(object, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], 1);
        set_default(object, &["spec", "updateStrategy", "rollingUpdate", "maxSurge"], 0);
    }
    set_default(object, &["metadata", "annotations", "deprecated.daemonset.template.generation"], "1");
    object_at(object, &["spec", "template", "spec"]);
    pods::template(child(object, "spec"));
}

fn definition(object: &mut Value) {
    let kind = text(object, "/spec/names/kind").to_owned();
    set_default(object, &["spec", "names", "singular"], kind.to_lowercase());
    set_default(object, &["spec", "names", "listKind"], format!("{kind}List"));
    set_default(object, &["spec", "conversion", "strategy"], "None");
}

/// A definition's kind is served at once.
fn establish(object: &mut Value, now: Timestamp) {
    let names = object.pointer("/spec/names").cloned().unwrap_or_default();
    set(object, &["status", "acceptedNames"], names);
    if list(object, "/status/conditions").is_empty() {
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": stamp(now),
            })
        };
        let conditions = [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ];
        set(object, &["status", "conditions"], conditions.to_vec());
    }
    let stored = |version: &&Value| version.get("storage") == Some(&json!(true));
    let versions: Vec<Value> = list(object, "/spec/versions")
        .iter()
        .filter(stored)
        .filter_map(|version| version.get("name"))
        .cloned()
        .collect();
    set_default(object, &["status", "storedVersions"], versions);
}

/// A role always says its rules, if only that there are none.
fn role(object: &mut Value) {
    if list(object, "/rules").is_empty() {
        set(object, &["rules"], Value::Null);
    }
}

fn binding(object: &mut Value) {
    if object.get("roleRef").is_none() {
        return;
    }
    set_default(object, &["roleRef", "apiGroup"], "rbac.authorization.k8s.io");
    if let Some(Value::Array(subjects)) = object.get_mut("subjects") {
        for subject in subjects.iter_mut().filter(|subject| text(subject, "/kind") != "ServiceAccount") {
            set_default(subject, &["apiGroup"], "rbac.authorization.k8s.io");
        }
    }
}
