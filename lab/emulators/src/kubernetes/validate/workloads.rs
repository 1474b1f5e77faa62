//! Pods, `DaemonSets`, definitions: what this project's objects can get wrong.

use serde_json::{Value, json};

use super::super::quantity::Quantity;
use super::super::status::Cause;
use super::super::value::{list, members, set, take, text};
use super::names;

pub(crate) fn pod(object: &Value) -> Vec<Cause> {
    pod_spec(object.get("spec").unwrap_or(&Value::Null), "spec")
}

pub(crate) fn pod_spec(spec: &Value, field: &str) -> Vec<Cause> {
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
            causes.extend(variables(container, &at));
            causes.extend(mounts(spec, container, &at));
            causes.extend(quantities(container, &at));
        }
    }
    causes.extend(volumes(spec, field));
    let policy = text(spec, "/restartPolicy");
    if !matches!(policy, "Always" | "OnFailure" | "Never") && spec.is_object() {
        let supported = ["Always", "OnFailure", "Never"];
        causes.push(Cause::unsupported(&format!("{field}.restartPolicy"), policy, &supported));
    }
    causes
}

/// Requests that exceed their limit, and quantities below zero.
fn quantities(container: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let read = |value: &Value| value.as_str().and_then(Quantity::read);
    for kind in ["limits", "requests"] {
        for (name, value) in members(container, &format!("/resources/{kind}")).into_iter().flatten() {
            let field = format!("{at}.resources.{kind}[{name}]");
            if read(value).is_some_and(Quantity::is_negative) {
                causes.push(Cause::invalid(&field, value, "must be greater than or equal to 0"));
            }
        }
    }
    for (name, value) in members(container, "/resources/requests").into_iter().flatten() {
        let limit = container.pointer("/resources/limits").and_then(|limits| limits.get(name));
        if let (Some(request), Some(limit)) = (read(value), limit.and_then(read))
            && request.exceeds(limit)
        {
            let message = format!("must be less than or equal to {name} limit of {limit}");
            causes.push(Cause::invalid(&format!("{at}.resources.requests"), value, &message));
        }
    }
    causes
}

/// Names of variables that no program could read.
fn variables(container: &Value, at: &str) -> Vec<Cause> {
    let fits = |name: &str| name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic() && byte != b'=');
    let message = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    let named = list(container, "/env").iter().map(|variable| text(variable, "/name")).enumerate();
    let cause = |(index, name): (usize, &str)| {
        let field = format!("{at}.env[{index}].name");
        if name.is_empty() { Cause::required(&field, "") } else { Cause::invalid(&field, &json!(name), message) }
    };
    named.filter(|(_, name)| name.is_empty() || !fits(name)).map(cause).collect()
}

/// Volumes of more than one kind.
fn volumes(spec: &Value, field: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let kinds = members(volume, "").into_iter().flatten().map(|(kind, _)| kind).filter(|kind| *kind != "name");
        let message = "may not specify more than 1 volume type";
        causes.extend(kinds.skip(1).map(|kind| Cause::forbidden(&format!("{field}.volumes[{index}].{kind}"), message)));
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

pub(crate) fn daemon_set(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let wanted = members(object, "/spec/selector/matchLabels");
    if object.pointer("/spec/selector").is_some() && wanted.is_none_or(serde_json::Map::is_empty) {
        let message = "empty selector is invalid for daemonset";
        causes.push(Cause::invalid("spec.selector", &json!({}), message));
    }
    let labels = members(object, "/spec/template/metadata/labels");
    let fits = |(key, value): (&String, &Value)| labels.is_some_and(|labels| labels.get(key) == Some(value));
    if object.pointer("/spec/selector").is_none() || !wanted.into_iter().flatten().all(fits) {
        let shown = labels.map_or_else(|| json!({}), |labels| json!(labels));
        let message = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &shown, message));
    }
    causes.extend(pod_spec(object.pointer("/spec/template/spec").unwrap_or(&Value::Null), "spec.template.spec"));
    let policy = text(object, "/spec/template/spec/restartPolicy");
    if !matches!(policy, "Always" | "") {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    causes.extend(rolling_update(object));
    causes
}

/// A roll-out has to make Pods unavailable or to surge, and cannot do both.
fn rolling_update(object: &Value) -> Option<Cause> {
    let strategy = object.pointer("/spec/updateStrategy/rollingUpdate")?;
    let is_none = |member: &str| strategy.get(member).is_none_or(|value| *value == json!(0) || *value == json!("0%"));
    let field = |member: &str| format!("spec.updateStrategy.rollingUpdate.{member}");
    match (is_none("maxUnavailable"), is_none("maxSurge")) {
        (true, true) => Some(Cause::required(&field("maxUnavailable"), "cannot be 0 when maxSurge is 0")),
        (false, false) => {
            let given = strategy.get("maxSurge").unwrap_or(&Value::Null);
            Some(Cause::invalid(&field("maxSurge"), given, "may not be set when maxUnavailable is non-zero"))
        }
        _ => None,
    }
}

pub(crate) fn daemon_set_updated(old: &Value, new: &Value) -> Vec<Cause> {
    immutable(old, new, "/spec/selector", "spec.selector").into_iter().collect()
}

/// A field that never changes.
pub(crate) fn immutable(old: &Value, new: &Value, pointer: &str, field: &str) -> Option<Cause> {
    let shown = new.pointer(pointer).unwrap_or(&Value::Null);
    (old.pointer(pointer) != new.pointer(pointer)).then(|| Cause::invalid(field, shown, "field is immutable"))
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
        causes.push(Cause::invalid("spec.versions", &json!([]), "must have at least one stored version"));
        causes.push(Cause::invalid("status.storedVersions", &json!([]), "must have at least one stored version"));
    }
    for (index, version) in list(object, "/spec/versions").iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(&field, ""));
        } else if text(version, "/schema/openAPIV3Schema/type").is_empty() {
            let field = match list(object, "/spec/versions") {
                [_] => "spec.validation.openAPIV3Schema.type".to_owned(),
                _ => format!("spec.versions[{index}].schema.openAPIV3Schema.type"),
            };
            causes.push(Cause::required(&field, "must not be empty at the root"));
        }
    }
    if !matches!(text(object, "/spec/scope"), "Namespaced" | "Cluster") {
        causes.push(Cause::unsupported("spec.scope", text(object, "/spec/scope"), &["Cluster", "Namespaced"]));
    }
    causes
}
