//! One follower reads the changes from the database, for all readers of the change stream.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use daemon::passes::ticks;
use database::{Parameters, Value};
use tokio::sync::{SemaphorePermit, watch};
use tokio::time::timeout;

use super::batch::Batch;
use super::feed::FeedError;
use super::following::Followed;
use super::recent::{Changes, Read};
use super::recorded::{self, Recorded};
use super::version::{self, Version};
use super::{Store, StoreError};
use crate::tenancy::Reach;

/// Interval at which the commits of other servers are looked up.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum time of one read: a statement whose response was lost must not keep the readers waiting.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum of one read.
const READ: Batch = Batch { items: 1000, bytes: 4 * 1024 * 1024 };

/// A reader of the change stream. While there is one, the changes are followed.
#[derive(Debug)]
pub struct Reader {
    store: Store,
    followed: watch::Receiver<Followed>,
    outages: u64,
    /// True if the database had nothing after the reader's position, which the follower does not know yet.
    is_ahead: bool,
}

/// Fails work that takes too long.
async fn in_time<T, E: From<StoreError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    timeout(READ_TIMEOUT, work).await.unwrap_or_else(|_elapsed| Err(StoreError::timed_out().into()))
}

// === impl Store ===

impl Store {
    /// Tells the follower of the changes of a version which this server has committed, or which a reader has read.
    pub fn announce(&self, version: Version) {
        self.following.announced.send_if_modified(|announced| {
            let is_newer = version.is_beyond(announced);
            if is_newer {
                *announced = version;
            }
            is_newer
        });
    }

    /// Returns a new reader of the change stream.
    pub fn reader(&self) -> Reader {
        let followed = self.following.followed.subscribe();
        let Followed { until, outages } = followed.borrow().clone();
        if until.epoch.is_empty() {
            // The follower need not wait for its next poll.
            self.following.announced.send_modify(|_same| ());
        }
        Reader { store: self.clone(), followed, outages, is_ahead: false }
    }

    /// Waits for the permit of a reader that reads the database itself.
    pub async fn read_permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.following.read_permits.acquire().await.ok()
    }

    /// Reads the changes for all readers, for as long as it is polled: after each commit of this server, and periodically for
    /// those of other servers.
    pub async fn follow(&self) {
        let following = &self.following;
        let mut announced = following.announced.subscribe();
        let mut tick = ticks(POLL_INTERVAL);
        let mut failures = 0;
        loop {
            tokio::select! {
                _poll = tick.tick() => {}
                Ok(()) = announced.changed() => {
                    let until = following.followed.borrow().until.clone();
                    if !announced.borrow_and_update().is_beyond(&until) && !until.epoch.is_empty() {
                        continue;
                    }
                }
            }
            if following.followed.receiver_count() == 0 {
                following.recent.clear();
                following.publish(Version::default());
                continue;
            }
            match self.read_on().await {
                Ok(()) => failures = 0,
                // A single broken connection is no outage.
                Err(_failed) if failures == 0 => failures = 1,
                Err(_outage) => following.interrupt(),
            }
            tick.reset();
        }
    }

    /// Reads all changes that the follower has not read yet.
    async fn read_on(&self) -> Result<(), StoreError> {
        let following = &self.following;
        loop {
            let position = following.recent.until();
            let read = in_time(async {
                match &position {
                    Some(position) => self.read_after(position).await,
                    None => Ok(Read { newest: self.newest_version().await?, changes: Vec::new() }),
                }
            });
            let read = read.await?;
            let newest = read.newest.clone();
            if position.is_some_and(|position| position.epoch == newest.epoch && position.number > newest.number) {
                // Commits were lost, so readers may have changes that did not happen: they have to ask anew.
                following.interrupt();
            }
            following.recent.add(read);
            let Some(until) = following.recent.until() else { return Ok(()) };
            let is_all = !newest.is_beyond(&until);
            following.publish(until);
            if is_all {
                return Ok(());
            }
        }
    }

    /// Reads the newest version and the next changes of all kinds and tenancies after that one, in one statement.
    async fn read_after(&self, after: &Version) -> Result<Read, StoreError> {
        let mut parameters = Parameters::default();
        let (changed, read) = (version::COLUMNS.replace("version", "n.version"), recorded::COLUMNS);
        let begin = parameters.add(Value::Number(after.number));
        let end = parameters.add(Value::Number(after.number.saturating_add(READ.items)));
        let bytes = parameters.add(Value::Number(READ.bytes));
        // The range is given twice: else PostgreSQL may choose to join the whole table.
        let sql = format!(
            "SELECT {changed}, {read} FROM change_counter n LEFT JOIN (SELECT version, SUM(size) OVER (ORDER BY version) - size \
             AS before FROM (SELECT version, CAST(OCTET_LENGTH(object) AS BIGINT) AS size FROM changes \
             WHERE version > {begin} AND version <= {end}) sized) s ON s.before < {bytes} \
             LEFT JOIN changes c ON c.version = s.version AND c.version > {begin} AND c.version <= {end} ORDER BY c.version"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        let first = rows.first().ok_or(StoreError::Damaged { location: "change_counter" })?;
        let newest = Version::read(first)?;
        let is_there = newest.epoch == after.epoch && first.optional_number(2)?.is_some();
        let changes = if is_there { rows.as_slice() } else { &[] };
        let changes = changes.iter().map(|row| Recorded::read(row, 2, &newest)).collect::<Result<_, _>>()?;
        Ok(Read { newest, changes })
    }
}

// === impl Reader ===

impl Reader {
    /// Fails if a reader cannot begin after that version: the changes after it are no longer stored, or it is not one that the
    /// database has given.
    pub async fn check(&self, version: &Version) -> Result<(), FeedError> {
        if self.store.following.recent.reaches(version) {
            return Ok(());
        }
        let _permit = self.store.read_permit().await;
        let nothing = Batch { items: 0, bytes: 0 };
        in_time(self.store.changes_since(version, "", &Reach::default(), nothing)).await.map(drop)
    }

    /// Returns as soon as there may be changes after that version; false if the database cannot be read.
    pub async fn wait_beyond(&mut self, version: &Version) -> bool {
        if std::mem::take(&mut self.is_ahead) && self.followed.changed().await.is_err() {
            return false;
        }
        loop {
            {
                let followed = self.followed.borrow_and_update();
                if followed.outages != self.outages {
                    return false;
                }
                if followed.until.is_beyond(version) && !followed.until.epoch.is_empty() {
                    return true;
                }
            }
            if self.followed.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Returns the changes of a kind within reach among the next `batch.items` versions after `after`, as many as fit into
    /// `batch.bytes` but at least one; from memory if they are there.
    pub async fn read(
        &mut self,
        after: &Version,
        kind: &str,
        reach: &Reach,
        batch: Batch,
    ) -> Result<Changes, FeedError> {
        let following = Arc::clone(&self.store.following);
        if let Some(changes) = following.recent.after(after, kind, reach, batch) {
            return Ok(changes);
        }
        let _permit = self.store.read_permit().await;
        let (changes, version) = in_time(self.store.changes_since(after, kind, reach, batch)).await?;
        self.is_ahead = version == *after;
        self.store.announce(version.clone());
        Ok((changes, version))
    }
}
