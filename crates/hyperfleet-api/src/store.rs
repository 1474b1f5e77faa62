//! Stores resources in SQLite or PostgreSQL, with one set of statements for both.

mod batch;
mod change;
mod connect;
pub mod database;
mod error;
mod feed;
pub mod meter;
mod pending;
mod restore;
mod rows;
pub mod schema;
mod sealed;
pub mod sql;
mod tombstone;
mod transition;
mod version;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleet_model::Transition;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::resource::Resource;
use crate::search::{Order, Search};
use crate::tenancy::Reach;
use batch::Newest;
use database::{Database, Transaction};
use sql::{Parameters, Value};

pub use batch::Batch;
pub use change::{Change, ChangeKind};
pub use connect::{PoolSettings, Source};
pub use error::StoreError;
pub use feed::{Feed, FeedError, Retention};
pub use pending::Pending;
pub use rows::Stored;
pub use version::Version;
pub use write::{Lock, TRANSITIONS_KEPT, Write};

/// The store of resources, transitions and changes. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
    newest: watch::Sender<Newest>,
    usable: Arc<AtomicBool>,
}

/// The filter, the order and the page of a list.
#[derive(Clone, Debug)]
pub struct Query {
    /// Only resources within reach.
    pub reach: Reach,
    /// Only this kind; `None` is every kind.
    pub kind: Option<String>,
    /// Only children of this resource.
    pub owner_id: Option<String>,
    /// Only resources with this reference: its type and the target's id.
    pub reference: Option<(String, String)>,
    /// Only resources that match.
    pub search: Search,
    /// The order of the list.
    pub order: Order,
    /// Number of resources to skip.
    pub offset: i64,
    /// Maximum number of resources.
    pub limit: i64,
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

/// A page of a list and the length of the whole list, both from one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: i64,
}

// === impl Store ===

