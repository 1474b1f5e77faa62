//! Whether an object is as it is to be, but for what the server fills in.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value};

/// What servers fill in where nothing is said. Filled in otherwise it is somebody's change.
const DEFAULTS: &[(&str, &str)] = &[
    ("dnsPolicy", "\"ClusterFirst\""),
    ("failureThreshold", "3"),
    ("imagePullPolicy", "\"IfNotPresent\""),
    ("imagePullPolicy", "\"Always\""),
    ("periodSeconds", "10"),
    ("restartPolicy", "\"Always\""),
    ("revisionHistoryLimit", "10"),
    ("schedulerName", "\"default-scheduler\""),
    ("successThreshold", "1"),
    ("terminationGracePeriodSeconds", "30"),
    ("terminationMessagePath", "\"/dev/termination-log\""),
    ("terminationMessagePolicy", "\"File\""),
    ("timeoutSeconds", "1"),
];

/// The older name of a Pod's `serviceAccountName`, which servers keep beside it.
const ALIAS: &str = "serviceAccount";

/// Whether what is there is not what is wanted. Of its metadata only our labels and annotations count, of its status
/// nothing. What somebody has added is a difference, too.
pub fn differs(wanted: &impl Serialize, seen: &impl Serialize) -> bool {
    let (Ok(Value::Object(mut wanted)), Ok(Value::Object(mut seen))) =
        (serde_json::to_value(wanted), serde_json::to_value(seen))
    else {
        return true;
    };
    let (wanted_metadata, seen_metadata) = (wanted.remove("metadata"), seen.remove("metadata"));
    seen.remove("status");
    // Older servers give service accounts a token's name.
    seen.remove("secrets").filter(|_| wanted.contains_key("secrets"));
    let ours = |member: &str| {
        let members = |metadata: &Option<Value>| metadata.as_ref()?.get(member)?.as_object().cloned();
        let there = members(&seen_metadata).unwrap_or_default();
        members(&wanted_metadata).unwrap_or_default().iter().all(|(name, value)| there.get(name) == Some(value))
    };
    !ours("labels") || !ours("annotations") || objects_differ(&wanted, &seen)
}

fn objects_differ(wanted: &Map<String, Value>, seen: &Map<String, Value>) -> bool {
    let missing = wanted.iter().any(|(name, value)| match seen.get(name) {
        Some(there) => values_differ(value, there),
        // Servers drop what is empty. What is false is not: without it another default may hold.
        None => !is_empty(value),
    });
    missing || seen.iter().any(|(name, value)| !wanted.contains_key(name) && !is_filled_in(name, value))
}

fn values_differ(wanted: &Value, seen: &Value) -> bool {
    match (wanted, seen) {
        (Value::Object(wanted), Value::Object(seen)) => objects_differ(wanted, seen),
        (Value::Array(wanted), Value::Array(seen)) => {
            wanted.len() != seen.len() || wanted.iter().zip(seen).any(|(wanted, seen)| values_differ(wanted, seen))
        }
        (wanted, seen) => wanted != seen,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_nothing(value: &Value) -> bool {
    is_empty(value) || *value == Value::Bool(false) || value.as_i64() == Some(0)
}

fn is_filled_in(name: &str, value: &Value) -> bool {
    is_nothing(value) || name == ALIAS || DEFAULTS.contains(&(name, value.to_string().as_str()))
}

/// What changes when somebody changes what is wanted of the object: its generation, or where it has none its version.
pub fn version(metadata: &ObjectMeta) -> String {
    let generation = metadata.generation.map(|generation| format!("generation {generation}"));
    let version = generation.or_else(|| metadata.resource_version.clone()).unwrap_or_default();
    format!("{} {version}", metadata.uid.as_deref().unwrap_or_default())
}
