//! Pods, Jobs, `DaemonSets`, bindings, definitions: what this project's objects can get wrong.

use serde_json::{Value, json};

use super::super::meta;
use super::super::status::Cause;
use super::super::value::{list, members, number, set, take, text};
use super::names;

pub(crate) fn pod(object: &Value) -> Vec<Cause> {
    pod_spec(object.get("spec").unwrap_or(&Value::Null), "spec")
}

fn pod_spec(spec: &Value, field: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if list(spec, "/containers").is_empty() {
        causes.push(Cause::required(&format!("{field}.containers"), ""));
    }
    for member in ["initContainers", "containers"] {
        let mut seen = Vec::new();
        for (index, container) in list(spec, &format!("/{member}")).iter().enumerate() {
            let at = format!("{field}.{member}[{index}]");
            let name = text(container, "/name");
            if name.is_empty() {
                causes.push(Cause::required(&format!("{at}.name"), ""));
            } else if let Some(wrong) = names::label(name) {
                causes.push(Cause::invalid(&format!("{at}.name"), &json!(name), &wrong));
            } else if seen.contains(&name) {
                let (field, message) = (format!("{at}.name"), format!("Duplicate value: {name:?}"));
                causes.push(Cause { reason: "FieldValueDuplicate".to_owned(), message, field });
            }
            seen.push(name);
            if text(container, "/image").is_empty() {
                causes.push(Cause::required(&format!("{at}.image"), ""));
            }
            causes.extend(mounts(spec, container, &at));
        }
    }
    let policy = text(spec, "/restartPolicy");
    if !matches!(policy, "Always" | "OnFailure" | "Never") && spec.is_object() {
        let supported = ["Always", "OnFailure", "Never"];
        causes.push(Cause::unsupported(&format!("{field}.restartPolicy"), policy, &supported));
    }
    causes
}

fn mounts(spec: &Value, container: &Value, at: &str) -> Vec<Cause> {
    let known = |name: &str| list(spec, "/volumes").iter().any(|volume| text(volume, "/name") == name);
    let mounts = list(container, "/volumeMounts").iter().enumerate();
    let unknown = mounts.filter(|(_, mount)| !known(text(mount, "/name")));
    let cause = |(index, mount): (usize, &Value)| Cause {
        reason: "FieldValueNotFound".to_owned(),
        message: format!("Not found: {:?}", text(mount, "/name")),
        field: format!("{at}.volumeMounts[{index}].name"),
    };
    unknown.map(cause).collect()
}

pub(crate) fn pod_updated(old: &Value, new: &Value) -> Vec<Cause> {
    let essence = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for member in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"] {
            take(&mut spec, &[member]);
        }
        // A scheduler gives a Pod its node once.
        if text(pod, "/spec/nodeName") == text(new, "/spec/nodeName") || text(old, "/spec/nodeName").is_empty() {
            take(&mut spec, &["nodeName"]);
        }
        for member in ["containers", "initContainers"] {
            for container in spec.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten() {
                set(container, &["image"], "");
                set(container, &["imagePullPolicy"], "");
            }
        }
        spec
    };
    if essence(old) == essence(new) {
        return Vec::new();
    }
    let message = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
                   tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    vec![Cause::forbidden("spec", message)]
}

pub(crate) fn job(object: &Value) -> Vec<Cause> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let mut causes = Vec::new();
    for member in ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
        if let Some(value) = number(spec, &format!("/{member}")).filter(|value| *value < 0) {
            let message = "must be greater than or equal to 0";
            causes.push(Cause::invalid(&format!("spec.{member}"), &json!(value), message));
        }
    }
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    causes.extend(pod_spec(pod, "spec.template.spec"));
    let policy = text(pod, "/restartPolicy");
    if policy == "Always" {
        let field = "spec.template.spec.restartPolicy";
        causes.push(Cause {
            reason: "FieldValueRequired".to_owned(),
            message: "Required value: valid values: \"OnFailure\", \"Never\"".to_owned(),
            field: field.to_owned(),
        });
    }
    if spec.get("podFailurePolicy").is_some() && policy == "OnFailure" {
        let message = "only \"Never\" is supported when podFailurePolicy is specified";
        causes.push(Cause::invalid("spec.template.spec.restartPolicy", &json!(policy), message));
    }
    for (index, rule) in list(spec, "/podFailurePolicy/rules").iter().enumerate() {
        let field = format!("spec.podFailurePolicy.rules[{index}]");
        let action = text(rule, "/action");
        if !matches!(action, "FailJob" | "FailIndex" | "Ignore" | "Count") {
            let supported = ["Count", "FailIndex", "FailJob", "Ignore"];
            causes.push(Cause::unsupported(&format!("{field}.action"), action, &supported));
        }
        if rule.get("onExitCodes").is_none() && list(rule, "/onPodConditions").is_empty() {
            let message = "specifying one of OnExitCodes and OnPodConditions is required";
            causes.push(Cause::invalid(&field, &json!("{}"), message));
        }
    }
    causes
}

