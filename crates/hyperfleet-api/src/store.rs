//! Stores resources in SQLite or PostgreSQL, with one set of statements for both.

mod batch;
mod causes;
mod change;
mod checkpoint;
mod commits;
mod connect;
pub mod database;
mod effects;
mod error;
mod feed;
mod follow;
mod following;
mod list;
pub mod meter;
mod page;
mod pending;
mod recent;
mod recorded;
mod restore;
mod rows;
pub mod schema;
mod sealed;
pub mod sql;
mod statements;
mod tombstone;
mod transition;
mod version;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleet_model::Transition;
use jiff::Timestamp;

use crate::tenancy::Reach;
use database::{Database, Transaction};
use following::Following;
use sql::{Parameters, Value};

pub use batch::Batch;
pub use change::ChangeKind;
pub use connect::{PoolSettings, Source};
pub use effects::TRANSITIONS_KEPT;
pub use error::StoreError;
pub use feed::{FeedError, Retention};
pub use follow::Reader;
pub use list::Query;
pub use page::Page;
pub use pending::Pending;
pub use recent::Changes;
pub use recorded::Recorded;
pub use rows::Stored;
pub use version::Version;
pub use write::{Committed, Lock, Prepared, Write};

/// The store of resources, transitions and changes. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
    following: Arc<Following>,
    usable: Arc<AtomicBool>,
}

/// A resource as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The resource's kind.
    pub kind: String,
    /// The id of its owner, if it has one.
    pub owner_id: Option<String>,
    /// The text of its JSON.
    pub text: String,
}

// === impl Store ===

impl Store {
    fn new(database: Database) -> Self {
        let following = Arc::new(Following::new(database.readers()));
        Self { database, following, usable: Arc::default() }
    }

    /// Returns the database, for probes and migrations.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns true once the schema is up to date. Until then nothing may be read or written.
    pub fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// Migrates the schema, after which the store is usable; returns the applied migrations.
    pub async fn migrate(&self, lock_timeout: Duration, now: Timestamp) -> Result<Vec<&'static str>, StoreError> {
        let applied = schema::migrate(&self.database, lock_timeout, now.as_microsecond()).await?;
        self.usable.store(true, Ordering::Release);
        Ok(applied)
    }

    /// Returns the resource within reach with that id, of any kind.
    pub async fn get(&self, id: &str, reach: &Reach) -> Result<Option<Stored>, StoreError> {
        let mut parameters = Parameters::default();
        let columns = rows::columns(self.database.dialect());
        let sql = format!(
            "SELECT {columns} FROM resources r WHERE r.id = {} AND {}",
            parameters.add(Value::Text(id.to_owned())),
            reach.sql("r.tenancy", &mut parameters),
        );
        self.database.fetch(sql, parameters).await?.first().map(rows::read).transpose()
    }

    /// Returns the JSON of the resource within reach with that id, with its kind and owner.
    pub async fn object(&self, id: &str, reach: &Reach) -> Result<Option<Object>, StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT r.kind, r.owner_id, r.object FROM resources r WHERE r.id = {} AND {}",
            parameters.add(Value::Text(id.to_owned())),
            reach.sql("r.tenancy", &mut parameters),
        );
        let rows = self.database.fetch(sql, parameters).await?;
        let read = |row: &database::Row| {
            Ok(Object { kind: row.text(0)?, owner_id: row.optional_text(1)?, text: row.text(2)? })
        };
        rows.first().map(read).transpose()
    }

    /// Returns a page of a resource's transitions, newest first.
    pub async fn history(&self, id: &str, offset: i64, limit: i64) -> Result<Page<Transition>, StoreError> {
        let mut snapshot = self.database.snapshot().await?;
        let mut parameters = Parameters::default();
        let owner = parameters.add(Value::Text(id.to_owned()));
        let sql = format!("SELECT COUNT(*) FROM transitions WHERE resource_id = {owner}");
        let total = count(&mut snapshot, sql, parameters).await?;
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT adapter, type, from_status, to_status, reason, message, observed_generation, time FROM transitions \
             WHERE resource_id = {} ORDER BY number DESC LIMIT {} OFFSET {}",
            parameters.add(Value::Text(id.to_owned())),
            parameters.add(Value::Number(limit)),
            parameters.add(Value::Number(offset)),
        );
        let rows = snapshot.fetch(sql, parameters).await?;
        snapshot.commit().await?;
        Ok(Page { items: rows.iter().map(transition::read).collect::<Result<_, _>>()?, total })
    }

    /// Begins a write.
    pub async fn write(&self) -> Result<Write, StoreError> {
        Ok(Write::new(self.database.begin().await?))
    }

    /// True after a write for which the disk had no room, until [`Store::probe`] finds some.
    pub fn is_full(&self) -> bool {
        self.database.meter().is_full.load(Ordering::Relaxed)
    }

    /// Writes a row; fails where nothing can be written. After a write for which the disk had no room it demands a reserve,
    /// so that the next few writes do not fail again.
    pub async fn probe(&self, now: Timestamp) -> Result<(), StoreError> {
        /// More than fits into a page, so that the write needs room.
        const LITTLE: usize = 16 * 1024;
        /// Room for some writes of the largest resources.
        const RESERVE: usize = 4 * 1024 * 1024;
        self.write_probe(now, if self.is_full() { RESERVE } else { LITTLE }).await?;
        if self.is_full() {
            self.write_probe(now, LITTLE).await?;
            self.database.meter().is_full.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn write_probe(&self, now: Timestamp, size: usize) -> Result<(), StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "INSERT INTO write_probe (id, time, filler) VALUES (1, {}, {}) \
             ON CONFLICT (id) DO UPDATE SET time = excluded.time, filler = excluded.filler",
            parameters.add(Value::Number(now.as_microsecond())),
            parameters.add(Value::Text("x".repeat(size))),
        );
        let mut transaction = self.database.begin().await?;
        transaction.execute(sql, parameters).await?;
        transaction.commit().await
    }

    /// Fails if the database does not answer, or does not give its write lock.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let mut transaction = self.database.begin().await?;
        transaction.fetch("SELECT 1".to_owned(), Parameters::default()).await?;
        transaction.commit().await
    }
}

async fn count(snapshot: &mut Transaction, sql: String, parameters: Parameters) -> Result<i64, StoreError> {
    snapshot.fetch(sql, parameters).await?.first().map_or(Ok(0), |row| row.number(0))
}
