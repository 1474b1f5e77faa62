//! The effects of a write, which are stored together: one message to the database, whatever their number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use database::{Dialect, Parameters, Row, Statements, Transaction, Value, chunks, insert_or, insert_rows};
use fleet_model::{Condition, Transition};

use super::StoreError;
use super::change::{Change, ChangeKind};
use super::rows::{self, Stored};
use super::transition;
use super::version;
use crate::resource::{Resource, State, Target};
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
    before: Indexed,
    after: Arc<Stored>,
    /// The JSON of the resource.
    object: String,
    /// True if more than the state has changed.
    is_complete: bool,
}

/// The parts of a stored state that the tables for searches have.
#[derive(Debug)]
struct Indexed {
    labels: BTreeMap<String, String>,
    references: BTreeMap<String, Vec<Target>>,
    conditions: Vec<Condition>,
}

// === impl Effects ===

impl Effects {
    /// Adds a new resource with its JSON.
    pub(super) fn insert(&mut self, stored: Stored, object: String) {
        self.inserted.push((stored, object));
    }

    /// Adds a changed resource with its JSON. `before` is the resource as the write has read it.
    pub(super) fn update(&mut self, before: &Stored, after: Arc<Stored>, object: String) {
        let is_complete = before.sealed != after.sealed || differs_beyond_state(&before.resource, &after.resource);
        if let Some(earlier) = self.updated.get_mut(&after.resource.id) {
            earlier.is_complete |= is_complete;
            earlier.after = after;
            earlier.object = object;
            return;
        }
        let State { labels, references, conditions, .. } = &before.resource.state;
        let before = Indexed { labels: labels.clone(), references: references.clone(), conditions: conditions.clone() };
        let id = after.resource.id.clone();
        self.updated.insert(id, Updated { before, after, object, is_complete });
    }

    /// Adds transitions of a resource.
    pub(super) fn add_transitions(&mut self, id: &str, transitions: Vec<Transition>) {
        self.transitions.extend(transitions.into_iter().map(|transition| (id.to_owned(), transition)));
    }

    /// Stores the effects. Afterwards there are none.
    pub(super) async fn flush(&mut self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let mut statements = Statements::new(transaction.dialect());
        let transitions = self.add_to(&mut statements, transaction).await?;
        if transaction.dialect() == Dialect::Postgres && !statements.is_empty() {
            let done = statements.effects_done();
            let sql = ending(&format!("(SELECT 0 AS version, '' AS epoch WHERE {done}) c"), transitions.as_deref());
            statements.add(sql);
        }
        let rows = statements.run(transaction).await?;
        prune(transaction, &rows).await
    }

    /// Adds the statements that store the effects, after which there are none. Returns the name of the rows of transitions.
    pub(super) async fn add_to(
        &mut self,
        statements: &mut Statements,
        transaction: &mut Transaction,
    ) -> Result<Option<String>, StoreError> {
        let Self { inserted, updated, transitions } = std::mem::take(self);
        let updated: Vec<_> = updated.into_values().collect();
        let mut index = Index::default();
        let is_new = |id: &String| inserted.iter().any(|(stored, _)| stored.resource.id == *id);
        let are_first = transitions.iter().all(|(id, _)| is_new(id));
        let mut rows = Vec::with_capacity(inserted.len());
        for (stored, object) in inserted {
            index.add(&stored.resource, None);
            rows.push(rows::values(&stored, object)?);
        }
        let (mut complete, mut states) = (Vec::new(), Vec::new());
        for Updated { before, after, object, is_complete } in updated {
            index.add(&after.resource, Some(&before));
            if is_complete {
                complete.push(rows::values(&after, object)?);
            } else {
                let state = rows::document(&after.resource.state, "resources.state")?;
                states.push([after.resource.id.clone(), state, object].map(Value::Text).to_vec());
            }
        }
        index.clear(transaction).await?;
        // The first one: a resource that exists is refused as such, not by the key of one of its other rows.
        insert(statements, rows);
        update(statements, &Columns { table: "resources", key: 1, all: &rows::WRITTEN }, complete);
        update(statements, &Columns { table: "resources", key: 1, all: &["id", "state", "object"] }, states);
        index.store(statements);
        Ok(store_transitions(statements, transitions, are_first))
    }
}

