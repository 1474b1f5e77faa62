//! Reads the stored changes since a version, and removes those beyond the retention.

use std::time::Duration;

use jiff::Timestamp;

use super::batch::Batch;
use super::change::{Change, ChangeKind};
use super::sql::{Parameters, Value};
use super::version::{self, Version, newest};
use super::{Store, StoreError, rows};
use crate::tenancy::Reach;

/// Limits of the stored changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of changes.
    pub events: i64,
    /// Maximum age of a change.
    pub age: Duration,
}

/// The changes since a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feed {
    /// The changes with their versions, ascending.
    pub changes: Vec<(i64, Change)>,
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

/// Interval at which the commits of other servers are looked up, once for all readers of the stream.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Store {
    /// Returns the changes of a kind within reach among the next `batch.items` versions after `after`, as many as fit into
    /// `batch.bytes` but at least one; and the last version that was read.
    pub async fn changes_since(
        &self,
        after: &Version,
        kind: &str,
        reach: &Reach,
        batch: Batch,
    ) -> Result<(Feed, Version), FeedError> {
        let mut snapshot = self.database().snapshot().await?;
        let newest = newest(&mut snapshot).await?;
        if *after == newest {
            snapshot.commit().await?;
            return Ok((Feed::default(), newest));
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
                "SELECT {columns} FROM changes WHERE version > {} AND version <= {} AND kind = {} AND {} ORDER BY version",
                parameters.add(Value::Number(version)),
                parameters.add(Value::Number(until)),
                parameters.add(Value::Text(kind.to_owned())),
                reach.sql("tenancy", &mut parameters),
            );
            (sql, parameters)
        };
        let (sql, parameters) = of_kind("version, CAST(OCTET_LENGTH(object) AS BIGINT)", limit);
        let sizes = snapshot.fetch(sql, parameters).await?;
        let sizes =
            sizes.iter().map(|row| Ok((row.number(0)?, row.number(1)?))).collect::<Result<Vec<_>, StoreError>>()?;
        let read_up_to = match batch.fitting(sizes.iter().map(|(_, size)| *size)) {
            all if all == sizes.len() => limit,
            some => sizes.get(some.saturating_sub(1)).map_or(limit, |(version, _)| *version),
        };
        let (sql, parameters) = of_kind("version, type, kind, resource_id, tenancy, time, object", read_up_to);
        let rows = snapshot.fetch(sql, parameters).await?;
        snapshot.commit().await?;
        let mut feed = Feed::default();
        for row in &rows {
            let change = Change {
                kind: ChangeKind::parse(&row.text(1)?).ok_or(StoreError::Damaged { location: "changes.type" })?,
                resource_kind: row.text(2)?,
                resource_id: row.text(3)?,
                tenancy: rows::json(&row.text(4)?, "changes.tenancy")?,
                time: rows::time(row.number(5)?)?,
                object: row.text(6)?,
            };
            feed.changes.push((row.number(0)?, change));
        }
        Ok((feed, after.at(read_up_to)))
    }

    /// Returns the newest version.
    pub async fn newest_version(&self) -> Result<Version, StoreError> {
        let sql = format!("SELECT {} FROM change_counter", version::COLUMNS);
        let rows = self.database().fetch(sql, Parameters::default()).await?;
        rows.first().map(Version::read).transpose()?.ok_or(StoreError::Damaged { location: "change_counter" })
    }

    /// Returns as soon as there is a version after that one, or another epoch; fails if the database cannot be asked.
    ///
    /// This server's own commits notify; [`Store::follow`] finds those of other servers.
    pub async fn wait_beyond(&self, version: &Version) -> Result<(), StoreError> {
        let mut newest = self.newest.subscribe();
        let failures = newest.borrow().failures;
        loop {
            let state = newest.borrow_and_update().clone();
            let is_known = !state.version.epoch.is_empty();
            if is_known && (state.version.epoch != version.epoch || state.version.number > version.number) {
                return Ok(());
            }
            if state.failures != failures || newest.changed().await.is_err() {
                // The failure may have passed; else this returns its cause.
                self.announce(self.newest_version().await?);
                return Ok(());
            }
        }
    }

    /// Finds the commits of other servers, for all readers of the change stream at once, for as long as it is polled.
    pub async fn follow(&self) {
        let mut tick = tokio::time::interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if self.newest.receiver_count() == 0 {
                continue;
            }
            match self.newest_version().await {
                Ok(version) => self.announce(version),
                Err(_outage) => self.newest.send_modify(|newest| newest.failures += 1),
            }
        }
    }

    /// Removes the changes beyond the retention; returns their number.
    pub async fn prune(&self, retention: Retention, now: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.database().begin().await?;
        let age = i64::try_from(retention.age.as_micros()).unwrap_or(i64::MAX);
        let mut parameters = Parameters::default();
        // Only a prefix is removed: a clock that was set back must not leave a hole.
        let sql = format!(
            "DELETE FROM changes WHERE version <= (SELECT version FROM change_counter) - {} \
             OR version <= (SELECT COALESCE(MAX(version), 0) FROM changes WHERE time < {})",
            parameters.add(Value::Number(retention.events)),
            parameters.add(Value::Number(now.as_microsecond().saturating_sub(age))),
        );
        let removed = transaction.execute(sql, parameters).await?;
        transaction.commit().await?;
        Ok(removed)
    }
}
