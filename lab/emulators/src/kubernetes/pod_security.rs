//! Pod Security admission: the levels `baseline` and `restricted`, by a namespace's labels, in a real server's wording.
//!
//! Settings that nothing of ours has are not checked: `SELinux` options, sysctls, profiles of `AppArmor` and Windows, proc mounts.

use serde_json::{Value, json};

use super::meta;
use super::resources::Resource;
use super::status::{Cause, Status};
use super::store::State;
use super::value::{members, text};

mod checks;

const PREFIX: &str = "pod-security.kubernetes.io/";
const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

/// The modes that a label gives a level for. Audits are not kept here.
const MODES: [&str; 3] = ["enforce", "audit", "warn"];

/// Faults of a namespace's labels.
pub(crate) fn labels(namespace: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for mode in MODES {
        let key = format!("{PREFIX}{mode}");
        let level = members(namespace, "/metadata/labels").and_then(|labels| labels.get(&key)).and_then(Value::as_str);
        if let Some(level) = level.filter(|level| !LEVELS.contains(level)) {
            let message = "must be one of privileged, baseline, restricted";
            causes.push(Cause::invalid(&format!("metadata.labels[{key}]"), &json!(level), message));
        }
    }
    causes
}

/// Refuses a Pod that its namespace's level does not allow.
pub(crate) fn enforce(state: &State, resource: &Resource, pod: &Value) -> Result<(), Status> {
    match violations(state, pod, &["enforce"]) {
        Some(why) => Err(Status::forbidden(resource.about(meta::name(pod)), &format!("violates PodSecurity {why}"))),
        None => Ok(()),
    }
}

/// The warning about a Pod, or about the Pods of a workload, which are refused only when they are made.
pub(crate) fn warning(state: &State, object: &Value) -> Option<String> {
    violations(state, object, &["warn", "enforce"]).map(|why| format!("would violate PodSecurity {why}"))
}

/// The level and what violates it, by the first mode that the namespace has a level for.
fn violations(state: &State, object: &Value, modes: &[&str]) -> Option<String> {
    let spec = match text(object, "/kind") {
        "Pod" => object.get("spec"),
        "Job" | "DaemonSet" | "Deployment" => object.pointer("/spec/template/spec"),
        _ => None,
    }?;
    let namespaces = state.resource("namespaces").ok()?;
    let namespace = state.find(&namespaces, "", meta::namespace(object))?;
    let labels = members(namespace, "/metadata/labels")?;
    let level = modes.iter().find_map(|mode| labels.get(&format!("{PREFIX}{mode}"))?.as_str())?;
    let found = match level {
        "baseline" => checks::baseline(spec),
        "restricted" => checks::restricted(spec),
        _ => Vec::new(),
    };
    (!found.is_empty()).then(|| format!("\"{level}:latest\": {}", found.join(", ")))
}