/// Returns the statement on PostgreSQL for the row of versions `c`, once for each resource that has too many transitions, with
/// its id, and at least once. The transitions are the rows with that name.
pub(super) fn ending(from: &str, transitions: Option<&str>) -> String {
    let columns = version::COLUMNS;
    match transitions {
        Some(name) => {
            format!("SELECT {columns}, t.resource_id FROM {from} LEFT JOIN {name} t ON t.number > {TRANSITIONS_KEPT}")
        }
        None => format!("SELECT {columns}, NULL::text FROM {from}"),
    }
}

/// Returns true if anything but the state of two resources differs.
fn differs_beyond_state(one: &Resource, other: &Resource) -> bool {
    let Resource {
        id,
        kind,
        name,
        href,
        owner,
        spec,
        generation,
        created_time,
        created_by,
        updated_time,
        updated_by,
        deleted_time,
        deleted_by,
        state: _,
    } = one;
    let names = (id, kind, name, href, owner) == (&other.id, &other.kind, &other.name, &other.href, &other.owner);
    let desired = (spec, generation) == (&other.spec, &other.generation);
    let created = (created_time, created_by) == (&other.created_time, &other.created_by);
    let updated = (updated_time, updated_by) == (&other.updated_time, &other.updated_by);
    let deleted = (deleted_time, deleted_by) == (&other.deleted_time, &other.deleted_by);
    !(names && desired && created && updated && deleted)
}

fn insert(statements: &mut Statements, rows: Vec<Vec<Value>>) {
    let dialect = statements.dialect();
    for rows in chunks(rows, dialect) {
        let values: Vec<_> =
            rows::WRITTEN.iter().enumerate().map(|(index, column)| value(index, column, dialect)).collect();
        let table = statements.parameters().table(dialect, rows);
        let columns = rows::WRITTEN.join(", ");
        statements.add_effect(&format!("INSERT INTO resources ({columns}) SELECT {} FROM {table}", values.join(", ")));
    }
}

/// The columns of a table that an update takes.
struct Columns<'a> {
    table: &'static str,
    /// Number of the first columns that are the key of a row; the others are set.
    key: usize,
    all: &'a [&'static str],
}

