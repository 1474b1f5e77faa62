//! Write transactions: lock, insert, update and remove resources, with their transitions and changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use database::{Database, Dialect, Parameters, Statements, Transaction, Value, chunks};
use fleet_model::Transition;
use jiff::Timestamp;

use super::StoreError;
use super::change::{Change, ChangeKind};
use super::effects::{self, Effects, delete};
use super::rows::{self, Stored};
use super::version::{self, Version};
use crate::render;
use crate::resource::Resource;
use crate::tenancy::Reach;

/// The purpose of a row lock. Compatible locks keep writers from deadlocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// To change the resource. Other transactions may attach to it meanwhile.
    Change,
    /// The same, for resources that no other transaction has locked.
    ChangeIfFree,
    /// To attach a child or a reference. The resource cannot be removed meanwhile.
    Attach,
    /// To remove the resource. No other transaction may lock it meanwhile.
    Remove,
}

/// An open write transaction.
#[derive(Debug)]
pub struct Write {
    transaction: Transaction,
    /// Resources that were locked together, as they are after this write so far.
    locked: BTreeMap<String, Arc<Stored>>,
    effects: Effects,
    changes: Vec<Change>,
}

/// A write of which nothing is left but the commit. Dropping it undoes it.
#[derive(Debug)]
pub struct Prepared {
    transaction: Transaction,
    version: Option<Version>,
}

/// A committed write.
#[derive(Debug)]
pub struct Committed {
    /// The newest version, if any.
    pub version: Option<Version>,
    /// The next write, if it has begun.
    pub next: Option<Write>,
}

// === impl Write ===

impl Write {
    pub(super) fn new(transaction: Transaction) -> Self {
        Self { transaction, locked: BTreeMap::new(), effects: Effects::default(), changes: Vec::new() }
    }

    pub(super) fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Locks these resources for a change, of whatever tenancy, for calls of [`Write::lock`] that follow. It does not wait
    /// for other transactions: resources that they have locked are left out.
    pub async fn lock_free(&mut self, ids: &[String]) -> Result<(), StoreError> {
        let dialect = self.transaction.dialect();
        let mut parameters = Parameters::default();
        let condition = parameters.one_of(dialect, "r.id", ids);
        for stored in self.select(&condition, parameters, Some(Lock::ChangeIfFree)).await? {
            self.locked.insert(stored.resource.id.clone(), Arc::new(stored));
        }
        Ok(())
    }

    /// Returns true if [`Write::lock_free`] has locked that resource and it is within reach.
    pub fn has_locked(&self, id: &str, reach: &Reach) -> bool {
        self.locked.get(id).is_some_and(|stored| reach.covers(&stored.resource.state.tenancy))
    }

    /// Locks a resource within reach until the end of the transaction and returns it.
    pub async fn lock(&mut self, id: &str, lock: Lock, reach: &Reach) -> Result<Option<Stored>, StoreError> {
        if let (Some(stored), Lock::Change) = (self.locked.get(id), lock) {
            return Ok(reach.covers(&stored.resource.state.tenancy).then(|| Stored::clone(stored)));
        }
        let mut parameters = Parameters::default();
        let id = parameters.add(Value::Text(id.to_owned()));
        let sql = format!("r.id = {id} AND {}", reach.sql("r.tenancy", &mut parameters));
        Ok(self.select(&sql, parameters, Some(lock)).await?.pop())
    }