impl Store {
    fn new(database: Database) -> Self {
        Self { database, newest: watch::Sender::default(), usable: Arc::default() }
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

    /// Returns a page of the resources that match the query.
    pub async fn list(&self, query: &Query) -> Result<Page<Resource>, StoreError> {
        let mut snapshot = self.snapshot(query).await?;
        let columns = rows::columns(snapshot.dialect());
        let (rows, total) = list(&mut snapshot, query, columns).await?;
        snapshot.commit().await?;
        let items = rows.iter().map(|row| Ok(rows::read(row)?.resource)).collect::<Result<_, StoreError>>()?;
        Ok(Page { items, total })
    }

    /// Returns the same page as JSON texts.
    pub async fn list_objects(&self, query: &Query) -> Result<Page<String>, StoreError> {
        let mut snapshot = self.snapshot(query).await?;
        if query.search.is_blank() {
            let (rows, total) = list(&mut snapshot, query, "r.object").await?;
            snapshot.commit().await?;
            return Ok(Page { items: rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?, total });
        }
        // The results of a search have to be sorted: ids are cheaper to sort than resources.
        let (rows, total) = list(&mut snapshot, query, "r.id").await?;
        let ids = rows.iter().map(|row| row.text(0)).collect::<Result<Vec<_>, _>>()?;
        let mut objects = objects(&mut snapshot, &ids).await?;
        snapshot.commit().await?;
        Ok(Page { items: ids.iter().filter_map(|id| objects.remove(id)).collect(), total })
    }

    async fn snapshot(&self, query: &Query) -> Result<Transaction, StoreError> {
        if query.search.is_blank() { self.database.snapshot().await } else { self.database.snapshot_of_search().await }
    }

    /// Returns the ids and JSON texts of the next resources that match the query, in the order of ids after `after`, as many
    /// as fit into the batch but at least one; and the version of the change stream at which they were read.
    pub async fn scan(
        &self,
        query: &Query,
        after: &str,
        batch: Batch,
    ) -> Result<(Vec<(String, String)>, Version), StoreError> {
        let mut snapshot = self.snapshot(query).await?;
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT r.id, CAST(OCTET_LENGTH(r.object) AS BIGINT) FROM resources r WHERE {} AND r.id > {} ORDER BY r.id LIMIT {}",
            query.condition(snapshot.dialect(), &mut parameters),
            parameters.add(Value::Text(after.to_owned())),
            parameters.add(Value::Number(batch.items)),
        );
        let found = snapshot.fetch(sql, parameters).await?;
        let sizes = found.iter().map(|row| row.number(1)).collect::<Result<Vec<_>, _>>()?;
        let fitting = found.iter().take(batch.fitting(sizes.into_iter())).map(|row| row.text(0));
        let ids = fitting.collect::<Result<Vec<_>, _>>()?;
        let mut objects = objects(&mut snapshot, &ids).await?;
        let version = version::newest(&mut snapshot).await?;
        snapshot.commit().await?;
        let in_order = ids.into_iter().filter_map(|id| objects.remove(&id).map(|object| (id, object)));
        Ok((in_order.collect(), version))
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

    /// Notifies the readers of the change stream of a new version.
    pub fn announce(&self, version: Version) {
        self.newest.send_if_modified(|newest| {
            let is_newer = version.epoch != newest.version.epoch || version.number > newest.version.number;
            if is_newer {
                newest.version = version;
            }
            is_newer
        });
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

/// Returns these columns of a page's rows, and the number of rows on all pages.
async fn list(
    snapshot: &mut Transaction,
    query: &Query,
    columns: &str,
) -> Result<(Vec<database::Row>, i64), StoreError> {
    let dialect = snapshot.dialect();
    let mut parameters = Parameters::default();
    let condition = query.condition(dialect, &mut parameters);
    let total = count(snapshot, format!("SELECT COUNT(*) FROM resources r WHERE {condition}"), parameters).await?;
    let mut parameters = Parameters::default();
    let condition = query.condition(dialect, &mut parameters);
    let sql = format!(
        "SELECT {columns} FROM resources r WHERE {condition} ORDER BY {} LIMIT {} OFFSET {}",
        query.order.sql(),
        parameters.add(Value::Number(query.limit)),
        parameters.add(Value::Number(query.offset)),
    );
    Ok((snapshot.fetch(sql, parameters).await?, total))
}

/// Returns the JSON texts of the resources with these ids, by id.
async fn objects(snapshot: &mut Transaction, ids: &[String]) -> Result<BTreeMap<String, String>, StoreError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut parameters = Parameters::default();
    let placeholders: Vec<_> = ids.iter().map(|id| parameters.add(Value::Text(id.clone()))).collect();
    let sql = format!("SELECT r.id, r.object FROM resources r WHERE r.id IN ({})", placeholders.join(", "));
    let rows = snapshot.fetch(sql, parameters).await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
}

async fn count(snapshot: &mut Transaction, sql: String, parameters: Parameters) -> Result<i64, StoreError> {
    snapshot.fetch(sql, parameters).await?.first().map_or(Ok(0), |row| row.number(0))
}

// === impl Query ===

impl Query {
    /// Returns the query for the first `limit` resources of a kind within reach, in the default order.
    pub fn of_kind(kind: &str, reach: &Reach, limit: i64) -> Self {
        Self {
            reach: reach.clone(),
            kind: Some(kind.to_owned()),
            owner_id: None,
            reference: None,
            search: Search::default(),
            order: Order::default(),
            offset: 0,
            limit,
        }
    }

    fn condition(&self, dialect: sql::Dialect, parameters: &mut Parameters) -> String {
        let mut conditions = vec![self.reach.sql("r.tenancy", parameters)];
        if let Some(kind) = &self.kind {
            conditions.push(format!("r.kind = {}", parameters.add(Value::Text(kind.clone()))));
        }
        if let Some(owner) = &self.owner_id {
            conditions.push(format!("r.owner_id = {}", parameters.add(Value::Text(owner.clone()))));
        }
        if let Some((ref_type, target)) = &self.reference {
            conditions.push(format!(
                "r.id IN (SELECT source_id FROM resource_references WHERE target_id = {} AND ref_type = {})",
                parameters.add(Value::Text(target.clone())),
                parameters.add(Value::Text(ref_type.clone())),
            ));
        }
        conditions.push(format!("({})", self.search.sql(dialect, parameters)));
        conditions.join(" AND ")
    }
}
