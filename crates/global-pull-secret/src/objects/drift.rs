//! Drift: a live object that is no longer as it was applied.

use std::fmt::Write as _;

use fleet_model::names;
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::ownership::is_shared;
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

/// Returns true if the live object lacks something of the desired one, or another manager has set an exclusive field.
///
/// Other fields are left to their managers, and to the server's defaults.
pub fn is_drifted<K>(desired: &K, observed: &K, exclusive: &[&str]) -> bool
where
    K: Metadata<Ty = ObjectMeta> + Serialize,
{
    let (Ok(wanted), Ok(live)) = (serde_json::to_value(desired), serde_json::to_value(observed)) else { return true };
    !is_contained(&wanted, &live) || is_shared(observed.metadata(), names::GLOBAL_MANAGER, exclusive)
}

/// Returns true if every member of an object is in the live one. A list has the same items; objects in it may be in any order.
fn is_contained(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            desired.iter().all(|(name, value)| live.get(name).is_some_and(|live| is_contained(value, live)))
        }
        (Value::Array(desired), Value::Array(live)) if desired.iter().all(Value::is_object) => {
            desired.len() == live.len() && desired.iter().all(|item| live.iter().any(|live| is_contained(item, live)))
        }
        (desired, live) => desired == live,
    }
}
