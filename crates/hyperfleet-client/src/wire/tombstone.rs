//! Tombstones of resources that were removed by force.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The record of a resource that was removed by force.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Tombstone {
    /// The id of the tombstone.
    pub id: String,
    /// The id of the removed resource.
    pub resource_id: String,
    /// The creation time of the removed resource.
    pub incarnation: Timestamp,
    /// The time of the removal.
    pub removed_time: Timestamp,
    /// The copies that are not known to be deleted, as adapters have reported them.
    #[serde(default)]
    pub copies: Vec<Value>,
}
