//! Counts the resources that are not reconciled.

use std::time::Duration;

use database::{Parameters, Value};
use fleet_model::names::condition::RECONCILED;
use jiff::Timestamp;

use super::{Store, StoreError};

/// Counts of the resources of one kind that are not reconciled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The kind of the resources.
    pub kind: String,
    /// True for terminating resources.
    pub is_delete: bool,
    /// Number of resources that are not reconciled.
    pub waiting: i64,
    /// Number of those that have not been reconciled for longer than the threshold.
    pub stuck: i64,
    /// Time for which the oldest of these has not been reconciled, in seconds; 0 without any.
    pub longest_seconds: i64,
}

impl Store {
    /// Counts the resources that are not reconciled now, by kind and by being terminating.
    pub async fn pending(&self, now: Timestamp, threshold: Duration) -> Result<Vec<Pending>, StoreError> {
        let threshold = i64::try_from(threshold.as_micros()).unwrap_or(i64::MAX);
        let mut parameters = Parameters::default();
        let limit = parameters.add(Value::Number(now.as_microsecond().saturating_sub(threshold)));
        let sql = format!(
            "SELECT r.kind, CASE WHEN r.deleted_time IS NULL THEN 0 ELSE 1 END AS is_delete, COUNT(*), \
             COUNT(CASE WHEN c.last_transition_time < {limit} THEN 1 END), \
             MIN(CASE WHEN c.last_transition_time < {limit} THEN c.last_transition_time END) \
             FROM resource_conditions c JOIN resources r ON r.id = c.resource_id \
             WHERE c.type = '{RECONCILED}' AND c.status = 'False' GROUP BY 1, 2 ORDER BY 1, 2"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        let pending = rows.iter().map(|row| {
            let since = row.optional_number(4)?.unwrap_or_else(|| now.as_microsecond());
            Ok(Pending {
                kind: row.text(0)?,
                is_delete: row.number(1)? == 1,
                waiting: row.number(2)?,
                stuck: row.number(3)?,
                longest_seconds: (now.as_microsecond() - since) / 1_000_000,
            })
        });
        pending.collect()
    }
}
