//! The adapter's view of a cluster.

use hyperfleet_client::{Generation, Resource};
use serde_json::{Value, json};

/// The adapter's view of a cluster, if it has one.
pub fn view(cluster: &Resource) -> Value {
    cluster.status.adapters.as_ref().and_then(|adapters| adapters.get("pullsecret")).cloned().unwrap_or_default()
}

/// The number of the adapter's last attempt. It stays when the attempt is over, as conditions do not.
pub fn attempt(cluster: &Resource) -> Option<u64> {
    view(cluster)["data"]["attempt"]["number"].as_u64()
}

/// True if the adapter reports the pull secret as available at that generation.
pub fn is_available(cluster: &Resource, generation: impl Into<Generation>) -> bool {
    let generation = generation.into();
    let view = view(cluster);
    view["available"] == "True" && view["observed_generation"] == json!(generation)
}

/// One of the adapter's conditions.
pub fn condition(cluster: &Resource, kind: &str) -> Value {
    let view = view(cluster);
    let conditions = view["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}
