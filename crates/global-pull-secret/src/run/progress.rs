//! The progress of the controller.

use fleet_model::ReportedCondition;

/// The progress of the controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Number of reconciles.
    pub reconciles: u64,
    /// The conditions of the last reconcile.
    pub conditions: Vec<ReportedCondition>,
    /// True once all caches have synced.
    pub has_synced: bool,
    /// The present failure of a watch or a write.
    pub failure: Option<String>,
}
