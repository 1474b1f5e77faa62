//! Drift: a live object that is no longer as it was applied.

use std::fmt::Write as _;

use fleet_model::names;
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::ownership::{Fields, applied, is_shared, owned};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The digest of an object that is to be applied, apart from its metadata.
pub fn digest(object: &impl Serialize) -> String {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.remove("metadata");
    }
    let digest = Sha256::digest(value.to_string());
    digest.iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// Returns true if the desired object is another than the applied one, if the live one lacks something of it, if more than it is
/// applied (a transfer of ownership that was not followed by the apply), or if another manager has set an exclusive field.
///
/// Other fields are left to their managers, and to the server's defaults. A value that differs although the controller still
/// owns its field is not drift either: an admission webhook has changed what was applied, and would do so again.
pub fn is_drifted<K>(desired: &K, observed: &K, exclusive: &[&str]) -> bool
where
    K: Metadata<Ty = ObjectMeta> + Serialize,
{
    let (Ok(wanted), Ok(live)) = (serde_json::to_value(desired), serde_json::to_value(observed)) else { return true };
    let (metadata, manager) = (observed.metadata(), names::GLOBAL_MANAGER);
    applied_digest(desired) != applied_digest(observed)
        || !is_as_applied(&wanted, Some(&live), Some(&owned(metadata, manager)))
        || !are_desired(&applied(metadata, manager), &wanted)
        || is_shared(metadata, manager, exclusive)
}

fn applied_digest(object: &impl Metadata<Ty = ObjectMeta>) -> Option<&str> {
    object.metadata().annotations.as_ref()?.get(names::ANNOTATION_APPLIED).map(String::as_str)
}

/// Returns true if the live value has all that is desired, or if the field is still owned.
fn is_as_applied(desired: &Value, live: Option<&Value>, owned: Option<&Fields>) -> bool {
    match (desired, live) {
        (Value::Object(desired), Some(Value::Object(live))) => desired.iter().all(|(name, value)| {
            let owned = owned.and_then(|owned| owned.get(&format!("f:{name}"))?.as_object());
            is_as_applied(value, live.get(name), owned)
        }),
        (Value::Array(desired), Some(Value::Array(live))) if desired.iter().all(Value::is_object) => {
            are_as_applied(desired, live, owned)
        }
        (desired, live) => live == Some(desired) || (!desired.is_array() && !desired.is_object() && owned.is_some()),
    }
}

/// The same for the objects of a list. If they are owned one by one, others may be beside them; else the list is one value.
fn are_as_applied(desired: &[Value], live: &[Value], owned: Option<&Fields>) -> bool {
    let keyed = |(step, fields): (&String, &Value)| {
        let key: Fields = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
        Some((key, fields.as_object()?.clone()))
    };
    let keyed: Vec<(Fields, Fields)> = owned.into_iter().flatten().filter_map(keyed).collect();
    if keyed.is_empty() {
        let is_there = |item: &Value| live.iter().any(|live| is_as_applied(item, Some(live), None));
        return desired.len() == live.len() && desired.iter().all(is_there);
    }
    desired.iter().all(|item| {
        keyed
            .iter()
            .filter(|(key, _)| has_key(item, key))
            .any(|(key, owned)| is_as_applied(item, live.iter().find(|live| has_key(live, key)), Some(owned)))
    })
}

/// Returns true if every one of these fields is in the desired object.
fn are_desired(fields: &Fields, desired: &Value) -> bool {
    let is_desired = |(step, below): (&String, &Value)| {
        let value = match step.split_once(':') {
            Some(("f", name)) => desired.get(name),
            Some(("k", key)) => {
                let key = serde_json::from_str(key).unwrap_or_default();
                desired.as_array().and_then(|items| items.iter().find(|item| has_key(item, &key)))
            }
            // The container itself, or an item of a set.
            _ => return true,
        };
        value.is_some_and(|value| below.as_object().is_none_or(|below| are_desired(below, value)))
    };
    fields.iter().all(is_desired)
}

fn has_key(item: &Value, key: &Fields) -> bool {
    key.iter().all(|(name, value)| item.get(name) == Some(value))
}
