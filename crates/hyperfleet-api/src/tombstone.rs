//! Tombstones: what is known of a resource that was removed without waiting for its adapters.

use std::collections::BTreeMap;

use fleet_model::Generation;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// The record of a resource that was removed by force. It names the copies that its adapters have reported and not deleted, until
/// they are swept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tombstone {
    /// Its own id, a `UUIDv7`.
    pub id: String,
    /// The id of the removed resource.
    pub resource_id: String,
    /// The kind of the removed resource.
    pub kind: String,
    /// The name of the removed resource.
    pub name: String,
    /// The creation time of the removed resource, which tells it from others with its id.
    pub incarnation: Timestamp,
    /// The last generation of the removed resource.
    pub generation: Generation,
    /// The tenancy of the removed resource.
    pub tenancy: BTreeMap<String, String>,
    /// The time of the removal.
    pub removed_time: Timestamp,
    /// The identity that removed it.
    pub removed_by: String,
    /// The reason that was given.
    pub reason: String,
    /// The copies that were reported (`data.copies`) and are not known to be deleted, as they were reported.
    pub copies: Vec<Value>,
}