    /// Locks the children of a resource for removal and returns them, in the order of ids, so that two transactions never
    /// deadlock.
    pub async fn lock_children(&mut self, id: &str) -> Result<Vec<Stored>, StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!("r.owner_id = {}", parameters.add(Value::Text(id.to_owned())));
        self.select(&sql, parameters, Some(Lock::Remove)).await
    }

    /// Returns the resources that refer to this one. While it is locked for removal there are no others. They may change
    /// meanwhile unless they are locked too.
    pub async fn referrers(&mut self, id: &str, lock: Option<Lock>) -> Result<Vec<Stored>, StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "r.id IN (SELECT source_id FROM resource_references WHERE target_id = {})",
            parameters.add(Value::Text(id.to_owned()))
        );
        self.select(&sql, parameters, lock).await
    }

    /// Returns the number of children of a resource, and the number of those that are not terminating.
    pub async fn count_children(&mut self, id: &str) -> Result<(i64, i64), StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT COUNT(*), COUNT(*) - COUNT(deleted_time) FROM resources WHERE owner_id = {}",
            parameters.add(Value::Text(id.to_owned()))
        );
        self.flush().await?;
        let rows = self.transaction.fetch(sql, parameters).await?;
        rows.first().map_or(Ok((0, 0)), |row| Ok((row.number(0)?, row.number(1)?)))
    }

    /// Stores a new resource, with its transitions and the change for the readers of the change stream, when the write
    /// commits or reads.
    pub fn insert(&mut self, stored: Stored, transitions: Vec<Transition>, at: Timestamp) {
        let resource = &stored.resource;
        let change = Change::new(ChangeKind::Added, resource, at);
        self.effects.add_transitions(&resource.id, transitions);
        self.effects.insert(stored, change.object.clone());
        self.changes.push(change);
    }

    /// Stores a changed resource, likewise; `before` is the resource as it was locked.
    pub fn save(&mut self, before: &Stored, after: Stored, transitions: Vec<Transition>, at: Timestamp) {
        let change = Change::new(ChangeKind::Modified, &after.resource, at);
        self.effects.add_transitions(&after.resource.id, transitions);
        self.replace(before, after, change.object.clone());
        self.changes.push(change);
    }

    /// Stores a changed resource without a change for the readers of the change stream.
    pub fn update(&mut self, before: &Stored, after: Stored) {
        let object = render::text(&after.resource);
        self.replace(before, after, object);
    }

    fn replace(&mut self, before: &Stored, after: Stored, object: String) {
        let after = Arc::new(after);
        if let Some(locked) = self.locked.get_mut(&after.resource.id) {
            *locked = Arc::clone(&after);
        }
        self.effects.update(before, after, object);
    }

    /// Replaces the encrypted pull secret of a locked resource, and nothing else.
    pub async fn reseal(&mut self, id: &str, sealed: String) -> Result<(), StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "UPDATE resources SET sealed = {} WHERE id = {}",
            parameters.add(Value::Text(sealed)),
            parameters.add(Value::Text(id.to_owned())),
        );
        self.transaction.execute(sql, parameters).await.map(drop)
    }

    /// Removes a resource with its rows in all tables, and records the change for the readers of the change stream.
    pub async fn remove(&mut self, resource: &Resource, at: Timestamp) -> Result<(), StoreError> {
        self.locked.remove(&resource.id);
        self.delete("resources", "id", &resource.id).await?;
        self.changes.push(Change::new(ChangeKind::Deleted, resource, at));
        Ok(())
    }

    /// Assigns versions to the recorded changes and commits; returns the newest version, if any.
    pub async fn commit(self) -> Result<Option<Version>, StoreError> {
        self.prepare().await?.commit().await
    }

    /// Stores all that is left but the commit.
    pub async fn prepare(mut self) -> Result<Prepared, StoreError> {
        let changes = std::mem::take(&mut self.changes);
        let version = if changes.is_empty() {
            self.flush().await?;
            None
        } else {
            Some(self.number(changes).await?)
        };
        Ok(Prepared { transaction: self.transaction, version })
    }

    /// Undoes the write and releases its locks. Dropping it does so as well, but later.
    pub async fn roll_back(self) -> Result<(), StoreError> {
        self.transaction.roll_back().await
    }

    /// Stores the effects so far, then the changes with the next versions, and returns the newest one.
    async fn number(&mut self, changes: Vec<Change>) -> Result<Version, StoreError> {
        let dialect = self.transaction.dialect();
        let mut statements = Statements::new(dialect);
        let transitions = self.effects.add_to(&mut statements, &mut self.transaction).await?;
        let count = statements.parameters().add(Value::Number(i64::try_from(changes.len()).unwrap_or(i64::MAX)));
        let columns = version::COLUMNS;
        // The counter's row is locked until the commit, so that versions are committed in their order; and last of all that
        // other transactions may wait for, so that no two wait for each other.
        let counting = format!("UPDATE change_counter SET version = version + {count} WHERE id = 1");
        let counted = match dialect {
            Dialect::Sqlite => statements.add(counting),
            Dialect::Postgres => {
                let done = statements.effects_done();
                statements.add(format!("{counting} AND {done} RETURNING {columns}"))
            }
        };
        let counter = if dialect == Dialect::Postgres { &counted } else { "change_counter" };
        effects::count(&mut statements, &changes);
        let rows: Vec<_> = changes.into_iter().zip(1..).map(|(change, number)| change.values(number)).collect();
        for rows in chunks(rows, dialect) {
            let table = statements.parameters().table(dialect, rows);
            statements.add(format!(
                "INSERT INTO changes (version, kind, resource_id, tenancy, type, time, object) SELECT \
                 counter.version - {count} + v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, v.column7 \
                 FROM {counter} AS counter CROSS JOIN {table}"
            ));
        }
        statements.add(match dialect {
            Dialect::Sqlite => format!("SELECT {columns}, NULL FROM change_counter"),
            Dialect::Postgres => effects::ending(counter, transitions.as_deref()),
        });
        let rows = statements.run(&mut self.transaction).await?;
        effects::prune(&mut self.transaction, &rows).await?;
        let damaged = StoreError::Damaged { location: "change_counter" };
        rows.last().map(Version::read).transpose()?.ok_or(damaged)
    }

    async fn select(
        &mut self,
        condition: &str,
        parameters: Parameters,
        lock: Option<Lock>,
    ) -> Result<Vec<Stored>, StoreError> {
        self.flush().await?;
        let dialect = self.transaction.dialect();
        let lock = match (dialect, lock) {
            (Dialect::Sqlite, _) | (_, None) => "",
            (Dialect::Postgres, Some(Lock::Change)) => " FOR NO KEY UPDATE",
            (Dialect::Postgres, Some(Lock::ChangeIfFree)) => " FOR NO KEY UPDATE SKIP LOCKED",
            (Dialect::Postgres, Some(Lock::Attach)) => " FOR KEY SHARE",
            (Dialect::Postgres, Some(Lock::Remove)) => " FOR UPDATE",
        };
        let columns = rows::columns(dialect);
        let sql = format!("SELECT {columns} FROM resources r WHERE {condition} ORDER BY r.id{lock}");
        let rows = self.transaction.fetch(sql, parameters).await?;
        rows.iter().map(rows::read).collect()
    }

    /// Stores the effects so far, so that statements see them.
    async fn flush(&mut self) -> Result<(), StoreError> {
        self.effects.flush(&mut self.transaction).await
    }

    pub(super) async fn delete(&mut self, table: &str, column: &str, id: &str) -> Result<(), StoreError> {
        self.flush().await?;
        delete(&mut self.transaction, table, &[(column, id)]).await
    }
}

// === impl Prepared ===

impl Prepared {
    /// Commits; returns the newest version, if any.
    pub async fn commit(self) -> Result<Option<Version>, StoreError> {
        self.transaction.commit().await?;
        Ok(self.version)
    }

    /// Commits, and begins the next write of many with the same message where that saves one.
    pub async fn commit_and_begin(self, database: &Database) -> Result<Committed, StoreError> {
        let next = self.transaction.commit_and_begin(database).await?.map(Write::new);
        Ok(Committed { version: self.version, next })
    }
}
