//! Reads the stored changes since a version, and removes those beyond the retention.

use std::sync::Arc;
use std::time::Duration;

use database::{Parameters, Value};
use jiff::Timestamp;

use super::batch::Batch;
use super::recent::Changes;
use super::recorded::{self, Recorded};
use super::version::{self, Version, newest};
use super::{Store, StoreError};
use crate::tenancy::Reach;

/// Limits of the stored changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of changes.
    pub events: i64,
    /// Maximum age of a change.
    pub age: Duration,
}

/// Changes since a version that cannot be returned.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The changes after the version are no longer stored, or the version is of another epoch.
    #[error("the change stream does not reach back to that version")]
    Gone,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Returns the changes of a kind within reach among the next `batch.items` versions after `after`, as many as fit into
    /// `batch.bytes` but at least one; and the last version that was read.
    pub(super) async fn changes_since(
        &self,
        after: &Version,
        kind: &str,
        reach: &Reach,
        batch: Batch,
    ) -> Result<Changes, FeedError> {
        let mut snapshot = self.database().snapshot().await?;
        let newest = newest(&mut snapshot).await?;
        if *after == newest {
            snapshot.commit().await?;
            return Ok((Vec::new(), newest));
        }
        let (version, is_ours) = (after.number, after.epoch == newest.epoch);
        let sql = "SELECT COALESCE(MIN(version), 0) FROM changes".to_owned();
        let oldest = snapshot.fetch(sql, Parameters::default()).await?.first().map_or(Ok(0), |row| row.number(0))?;
        if !is_ours || version > newest.number || oldest == 0 || version < oldest - 1 {
            return Err(FeedError::Gone);
        }
        let limit = newest.number.min(version.saturating_add(batch.items));
        let of_kind = |columns: &str, until: i64| {
            let mut parameters = Parameters::default();
            let sql = format!(
                "SELECT {columns} FROM changes c WHERE c.version > {} AND c.version <= {} AND c.kind = {} AND {} ORDER BY c.version",
                parameters.add(Value::Number(version)),
                parameters.add(Value::Number(until)),
                parameters.add(Value::Text(kind.to_owned())),
                reach.sql("c.tenancy", &mut parameters),
            );
            (sql, parameters)
        };
        let (sql, parameters) = of_kind("c.version, CAST(OCTET_LENGTH(c.object) AS BIGINT)", limit);
        let sizes = snapshot.fetch(sql, parameters).await?;
        let sizes =
            sizes.iter().map(|row| Ok((row.number(0)?, row.number(1)?))).collect::<Result<Vec<_>, StoreError>>()?;
        let read_up_to = match batch.fitting(sizes.iter().map(|(_, size)| *size)) {
            all if all == sizes.len() => limit,
            some => sizes.get(some.saturating_sub(1)).map_or(limit, |(version, _)| *version),
        };
        let (sql, parameters) = of_kind(recorded::COLUMNS, read_up_to);
        let rows = snapshot.fetch(sql, parameters).await?;
        snapshot.commit().await?;
        let changes = rows.iter().map(|row| Ok(Arc::new(Recorded::read(row, 0, &newest)?)));
        Ok((changes.collect::<Result<_, StoreError>>()?, after.at(read_up_to)))
    }

    /// Returns the newest version.
    pub async fn newest_version(&self) -> Result<Version, StoreError> {
        let sql = format!("SELECT {} FROM change_counter", version::COLUMNS);
        let rows = self.database().fetch(sql, Parameters::default()).await?;
        rows.first().map(Version::read).transpose()?.ok_or(StoreError::Damaged { location: "change_counter" })
    }

    /// Removes the changes beyond the retention; returns their number.
    pub async fn prune(&self, retention: Retention, now: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.database().begin().await?;
        let age = i64::try_from(retention.age.as_micros()).unwrap_or(i64::MAX);
        let mut parameters = Parameters::default();
        // Only a prefix is removed, up to the oldest change that is young enough: a clock that was set back must not leave a
        // hole. No index of the times is needed, which each write would have to maintain.
        let sql = format!(
            "DELETE FROM changes WHERE version <= (SELECT version FROM change_counter) - {} OR version < COALESCE(\
             (SELECT MIN(version) FROM changes WHERE time >= {}), \
             (SELECT version + 1 FROM change_counter))",
            parameters.add(Value::Number(retention.events)),
            parameters.add(Value::Number(now.as_microsecond().saturating_sub(age))),
        );
        let removed = transaction.execute(sql, parameters).await?;
        transaction.commit().await?;
        Ok(removed)
    }
}
