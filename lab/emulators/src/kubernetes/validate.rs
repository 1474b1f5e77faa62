//! Validation of objects, with the field, in a real server's wording.

use serde_json::Value;

use super::resources::Resource;
use super::status::Cause;
use super::value::{members, text};
use super::{meta, pod_security};

mod access;
mod decode;
mod doubled;
mod jobs;
pub(crate) mod names;
mod schema;
mod secrets;
mod typed;
mod workloads;

pub(crate) use decode::decode;
pub(crate) use doubled::doubled;
pub(crate) use schema::fill;
pub(crate) use typed::prune;

/// Maximum number of bytes of an object's annotations.
const ANNOTATION_BYTES_MAXIMUM: usize = 256 * 1024;

/// The faults of a new object.
pub(crate) fn created(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = metadata(resource, object);
    causes.extend(own(resource, object));
    if resource.storage == "jobs.batch" {
        causes.extend(jobs::created(object));
    }
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
            ("batch", "jobs") => jobs::job_updated(old, new),
            ("apps", "daemonsets") => workloads::daemon_set_updated(old, new),
            ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
                workloads::immutable(old, new, "/roleRef", "roleRef").into_iter().collect()
            }
            _ => Vec::new(),
        });
    }
    causes
}

/// The rules of the kind.
fn own(resource: &Resource, object: &Value) -> Vec<Cause> {
    if resource.custom.is_some() {
        return resource.schema().map_or_else(Vec::new, |schema| schema::faults(schema, object));
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "secrets") => secrets::secret(object),
        ("", "configmaps") => secrets::config_map(object),
        ("", "pods") => workloads::pod(object),
        ("", "namespaces") => pod_security::labels(object),
        ("batch", "jobs") => jobs::job(object),
        ("apps", "daemonsets") => workloads::daemon_set(object),
        ("apiextensions.k8s.io", _) => workloads::definition(object),
        ("", "events") => access::event(object),
        ("coordination.k8s.io", "leases") => access::lease(object),
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => access::role(object, resource.is_namespaced()),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => access::binding(object),
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
        names::dotless(name)
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
    causes.extend(finalizers(object));
    causes.extend(owners(object));
    causes
}

/// Finalizers of the server's own, which need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["foregroundDeletion", "orphan", "kubernetes"];

fn finalizers(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, finalizer) in meta::finalizers(object).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if let Some(wrong) = names::label_key(name) {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, &wrong));
        } else if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let message = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&format!("metadata.finalizers[{index}]"), finalizer, message));
        }
    }
    causes
}

fn owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, owner) in meta::owners(object).iter().enumerate() {
        for member in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &format!("/{member}")).is_empty() {
                let field = format!("metadata.ownerReferences[{index}].{member}");
                causes.push(Cause::required(&field, "must not be empty"));
            }
        }
        if text(owner, "/kind") == "Event" && text(owner, "/apiVersion") == "v1" {
            let message = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(&format!("metadata.ownerReferences[{index}]"), owner, message));
        }
    }
    causes
}
