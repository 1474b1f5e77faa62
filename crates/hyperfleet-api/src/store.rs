//! Stores resources in SQLite or PostgreSQL, with one set of statements for both.

mod batch;
mod causes;
mod change;
mod effects;
mod error;
mod feed;
mod follow;
mod following;
mod list;
mod page;
mod pending;
mod recent;
mod recorded;
mod restore;
mod rows;
pub mod schema;
mod tombstone;
mod transition;
mod version;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use database::{Component, Database, Parameters, PoolSettings, Row, Source, Transaction, Value};
use fleet_model::Transition;
use jiff::Timestamp;

use crate::tenancy::Reach;
use following::Following;
use schema::SCHEMA;

pub use batch::Batch;
pub use change::ChangeKind;
pub use effects::TRANSITIONS_KEPT;
pub use error::StoreError;
pub(crate) use error::is_id;
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

/// The API as its database knows it.
const COMPONENT: Component = Component {
    application: "hyperfleet-api",
    tables: &[
        "tombstones",
        "resource_counts",
        "resource_labels",
        "resource_conditions",
        "resource_references",
        "resources",
        "transitions",
        "change_counter",
        "changes",
    ],
};

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
    /// Opens the database. An unreachable server is no error: requests are answered as unavailable until it is reachable.
    pub fn open(source: &Source, pool: PoolSettings) -> Result<Self, StoreError> {
        let database = Database::open(source, pool, &COMPONENT)?;
        let following = Arc::new(Following::new(database.readers()));
        Ok(Self { database, following, usable: Arc::default() })
    }

    /// Returns the database, for probes, checkpoints and metrics.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns true once the schema is up to date. Until then nothing may be read or written.
    pub fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// Migrates the schema, after which the store is usable; returns the applied migrations.
    pub async fn migrate(&self, lock_timeout: Duration, now: Timestamp) -> Result<Vec<&'static str>, StoreError> {
        let applied = SCHEMA.migrate(&self.database, lock_timeout, now.as_microsecond()).await?;
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
        let read = |row: &Row| Ok(Object { kind: row.text(0)?, owner_id: row.optional_text(1)?, text: row.text(2)? });
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
}

async fn count(snapshot: &mut Transaction, sql: String, parameters: Parameters) -> Result<i64, StoreError> {
    snapshot.fetch(sql, parameters).await?.first().map_or(Ok(0), |row| row.number(0))
}
