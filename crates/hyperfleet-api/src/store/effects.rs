//! The effects of a write, which are stored together: one statement for each table, whatever their number.

use std::collections::{BTreeMap, BTreeSet};

use fleet_model::{Condition, Transition};

use super::change::{Change, ChangeKind};
use super::database::Transaction;
use super::error::StoreError;
use super::rows::{self, Stored};
use super::sql::{Dialect, Parameters, Value};
use super::transition;
use crate::resource::{Resource, State};
use crate::tenancy;

/// Maximum number of transitions stored for a resource.
pub const TRANSITIONS_KEPT: i64 = 50;

/// Resources and transitions that a write has still to store.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// New resources, with their JSON.
    inserted: Vec<(Stored, String)>,
    /// Changed resources by id.
    updated: BTreeMap<String, Updated>,
    /// Transitions with the id of their resource, in the order of their occurrence.
    transitions: Vec<(String, Transition)>,
}

/// A changed resource.
#[derive(Debug)]
struct Updated {
    /// The stored state.
    before: State,
    after: Stored,
    /// The JSON of the resource.
    object: String,
    /// True if more than the state has changed.
    is_complete: bool,
}

// === impl Effects ===

impl Effects {
    /// Adds a new resource with its JSON.
    pub(super) fn insert(&mut self, stored: Stored, object: String) {
        self.inserted.push((stored, object));
    }

    /// Adds a changed resource with its JSON. `before` is the resource as the write has read it.
    pub(super) fn update(&mut self, before: &Stored, after: Stored, object: String) {
        let mut rest = before.resource.clone();
        let state = std::mem::replace(&mut rest.state, after.resource.state.clone());
        let is_complete = rest != after.resource || before.sealed != after.sealed;
        let id = after.resource.id.clone();
        match self.updated.get_mut(&id) {
            Some(earlier) => {
                earlier.is_complete |= is_complete;
                earlier.after = after;
                earlier.object = object;
            }
            None => {
                self.updated.insert(id, Updated { before: state, after, object, is_complete });
            }
        }
    }

    /// Adds transitions of a resource.
    pub(super) fn add_transitions(&mut self, id: &str, transitions: Vec<Transition>) {
        self.transitions.extend(transitions.into_iter().map(|transition| (id.to_owned(), transition)));
    }

    /// Stores the effects. Afterwards there are none.
    pub(super) async fn flush(&mut self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let Self { inserted, updated, transitions } = std::mem::take(self);
        let updated: Vec<_> = updated.into_values().collect();
        let mut index = Index::default();
        let mut rows = Vec::with_capacity(inserted.len());
        for (stored, object) in inserted {
            index.add(&stored.resource, None);
            rows.push(rows::values(&stored, object)?);
        }
        insert(transaction, rows).await?;
        let (mut complete, mut states) = (Vec::new(), Vec::new());
        for Updated { before, after, object, is_complete } in updated {
            index.add(&after.resource, Some(&before));
            if is_complete {
                complete.push(rows::values(&after, object)?);
            } else {
                let state = rows::document(&after.resource.state, "resources.state")?;
                states.push([after.resource.id, state, object].map(Value::Text).to_vec());
            }
        }
        update(transaction, &rows::WRITTEN, complete).await?;
        update(transaction, &["id", "state", "object"], states).await?;
        index.flush(transaction).await?;
        store_transitions(transaction, transitions).await
    }
}

async fn insert(transaction: &mut Transaction, rows: Vec<Vec<Value>>) -> Result<(), StoreError> {
    for rows in chunks(rows) {
        let mut parameters = Parameters::default();
        let dialect = transaction.dialect();
        let values: Vec<_> = rows::WRITTEN.iter().enumerate().map(|column| value(column, dialect)).collect();
        let sql = format!(
            "INSERT INTO resources ({}) SELECT {} FROM {}",
            rows::WRITTEN.join(", "),
            values.join(", "),
            parameters.table(dialect, rows)
        );
        transaction.execute(sql, parameters).await?;
    }
    Ok(())
}

