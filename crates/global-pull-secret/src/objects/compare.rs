//! Comparison of an object with its desired state, apart from the server's defaults.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value};

/// Defaults that servers set. Another value of such a field is a change by another client.
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

/// Returns true if the live object is not as desired. Of its metadata only the managed labels and annotations count, of its
/// status nothing. A field that another client has added is a difference, too.
pub fn differs(desired: &impl Serialize, observed: &impl Serialize) -> bool {
    let (Ok(Value::Object(mut desired)), Ok(Value::Object(mut observed))) =
        (serde_json::to_value(desired), serde_json::to_value(observed))
    else {
        return true;
    };
    let (wanted_metadata, seen_metadata) = (desired.remove("metadata"), observed.remove("metadata"));
    observed.remove("status");
    // Older servers give service accounts a token's name.
    observed.remove("secrets").filter(|_| desired.contains_key("secrets"));
    let ours = |member: &str| {
        let members = |metadata: &Option<Value>| metadata.as_ref()?.get(member)?.as_object().cloned();
        let there = members(&seen_metadata).unwrap_or_default();
        members(&wanted_metadata).unwrap_or_default().iter().all(|(name, value)| there.get(name) == Some(value))
    };
    !ours("labels") || !ours("annotations") || objects_differ(&desired, &observed)
}

fn objects_differ(desired: &Map<String, Value>, observed: &Map<String, Value>) -> bool {
    let missing = desired.iter().any(|(name, value)| match observed.get(name) {
        Some(there) => values_differ(value, there),
        // Servers drop what is empty. What is false is not: without it another default may hold.
        None => !is_empty(value),
    });
    missing || observed.iter().any(|(name, value)| !desired.contains_key(name) && !is_filled_in(name, value))
}

fn values_differ(desired: &Value, observed: &Value) -> bool {
    match (desired, observed) {
        (Value::Object(desired), Value::Object(observed)) => objects_differ(desired, observed),
        (Value::Array(desired), Value::Array(observed)) => {
            desired.len() != observed.len()
                || desired.iter().zip(observed).any(|(desired, observed)| values_differ(desired, observed))
        }
        (desired, observed) => desired != observed,
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

/// A version that changes with the object's spec: its generation, or its resourceVersion if it has none.
pub fn version(metadata: &ObjectMeta) -> String {
    let generation = metadata.generation.map(|generation| format!("generation {generation}"));
    let version = generation.or_else(|| metadata.resource_version.clone()).unwrap_or_default();
    format!("{} {version}", metadata.uid.as_deref().unwrap_or_default())
}
