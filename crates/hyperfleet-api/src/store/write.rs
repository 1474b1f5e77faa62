//! Write transactions: lock, insert, update and remove resources with their search tables, transitions and changes.

use fleet_model::Transition;

use super::change::Change;
use super::database::Transaction;
use super::error::StoreError;
use super::rows::{self, Stored};
use super::sql::{Dialect, Parameters, Value};
use super::version::Version;
use super::{transition, version};
use crate::resource::Resource;
use crate::tenancy::Reach;

/// Maximum number of transitions stored for a resource.
pub const TRANSITIONS_KEPT: i64 = 50;

/// The purpose of a row lock. Compatible locks keep writers from deadlocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// To change the resource. Other transactions may attach to it meanwhile.
    Change,
    /// To attach a child or a reference. The resource cannot be removed meanwhile.
    Attach,
    /// To remove the resource. No other transaction may lock it meanwhile.
    Remove,
}

/// An open write transaction.
#[derive(Debug)]
pub struct Write {
    transaction: Transaction,
    changes: Vec<Change>,
}

// === impl Write ===

impl Write {
    pub(super) fn new(transaction: Transaction) -> Self {
        Self { transaction, changes: Vec::new() }
    }

    pub(super) fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Locks a resource within reach until the end of the transaction and returns it.
    pub async fn lock(&mut self, id: &str, lock: Lock, reach: &Reach) -> Result<Option<Stored>, StoreError> {
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
        let rows = self.transaction.fetch(sql, parameters).await?;
        rows.first().map_or(Ok((0, 0)), |row| Ok((row.number(0)?, row.number(1)?)))
    }

    /// Stores a new resource.
    pub async fn insert(&mut self, stored: &Stored) -> Result<(), StoreError> {
        let mut parameters = Parameters::default();
        let assignments = rows::assignments(stored, self.transaction.dialect(), &mut parameters)?;
        let (columns, values): (Vec<_>, Vec<_>) = assignments.into_iter().unzip();
        let sql = format!("INSERT INTO resources ({}) VALUES ({})", columns.join(", "), values.join(", "));
        self.transaction.execute(sql, parameters).await?;
        self.index(&stored.resource, None).await
    }

