//! Roles, bindings, Leases and Events.

use serde_json::{Value, json};

use super::super::meta;
use super::super::status::Cause;
use super::super::value::{list, number, text};

pub(crate) fn role(object: &Value, is_namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, rule) in list(object, "/rules").iter().enumerate() {
        let at = |member: &str| format!("rules[{index}].{member}");
        if list(rule, "/verbs").is_empty() {
            causes.push(Cause::required(&at("verbs"), ""));
        }
        let paths = list(rule, "/nonResourceURLs");
        if !paths.is_empty() {
            if is_namespaced {
                let message = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(&at("nonResourceURLs"), &json!(paths), message));
            }
            continue;
        }
        if list(rule, "/apiGroups").is_empty() {
            causes.push(Cause::required(&at("apiGroups"), "resource rules must supply at least one api group"));
        }
        if list(rule, "/resources").is_empty() {
            causes.push(Cause::required(&at("resources"), "resource rules must supply at least one resource"));
        }
    }
    causes
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
    }
    causes
}

pub(crate) fn lease(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(seconds) = number(object, "/spec/leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &json!(seconds), "must be greater than 0"));
    }
    if let Some(count) = number(object, "/spec/leaseTransitions").filter(|count| *count < 0) {
        causes.push(Cause::invalid("spec.leaseTransitions", &json!(count), "must be greater than or equal to 0"));
    }
    causes
}

pub(crate) fn event(object: &Value) -> Vec<Cause> {
    let about = text(object, "/involvedObject/namespace");
    let fits = if about.is_empty() { meta::namespace(object) == "default" } else { about == meta::namespace(object) };
    let wrong =
        (!fits).then(|| Cause::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace"));
    wrong.into_iter().collect()
}