pub(crate) fn job_updated(old: &Value, new: &Value) -> Vec<Cause> {
    let members = ["completions", "selector", "template", "podFailurePolicy", "completionMode"];
    let changed = |member: &str| immutable(old, new, &format!("/spec/{member}"), &format!("spec.{member}"), "");
    members.into_iter().filter_map(changed).collect()
}

pub(crate) fn daemon_set(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let wanted = members(object, "/spec/selector/matchLabels");
    if object.pointer("/spec/selector").is_none() {
        causes.push(Cause::required("spec.selector", ""));
    }
    let labels = members(object, "/spec/template/metadata/labels");
    let fits = |(key, value): (&String, &Value)| labels.is_some_and(|labels| labels.get(key) == Some(value));
    if !wanted.into_iter().flatten().all(fits) {
        let shown = labels.map_or_else(|| json!({}), |labels| json!(labels));
        let message = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &shown, message));
    }
    causes.extend(pod_spec(object.pointer("/spec/template/spec").unwrap_or(&Value::Null), "spec.template.spec"));
    let policy = text(object, "/spec/template/spec/restartPolicy");
    if !matches!(policy, "Always" | "") {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    causes
}

pub(crate) fn daemon_set_updated(old: &Value, new: &Value) -> Vec<Cause> {
    immutable(old, new, "/spec/selector", "spec.selector", "").into_iter().collect()
}

/// A field that never changes.
pub(crate) fn immutable(old: &Value, new: &Value, pointer: &str, field: &str, message: &str) -> Option<Cause> {
    let message = if message.is_empty() { "field is immutable" } else { message };
    let shown = new.pointer(pointer).unwrap_or(&Value::Null);
    (old.pointer(pointer) != new.pointer(pointer)).then(|| Cause::invalid(field, shown, message))
}

pub(crate) fn binding(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let kind = text(object, "/roleRef/kind");
    if !matches!(kind, "Role" | "ClusterRole") {
        causes.push(Cause::unsupported("roleRef.kind", kind, &["Role", "ClusterRole"]));
    }
    if text(object, "/roleRef/name").is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    }
    for (index, subject) in list(object, "/subjects").iter().enumerate() {
        let kind = text(subject, "/kind");
        if !matches!(kind, "ServiceAccount" | "User" | "Group") {
            let supported = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::unsupported(&format!("subjects[{index}].kind"), kind, &supported));
        }
        if kind == "ServiceAccount" && meta::namespace(object).is_empty() && text(subject, "/namespace").is_empty() {
            causes.push(Cause::required(&format!("subjects[{index}].namespace"), ""));
        }
    }
    causes
}

pub(crate) fn definition(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (plural, group) = (text(object, "/spec/names/plural"), text(object, "/spec/group"));
    let name = format!("{plural}.{group}");
    if text(object, "/metadata/name") != name {
        let message = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &json!(text(object, "/metadata/name")), message));
    }
    if list(object, "/spec/versions").is_empty() {
        causes.push(Cause::required("spec.versions", "must have at least one version"));
    }
    for (index, version) in list(object, "/spec/versions").iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(&field, "schemas are required"));
        }
    }
    if !matches!(text(object, "/spec/scope"), "Namespaced" | "Cluster") {
        causes.push(Cause::unsupported("spec.scope", text(object, "/spec/scope"), &["Cluster", "Namespaced"]));
    }
    causes
}