    /// Stores a changed resource; `before` is the stored one, as it was locked.
    pub async fn update(&mut self, before: &Resource, stored: &Stored) -> Result<(), StoreError> {
        let mut parameters = Parameters::default();
        let assignments = rows::assignments(stored, self.transaction.dialect(), &mut parameters)?;
        let sets: Vec<_> = assignments.into_iter().map(|(column, value)| format!("{column} = {value}")).collect();
        let id = parameters.add(Value::Text(stored.resource.id.clone()));
        let sql = format!("UPDATE resources SET {} WHERE id = {id}", sets.join(", "));
        self.transaction.execute(sql, parameters).await?;
        self.index(&stored.resource, Some(before)).await
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

    /// Removes a resource with its rows in all tables.
    pub async fn remove(&mut self, id: &str) -> Result<(), StoreError> {
        self.delete("resources", "id", id).await
    }

    /// Records a change for the readers of the change stream.
    pub fn record(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Stores transitions, and removes the oldest beyond [`TRANSITIONS_KEPT`].
    pub async fn add_transitions(&mut self, id: &str, transitions: &[Transition]) -> Result<(), StoreError> {
        if transitions.is_empty() {
            return Ok(());
        }
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT COALESCE(MAX(number), 0) FROM transitions WHERE resource_id = {}",
            parameters.add(Value::Text(id.to_owned()))
        );
        let rows = self.transaction.fetch(sql, parameters).await?;
        let last = rows.first().map_or(Ok(0), |row| row.number(0))?;
        let numbered: Vec<_> =
            transitions.iter().zip(last + 1..).map(|(one, number)| transition::values(one, id, number)).collect();
        let columns = "transitions (resource_id, number, adapter, type, from_status, to_status, reason, message, \
                       observed_generation, time)";
        self.insert_rows(columns, numbered).await?;
        let newest = last + i64::try_from(transitions.len()).unwrap_or(i64::MAX);
        let mut parameters = Parameters::default();
        let sql = format!(
            "DELETE FROM transitions WHERE resource_id = {} AND number <= {}",
            parameters.add(Value::Text(id.to_owned())),
            parameters.add(Value::Number(newest - TRANSITIONS_KEPT)),
        );
        self.transaction.execute(sql, parameters).await.map(drop)
    }

    /// Assigns versions to the recorded changes and commits; returns the newest version, if any.
    pub async fn commit(mut self) -> Result<Option<Version>, StoreError> {
        let changes = std::mem::take(&mut self.changes);
        let version = if changes.is_empty() { None } else { Some(self.number(changes).await?) };
        self.transaction.commit().await?;
        Ok(version)
    }

    /// Undoes the write and releases its locks. Dropping it does so as well, but later.
    pub async fn roll_back(self) -> Result<(), StoreError> {
        self.transaction.roll_back().await
    }

    async fn number(&mut self, changes: Vec<Change>) -> Result<Version, StoreError> {
        let mut parameters = Parameters::default();
        let count = i64::try_from(changes.len()).unwrap_or(i64::MAX);
        let sql = format!(
            "UPDATE change_counter SET version = version + {} WHERE id = 1 RETURNING {}",
            parameters.add(Value::Number(count)),
            version::COLUMNS,
        );
        let rows = self.transaction.fetch(sql, parameters).await?;
        let damaged = StoreError::Damaged { location: "change_counter" };
        let newest = rows.first().map(Version::read).transpose()?.ok_or(damaged)?;
        let numbered =
            changes.into_iter().zip(newest.number - count + 1..).map(|(change, version)| change.values(version));
        self.insert_rows("changes (version, kind, resource_id, tenancy, type, time, object)", numbered.collect())
            .await?;
        Ok(newest)
    }

    async fn select(
        &mut self,
        condition: &str,
        parameters: Parameters,
        lock: Option<Lock>,
    ) -> Result<Vec<Stored>, StoreError> {
        let dialect = self.transaction.dialect();
        let lock = match (dialect, lock) {
            (Dialect::Sqlite, _) | (_, None) => "",
            (Dialect::Postgres, Some(Lock::Change)) => " FOR NO KEY UPDATE",
            (Dialect::Postgres, Some(Lock::Attach)) => " FOR KEY SHARE",
            (Dialect::Postgres, Some(Lock::Remove)) => " FOR UPDATE",
        };
        let columns = rows::columns(dialect);
        let sql = format!("SELECT {columns} FROM resources r WHERE {condition} ORDER BY r.id{lock}");
        let rows = self.transaction.fetch(sql, parameters).await?;
        rows.iter().map(rows::read).collect()
    }

    /// Updates the search tables of a resource.
    async fn index(&mut self, resource: &Resource, before: Option<&Resource>) -> Result<(), StoreError> {
        let id = &resource.id;
        let text = |text: &str| Value::Text(text.to_owned());
        let state = &resource.state;
        if before.map(|before| &before.state.labels) != Some(&state.labels) {
            if before.is_some() {
                self.delete("resource_labels", "resource_id", id).await?;
            }
            let labels = state.labels.iter().map(|(key, value)| vec![text(id), text(key), text(value)]).collect();
            self.insert_rows("resource_labels (resource_id, key, value)", labels).await?;
        }
        if before.map(|before| &before.state.conditions) != Some(&state.conditions) {
            if before.is_some() {
                self.delete("resource_conditions", "resource_id", id).await?;
            }
            let conditions = state.conditions.iter().map(|condition| {
                vec![
                    text(id),
                    text(&condition.kind),
                    text(condition.status.as_str()),
                    Value::Number(condition.observed_generation.into()),
                    Value::Number(condition.last_updated_time.as_microsecond()),
                    Value::Number(condition.last_transition_time.as_microsecond()),
                ]
            });
            let columns = "resource_conditions (resource_id, type, status, observed_generation, last_updated_time, \
                           last_transition_time)";
            self.insert_rows(columns, conditions.collect()).await?;
        }
        if before.map(|before| &before.state.references) != Some(&state.references) {
            if before.is_some() {
                self.delete("resource_references", "source_id", id).await?;
            }
            let references = state.references.iter().flat_map(|(ref_type, targets)| {
                targets.iter().map(move |target| vec![text(id), text(ref_type), text(&target.id)])
            });
            self.insert_rows("resource_references (source_id, ref_type, target_id)", references.collect()).await?;
        }
        Ok(())
    }

    pub(super) async fn delete(&mut self, table: &str, column: &str, id: &str) -> Result<(), StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!("DELETE FROM {table} WHERE {column} = {}", parameters.add(Value::Text(id.to_owned())));
        self.transaction.execute(sql, parameters).await.map(drop)
    }

    /// Inserts rows in batches, because the number of parameters of a statement is limited.
    pub(super) async fn insert_rows(&mut self, columns: &str, rows: Vec<Vec<Value>>) -> Result<(), StoreError> {
        const ROWS_PER_STATEMENT: usize = 500;
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut parameters = Parameters::default();
            let tuples: Vec<_> = (&mut rows)
                .take(ROWS_PER_STATEMENT)
                .map(|row| {
                    let placeholders: Vec<_> = row.into_iter().map(|value| parameters.add(value)).collect();
                    format!("({})", placeholders.join(", "))
                })
                .collect();
            let sql = format!("INSERT INTO {columns} VALUES {}", tuples.join(", "));
            self.transaction.execute(sql, parameters).await?;
        }
        Ok(())
    }
}