/// Sets columns of stored rows.
fn update(statements: &mut Statements, columns: &Columns<'_>, rows: Vec<Vec<Value>>) {
    let dialect = statements.dialect();
    let Columns { table, key, all } = *columns;
    for rows in chunks(rows, dialect) {
        let is_key = |(index, column): (usize, &&'static str)| format!("{table}.{column} = v.column{}", index + 1);
        let set = |(index, column): (usize, &&'static str)| format!("{column} = {}", value(index, column, dialect));
        let keys: Vec<_> = all.iter().enumerate().take(key).map(is_key).collect();
        let sets: Vec<_> = all.iter().enumerate().skip(key).map(set).collect();
        let (sets, keys) = (sets.join(", "), keys.join(" AND "));
        let from = statements.parameters().table(dialect, rows);
        statements.add_effect(&format!("UPDATE {table} SET {sets} FROM {from} WHERE {keys}"));
    }
}

/// Returns the SQL of the value of a column of `resources` in the table of [`Parameters::table`].
fn value(index: usize, column: &str, dialect: Dialect) -> String {
    let cast = if column == "spec" && dialect == Dialect::Postgres { "::jsonb" } else { "" };
    format!("v.column{}{cast}", index + 1)
}

/// Adds transitions; returns the name that their rows have on PostgreSQL. On SQLite the third column of the rows is the id of a
/// resource that has too many. `are_first` is true if their resources have none yet.
fn store_transitions(
    statements: &mut Statements,
    transitions: Vec<(String, Transition)>,
    are_first: bool,
) -> Option<String> {
    let dialect = statements.dialect();
    let last = "COALESCE((SELECT MAX(t.number) FROM transitions t WHERE t.resource_id = v.column1), 0)";
    let last = if are_first && dialect == Dialect::Postgres { "0" } else { last };
    let returned = match dialect {
        Dialect::Sqlite => format!("0, '', CASE WHEN number > {TRANSITIONS_KEPT} THEN resource_id END"),
        Dialect::Postgres => "resource_id, number".to_owned(),
    };
    let mut name = None;
    for transitions in chunks(transitions, dialect) {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        let rows = transitions.into_iter().map(|(id, transition)| {
            let count = counts.entry(id.clone()).or_default();
            *count += 1;
            transition::values(&transition, &id, *count)
        });
        let table = statements.parameters().table(dialect, rows.collect());
        // The rows of a resource are locked with it: no other write gives the same numbers.
        name = Some(statements.add_awaited(format!(
            "INSERT INTO transitions (resource_id, number, adapter, type, from_status, to_status, reason, message, \
             observed_generation, time) SELECT v.column1, v.column2 + {last}, v.column3, v.column4, v.column5, v.column6, \
             v.column7, v.column8, v.column9, v.column10 FROM {table} RETURNING {returned}"
        )));
    }
    name
}

/// Deletes the oldest transitions of the resources that have too many, whose ids are the third column.
pub(super) async fn prune(transaction: &mut Transaction, rows: &[Row]) -> Result<(), StoreError> {
    let mut full = BTreeSet::new();
    for row in rows {
        full.extend(row.optional_text(2)?);
    }
    for ids in chunks(full.into_iter().collect(), transaction.dialect()) {
        let mut parameters = Parameters::default();
        let sql = format!(
            "DELETE FROM transitions WHERE {} AND number <= (SELECT MAX(t.number) FROM transitions t \
             WHERE t.resource_id = transitions.resource_id) - {TRANSITIONS_KEPT}",
            parameters.one_of(transaction.dialect(), "resource_id", &ids)
        );
        transaction.execute(sql, parameters).await?;
    }
    Ok(())
}

/// Counts the resources that were created and removed.
pub(super) fn count(statements: &mut Statements, changes: &[Change]) {
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
    insert_or(statements, "resource_counts (kind, tenancy, count)", rows.collect(), conflict);
}

/// The rows of resources in the tables for searches.
#[derive(Debug, Default)]
struct Index {
    /// Tables and ids of resources whose rows are replaced.
    cleared: Vec<(&'static str, &'static str, String)>,
    labels: Vec<Vec<Value>>,
    /// Conditions of a type that the resource has not had.
    first_conditions: Vec<Vec<Value>>,
    changed_conditions: Vec<Vec<Value>>,
    /// Ids of resources and types of conditions that they no longer have.
    vanished: Vec<(String, String)>,
    references: Vec<Vec<Value>>,
}

// === impl Index ===

impl Index {
    /// Adds the rows of a resource that differ from those of its stored state.
    fn add(&mut self, resource: &Resource, old: Option<&Indexed>) {
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
        for condition in &state.conditions {
            let mut values = condition_values(condition, resource);
            match old.iter().find(|old| old.kind == condition.kind).map(|old| condition_values(old, resource)) {
                None => self.first_conditions.push(values),
                Some(stored) if stored != values => {
                    values.truncate(CHANGING.len());
                    self.changed_conditions.push(values);
                }
                Some(_unchanged) => {}
            }
        }
        let vanished = old.iter().filter(|old| resource.condition(&old.kind).is_none());
        self.vanished.extend(vanished.map(|condition| (id.clone(), condition.kind.clone())));
    }

    /// Deletes the rows that are replaced, and those of conditions that are gone.
    async fn clear(&mut self, transaction: &mut Transaction) -> Result<(), StoreError> {
        for (table, column, id) in self.cleared.drain(..) {
            delete(transaction, table, &[(column, &id)]).await?;
        }
        for (id, kind) in self.vanished.drain(..) {
            delete(transaction, "resource_conditions", &[("resource_id", &id), ("type", &kind)]).await?;
        }
        Ok(())
    }

    fn store(self, statements: &mut Statements) {
        let labels = "resource_labels (resource_id, key, value, kind, tenancy, created_time)";
        insert_rows(statements, labels, self.labels);
        insert_rows(statements, "resource_references (source_id, ref_type, target_id)", self.references);
        let conditions = format!("resource_conditions ({}, kind, created_time)", CHANGING.join(", "));
        insert_rows(statements, &conditions, self.first_conditions);
        // They exist: an upsert would lock each row before it changes it.
        let columns = Columns { table: "resource_conditions", key: 2, all: &CHANGING };
        update(statements, &columns, self.changed_conditions);
    }
}

/// The columns of a condition's row that may change, after its key.
const CHANGING: [&str; 7] =
    ["resource_id", "type", "status", "observed_generation", "last_updated_time", "last_transition_time", "reason"];

/// Returns the values of a condition's row: those of [`CHANGING`], its kind and its time of creation.
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
