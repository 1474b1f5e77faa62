//! Validation of objects, with the field, in a real server's wording.

use serde_json::Value;

use super::meta;
use super::resources::Resource;
use super::status::Cause;
use super::value::{members, text};

mod decode;
mod names;
mod secrets;
mod workloads;

pub(crate) use decode::decode;

/// Maximum number of bytes of an object's annotations.
const ANNOTATION_BYTES_MAXIMUM: usize = 256 * 1024;

/// The faults of a new object.
pub(crate) fn created(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = metadata(resource, object);
    causes.extend(own(resource, object));
    causes
}

/// The faults of a change.
pub(crate) fn updated(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = metadata(resource, new);
    let added = meta::finalizers(new).iter().filter(|name| !meta::finalizers(old).contains(name));
    let added: Vec<String> = added.map(Value::to_string).collect();
    if meta::is_deleting(old) && !added.is_empty() {
        let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
        causes.push(Cause::forbidden("metadata.finalizers", &format!("{why} []string{{{}}}", added.join(", "))));
    }
    causes.extend(own(resource, new));
    if resource.custom.is_none() {
        causes.extend(match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "secrets") => secrets::updated(old, new),
            ("", "configmaps") => secrets::immutable_updated(old, new, &["data", "binaryData"]),
            ("", "pods") => workloads::pod_updated(old, new),
            ("batch", "jobs") => workloads::job_updated(old, new),
            ("apps", "daemonsets") => workloads::daemon_set_updated(old, new),
            ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
                workloads::immutable(old, new, "/roleRef", "roleRef", "cannot change roleRef").into_iter().collect()
            }
            _ => Vec::new(),
        });
    }
    causes
}

/// The rules of the kind.
fn own(resource: &Resource, object: &Value) -> Vec<Cause> {
    if resource.custom.is_some() {
        return Vec::new();
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "secrets") => secrets::secret(object),
        ("", "configmaps") => secrets::config_map(object),
        ("", "pods") => workloads::pod(object),
        ("batch", "jobs") => workloads::job(object),
        ("apps", "daemonsets") => workloads::daemon_set(object),
        ("apiextensions.k8s.io", _) => workloads::definition(object),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => workloads::binding(object),
        _ => Vec::new(),
    }
}

fn metadata(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = meta::name(object);
    let is_label_name = resource.group.is_empty() && matches!(resource.plural.as_str(), "namespaces" | "services");
    let is_rbac = resource.group == "rbac.authorization.k8s.io";
    let wrong = if is_rbac {
        names::path_segment(name)
    } else if is_label_name {
        names::label(name)
    } else {
        names::subdomain(name)
    };
    causes.extend(wrong.map(|message| Cause::invalid("metadata.name", &name.into(), &message)));
    for (key, value) in members(object, "/metadata/labels").into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let wrong = names::label_key(key).map(|message| (key.as_str(), message));
        let wrong = wrong.or_else(|| names::label_value(value).map(|message| (value, message)));
        causes.extend(wrong.map(|(shown, message)| Cause::invalid("metadata.labels", &shown.into(), &message)));
    }
    let mut bytes = 0;
    for (key, value) in members(object, "/metadata/annotations").into_iter().flatten() {
        bytes += key.len() + value.as_str().unwrap_or_default().len();
        // The real server looks at keys in lower case.
        let wrong = names::label_key(&key.to_lowercase());
        causes.extend(wrong.map(|message| Cause::invalid("metadata.annotations", &key.as_str().into(), &message)));
    }
    if bytes > ANNOTATION_BYTES_MAXIMUM {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATION_BYTES_MAXIMUM));
    }
    causes.extend(owners(object));
    causes
}

fn owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, owner) in meta::owners(object).iter().enumerate() {
        for (member, hint) in [("apiVersion", "version must not be empty"), ("kind", ""), ("name", ""), ("uid", "")] {
            if text(owner, &format!("/{member}")).is_empty() {
                let hint = if hint.is_empty() { format!("{member} must not be empty") } else { hint.to_owned() };
                let field = format!("metadata.ownerReferences[{index}].{member}");
                causes.push(Cause::invalid(&field, &"".into(), &hint));
            }
        }
    }
    causes
}
