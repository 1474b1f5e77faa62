//! Bodies as a typed server reads them: values of another type are refused, unknown fields are left out.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Namespace, Node, Pod, ResourceQuota, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::quantity::Quantity;
use super::super::resources::Resource;
use super::super::status::Status;
use super::super::value::{go_kind, list, members, take, text};

use super::schema;

/// A value that is of another type than its field.
struct Mismatch {
    path: String,
    expected: String,
}

/// Takes unknown fields out of an object and returns their paths. A refusal quotes no content.
///
/// A body of another kind is left as it is: it is refused for that.
pub(crate) fn prune(resource: &Resource, object: &mut Value) -> Result<Vec<String>, Status> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    if !version.is_empty() && version != resource.api_version() || !kind.is_empty() && kind != resource.kind {
        return Ok(Vec::new());
    }
    if let Some(schema) = resource.schema() {
        return Ok(schema::prune(schema, object));
    }
    let mut typed = without_nulls(object);
    if resource.storage == "secrets" {
        // Go reads nulls and base64 in lines, the library does not; `decode` has read it before.
        take(&mut typed, &["data"]);
    }
    let known = match known(resource, &typed) {
        None => return Ok(Vec::new()),
        Some(Ok(known)) => known,
        Some(Err(mismatch)) => return Err(refusal(resource, &typed, &mismatch)),
    };
    if resource.storage == "leases.coordination.k8s.io" && has_coarse_time(&typed) {
        let mismatch = Mismatch { path: "spec.renewTime".to_owned(), expected: String::new() };
        return Err(refusal(resource, &typed, &mismatch));
    }
    if has_bad_quantity(&typed) {
        let Resource { kind, version, .. } = resource;
        let why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        return Err(Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")));
    }
    let mut unknown = Vec::new();
    let data =
        object.as_object_mut().filter(|_| resource.storage == "secrets").and_then(|members| members.remove("data"));
    keep(object, &known, "", &mut unknown);
    if let (Some(members), Some(data)) = (object.as_object_mut(), data) {
        members.insert("data".to_owned(), data);
    }
    Ok(unknown)
}

/// The object with the fields of its kind only; none if the kind is not built in.
fn known(resource: &Resource, object: &Value) -> Option<Result<Value, Mismatch>> {
    if resource.custom.is_some() {
        return None;
    }
    Some(match resource.storage.as_str() {
        "namespaces" => through::<Namespace>(object),
        "secrets" => through::<Secret>(object),
        "serviceaccounts" => through::<ServiceAccount>(object),
        "pods" => through::<Pod>(object),
        "configmaps" => through::<ConfigMap>(object),
        "events" => through::<Event>(object),
        "nodes" => through::<Node>(object),
        "resourcequotas" => through::<ResourceQuota>(object),
        "services" => through::<Service>(object),
        "jobs.batch" => through::<Job>(object),
        "daemonsets.apps" => through::<DaemonSet>(object),
        "deployments.apps" => through::<Deployment>(object),
        "leases.coordination.k8s.io" => through::<Lease>(object),
        "roles.rbac.authorization.k8s.io" => through::<Role>(object),
        "rolebindings.rbac.authorization.k8s.io" => through::<RoleBinding>(object),
        "clusterroles.rbac.authorization.k8s.io" => through::<ClusterRole>(object),
        "clusterrolebindings.rbac.authorization.k8s.io" => through::<ClusterRoleBinding>(object),
        "customresourcedefinitions.apiextensions.k8s.io" => through::<CustomResourceDefinition>(object),
        _ => return None,
    })
}

fn through<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, Mismatch> {
    let read: Result<K, _> = serde_path_to_error::deserialize(object);
    let read = read.map_err(|error| Mismatch { path: error.path().to_string(), expected: expected(error.inner()) })?;
    Ok(serde_json::to_value(read).unwrap_or_default())
}

/// The type that a field has; empty if its text is in a wrong format. The library's message ends with the type.
fn expected(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // Other messages may quote content behind the word.
    let message = message.strip_prefix("invalid type: ").unwrap_or_default();
    message.rsplit_once("expected ").map_or("", |(_, expected)| expected).to_owned()
}

fn refusal(resource: &Resource, object: &Value, mismatch: &Mismatch) -> Status {
    let Resource { kind, version, .. } = resource;
    let Mismatch { path, expected } = mismatch;
    let pointer = format!("/{}", path.replace('[', "/").replace(']', "").replace('.', "/"));
    let found = object.pointer(&pointer).map_or("value", go_kind);
    let why = match expected.as_str() {
        "" if path.starts_with("binaryData") => "illegal base64 data at input byte 0".to_owned(),
        "" => format!("parsing time of {path} failed: it is not of RFC 3339"),
        _ => format!("json: cannot unmarshal {found} into Go struct field {kind}.{path} of type {expected}"),
    };
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// True if a time of a Lease has no microseconds: Go reads these times with six digits behind the point, no fewer.
fn has_coarse_time(lease: &Value) -> bool {
    let is_fine = |time: &str| {
        let digits = time.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        time.is_empty() || digits == 6
    };
    !["/spec/renewTime", "/spec/acquireTime"].iter().all(|pointer| is_fine(text(lease, pointer)))
}

/// True if a container's quantity is none.
fn has_bad_quantity(object: &Value) -> bool {
    let spec = object.pointer("/spec/template/spec").or_else(|| object.get("spec")).unwrap_or(&Value::Null);
    for member in ["containers", "initContainers"] {
        for container in list(spec, &format!("/{member}")) {
            for kind in ["limits", "requests"] {
                let mut quantities = members(container, &format!("/resources/{kind}")).into_iter().flatten();
                if quantities.any(|(_, value)| value.as_str().is_some_and(|text| Quantity::read(text).is_none())) {
                    return true;
                }
            }
        }
    }
    false
}

/// Takes out what the known form of a value lacks.
fn keep(value: &mut Value, known: &Value, path: &str, unknown: &mut Vec<String>) {
    match (value, known) {
        (Value::Object(members), Value::Object(kept)) => members.retain(|name, member| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match kept.get(name) {
                Some(known) => keep(member, known, &path, unknown),
                None if member.is_null() => {}
                None => {
                    unknown.push(path);
                    return false;
                }
            }
            true
        }),
        (Value::Array(items), Value::Array(kept)) => {
            for (index, (item, known)) in items.iter_mut().zip(kept).enumerate() {
                keep(item, known, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// In Go a null is a member that is not there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, member)| !member.is_null());
            present.map(|(name, member)| (name.clone(), without_nulls(member))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