/// Sets these columns of resources; the first is the id.
async fn update(
    transaction: &mut Transaction,
    columns: &[&'static str],
    rows: Vec<Vec<Value>>,
) -> Result<(), StoreError> {
    for rows in chunks(rows) {
        let mut parameters = Parameters::default();
        let dialect = transaction.dialect();
        let set = |(index, column): (usize, &&'static str)| format!("{column} = {}", value((index, column), dialect));
        let sets: Vec<_> = columns.iter().enumerate().skip(1).map(set).collect();
        let sql = format!(
            "UPDATE resources SET {} FROM {} WHERE resources.id = v.column1",
            sets.join(", "),
            parameters.table(dialect, rows)
        );
        transaction.execute(sql, parameters).await?;
    }
    Ok(())
}

/// Returns the SQL of the value of a column of `resources` in the table of [`Parameters::table`].
fn value((index, column): (usize, &&'static str), dialect: Dialect) -> String {
    let cast = if *column == "spec" && dialect == Dialect::Postgres { "::jsonb" } else { "" };
    format!("v.column{}{cast}", index + 1)
}

/// Inserts rows into a table, which is given with its columns.
pub(super) async fn insert_rows(
    transaction: &mut Transaction,
    columns: &str,
    rows: Vec<Vec<Value>>,
) -> Result<(), StoreError> {
    insert_or(transaction, columns, rows, "").await
}

async fn insert_or(
    transaction: &mut Transaction,
    columns: &str,
    rows: Vec<Vec<Value>>,
    conflict: &str,
) -> Result<(), StoreError> {
    for rows in chunks(rows) {
        let mut parameters = Parameters::default();
        let table = parameters.table(transaction.dialect(), rows);
        transaction.execute(format!("INSERT INTO {columns} SELECT * FROM {table}{conflict}"), parameters).await?;
    }
    Ok(())
}

/// Splits rows for statements, because SQLite limits the number of parameters.
fn chunks<Row>(rows: Vec<Row>) -> Vec<Vec<Row>> {
    const ROWS_PER_STATEMENT: usize = 500;
    let mut rows = rows.into_iter().peekable();
    let mut chunks = Vec::new();
    while rows.peek().is_some() {
        chunks.push(rows.by_ref().take(ROWS_PER_STATEMENT).collect());
    }
    chunks
}

async fn store_transitions(
    transaction: &mut Transaction,
    transitions: Vec<(String, Transition)>,
) -> Result<(), StoreError> {
    if transitions.is_empty() {
        return Ok(());
    }
    let mut full = BTreeSet::new();
    for transitions in chunks(transitions) {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        let rows = transitions.into_iter().map(|(id, transition)| {
            let count = counts.entry(id.clone()).or_default();
            *count += 1;
            transition::values(&transition, &id, *count)
        });
        let mut parameters = Parameters::default();
        // The rows of a resource are locked with it: no other write gives the same numbers.
        let sql = format!(
            "INSERT INTO transitions (resource_id, number, adapter, type, from_status, to_status, reason, message, \
             observed_generation, time) SELECT v.column1, v.column2 + COALESCE((SELECT MAX(t.number) FROM transitions t \
             WHERE t.resource_id = v.column1), 0), v.column3, v.column4, v.column5, v.column6, v.column7, v.column8, \
             v.column9, v.column10 FROM {} RETURNING resource_id, number",
            parameters.table(transaction.dialect(), rows.collect())
        );
        for row in transaction.fetch(sql, parameters).await? {
            if row.number(1)? > TRANSITIONS_KEPT {
                full.insert(row.text(0)?);
            }
        }
    }
    for ids in chunks(full.into_iter().collect()) {
        prune(transaction, &ids).await?;
    }
    Ok(())
}

/// Deletes the oldest transitions of these resources.
async fn prune(transaction: &mut Transaction, ids: &[String]) -> Result<(), StoreError> {
    let mut parameters = Parameters::default();
    let sql = format!(
        "DELETE FROM transitions WHERE {} AND number <= (SELECT MAX(t.number) FROM transitions t \
         WHERE t.resource_id = transitions.resource_id) - {TRANSITIONS_KEPT}",
        parameters.one_of(transaction.dialect(), "resource_id", ids)
    );
    transaction.execute(sql, parameters).await.map(drop)
}

/// Counts the resources that were created and removed.
pub(super) async fn count(transaction: &mut Transaction, changes: &[Change]) -> Result<(), StoreError> {
    let mut counts: BTreeMap<(&str, String), i64> = BTreeMap::new();
    for change in changes {
        let difference = match change.kind {
            ChangeKind::Added => 1,
            ChangeKind::Modified => continue,
            ChangeKind::Deleted => -1,
        };
        *counts.entry((&change.resource_kind, tenancy::text(&change.tenancy))).or_default() += difference;
    }
    let rows = counts.into_iter().filter(|(_, difference)| *difference != 0).map(|((kind, tenancy), difference)| {
        vec![Value::Text(kind.to_owned()), Value::Text(tenancy), Value::Number(difference)]
    });
    let conflict =
        " WHERE true ON CONFLICT (kind, tenancy) DO UPDATE SET count = resource_counts.count + excluded.count";
    insert_or(transaction, "resource_counts (kind, tenancy, count)", rows.collect(), conflict).await
}

/// The rows of resources in the tables for searches.
#[derive(Debug, Default)]
struct Index {
    /// Tables and ids of resources whose rows are replaced.
    cleared: Vec<(&'static str, &'static str, String)>,
    labels: Vec<Vec<Value>>,
    conditions: Vec<Vec<Value>>,
    /// Ids of resources and types of conditions that they no longer have.
    vanished: Vec<(String, String)>,
    references: Vec<Vec<Value>>,
}

// === impl Index ===

impl Index {
    /// Adds the rows of a resource that differ from those of its stored state.
    fn add(&mut self, resource: &Resource, old: Option<&State>) {
        let (id, state) = (&resource.id, &resource.state);
        let text = |text: &str| Value::Text(text.to_owned());
        if old.map(|old| &old.labels) != Some(&state.labels) {
            if old.is_some() {
                self.cleared.push(("resource_labels", "resource_id", id.clone()));
            }
            let tenancy = tenancy::text(&state.tenancy);
            self.labels.extend(state.labels.iter().map(|(key, value)| {
                let mut values = [id, key, value, &resource.kind, &tenancy].map(|part| text(part)).to_vec();
                values.push(Value::Number(resource.created_time.as_microsecond()));
                values
            }));
        }
        if old.map(|old| &old.references) != Some(&state.references) {
            if old.is_some() {
                self.cleared.push(("resource_references", "source_id", id.clone()));
            }
            self.references.extend(state.references.iter().flat_map(|(ref_type, targets)| {
                targets.iter().map(move |target| vec![text(id), text(ref_type), text(&target.id)])
            }));
        }
        let old = old.map_or(&[][..], |old| &old.conditions);
        self.conditions.extend(state.conditions.iter().filter_map(|condition| {
            let values = condition_values(condition, resource);
            let stored = old.iter().find(|old| old.kind == condition.kind).map(|old| condition_values(old, resource));
            (stored.as_ref() != Some(&values)).then_some(values)
        }));
        let vanished = old.iter().filter(|old| resource.condition(&old.kind).is_none());
        self.vanished.extend(vanished.map(|condition| (id.clone(), condition.kind.clone())));
    }

    async fn flush(self, transaction: &mut Transaction) -> Result<(), StoreError> {
        for (table, column, id) in self.cleared {
            delete(transaction, table, &[(column, &id)]).await?;
        }
        for (id, kind) in self.vanished {
            delete(transaction, "resource_conditions", &[("resource_id", &id), ("type", &kind)]).await?;
        }
        let labels = "resource_labels (resource_id, key, value, kind, tenancy, created_time)";
        insert_rows(transaction, labels, self.labels).await?;
        insert_rows(transaction, "resource_references (source_id, ref_type, target_id)", self.references).await?;
        insert_or(
            transaction,
            "resource_conditions (resource_id, type, status, observed_generation, last_updated_time, \
             last_transition_time, reason, kind, created_time)",
            self.conditions,
            " WHERE true ON CONFLICT (resource_id, type) DO UPDATE SET status = excluded.status, \
             observed_generation = excluded.observed_generation, last_updated_time = excluded.last_updated_time, \
             last_transition_time = excluded.last_transition_time, reason = excluded.reason",
        )
        .await
    }
}

/// Returns the values of a condition's row.
fn condition_values(condition: &Condition, resource: &Resource) -> Vec<Value> {
    vec![
        Value::Text(resource.id.clone()),
        Value::Text(condition.kind.clone()),
        Value::Text(condition.status.as_str().to_owned()),
        Value::Number(condition.observed_generation.into()),
        Value::Number(condition.last_updated_time.as_microsecond()),
        Value::Number(condition.last_transition_time.as_microsecond()),
        rows::text(condition.reason.clone()),
        Value::Text(resource.kind.clone()),
        Value::Number(resource.created_time.as_microsecond()),
    ]
}

/// Deletes the rows with these values in these columns.
pub(super) async fn delete(
    transaction: &mut Transaction,
    table: &str,
    values: &[(&str, &str)],
) -> Result<(), StoreError> {
    let mut parameters = Parameters::default();
    let conditions: Vec<_> = values
        .iter()
        .map(|(column, value)| format!("{column} = {}", parameters.add(Value::Text((*value).to_owned()))))
        .collect();
    transaction.execute(format!("DELETE FROM {table} WHERE {}", conditions.join(" AND ")), parameters).await.map(drop)
}
