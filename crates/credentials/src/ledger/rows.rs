//! Rows of the ledger as values of Rust.

use database::{DatabaseError, Parameters, Row, Value};
use jiff::Timestamp;
use registry_account::name::CredentialId;

use crate::credential::{ClusterRef, Credential, Record};
use crate::ledger::model::{Entry, Outcome, Slot};
use crate::reason::Reason;
use crate::state::{Action, Lane, State};

/// The columns that [`credential`] reads.
pub(super) const COLUMNS: &str = "id, registry, account, state, cluster_id, incarnation, replaces, \
                                  CAST(CASE WHEN password IS NULL THEN 0 ELSE 1 END AS BIGINT), record, version, reason";

/// A `due` that waits for a change.
pub(super) const NEVER: i64 = i64::MAX;
/// The lane of rows whose next step calls no registry.
pub(super) const FREE: i64 = -1;

/// A row with its version.
pub(super) struct Versioned {
    pub(super) credential: Credential,
    pub(super) version: i64,
}

/// Reads a row of [`COLUMNS`].
pub(super) fn credential(row: &Row) -> Result<Versioned, DatabaseError> {
    let cluster = match (row.optional_text(4)?, row.optional_number(5)?) {
        (Some(id), Some(incarnation)) => Some(ClusterRef { id, incarnation }),
        _ => None,
    };
    let replaces = row.optional_text(6)?.map(|text| id(&text)).transpose()?;
    let record = row.text(8)?;
    let record: Record = serde_json::from_str(&record).map_err(|_quotes| damaged("credentials.record"))?;
    let credential = Credential {
        id: id(&row.text(0)?)?,
        registry: row.text(1)?.parse().map_err(|_invalid| damaged("credentials.registry"))?,
        account: row.text(2)?.parse().map_err(|_invalid| damaged("credentials.account"))?,
        state: State::parse(&row.text(3)?).ok_or(damaged("credentials.state"))?,
        reason: Reason::parse(&row.text(10)?).ok_or(damaged("credentials.reason"))?,
        cluster,
        replaces,
        has_password: row.number(7)? == 1,
        record,
    };
    Ok(Versioned { credential, version: row.number(9)? })
}

/// Reads an event.
pub(super) fn entry(row: &Row) -> Result<Entry, DatabaseError> {
    Ok(Entry {
        credential: id(&row.text(0)?)?,
        cluster: row.optional_text(1)?,
        actor: row.text(2)?,
        action: row.text(3)?,
        outcome: Outcome::parse(&row.text(4)?).ok_or(damaged("credential_events.outcome"))?,
        reason: row.text(5)?,
        remark: row.optional_text(6)?,
        time: time(row.number(7)?)?,
    })
}

pub(super) fn id(text: &str) -> Result<CredentialId, DatabaseError> {
    text.parse().map_err(|_invalid| damaged("credentials.id"))
}

pub(super) fn time(micros: i64) -> Result<Timestamp, DatabaseError> {
    Timestamp::from_microsecond(micros).map_err(|_range| damaged("a time"))
}

pub(super) fn damaged(location: &'static str) -> DatabaseError {
    DatabaseError::Damaged { location }
}

#[expect(clippy::needless_pass_by_value, reason = "values and references alike")]
pub(super) fn text(text: impl ToString) -> Value {
    Value::Text(text.to_string())
}

pub(super) fn optional(value: Option<impl ToString>) -> Value {
    value.map_or(Value::NoText, text)
}

pub(super) fn due(time: Option<Timestamp>) -> Value {
    Value::Number(time.map_or(NEVER, Timestamp::as_microsecond))
}

/// The number of a lane; rows without a call of a registry come first.
pub(super) fn lane(lane: Option<Lane>) -> Value {
    Value::Number(lane.map_or(FREE, |lane| i64::from(lane.rank())))
}

/// Writes a record; it has no value that JSON cannot hold.
pub(super) fn record(record: &Record) -> Result<Value, DatabaseError> {
    serde_json::to_string(record).map(Value::Text).map_err(|_unwritable| damaged("credentials.record"))
}

/// The text of a slot.
pub(super) fn slot(slot: &Slot) -> String {
    let Slot { registry, cluster, replaces } = slot;
    let replaces = replaces.map_or_else(|| "first".to_owned(), |id| id.to_string());
    format!("{registry}/{}/{}/{replaces}", cluster.id, cluster.incarnation)
}

/// Builds an INSERT of one event.
pub(super) fn event_insert(event: &NewEvent<'_>, now: Timestamp) -> Statement {
    let mut parameters = Parameters::default();
    let values = [
        text(event.credential.id),
        text(&event.credential.registry),
        optional(event.credential.cluster.as_ref()),
        text(event.actor),
        text(event.action),
        text(event.outcome),
        text(event.reason),
        optional(event.remark),
        Value::Number(now.as_microsecond()),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "INSERT INTO credential_events (credential, registry, cluster_id, actor, action, outcome, reason, remark, time) VALUES ({})",
        values.join(", ")
    );
    Statement { sql, parameters }
}

/// A statement with its parameters.
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) parameters: Parameters,
}

/// An event to be added.
pub(super) struct NewEvent<'a> {
    pub(super) credential: &'a Credential,
    pub(super) actor: &'a str,
    pub(super) action: &'a str,
    pub(super) outcome: Outcome,
    pub(super) reason: Reason,
    pub(super) remark: Option<&'a str>,
}

/// The name of an outward action in an event, or that of a change of the ledger alone.
pub(super) fn action_name(action: Option<Action>) -> &'static str {
    action.map_or("Move", Action::as_str)
}
