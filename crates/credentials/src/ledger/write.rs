//! Records the results of steps, and reserves ids and names.

use database::{Parameters, Transaction, Value};
use jiff::Timestamp;
use registry_account::name::CredentialId;

use super::claim::{key, micros};
use super::handle::{Ledger, LedgerError, add_event};
use super::model::{Change, Claimed, Outcome, Password, Reservation, Slot};
use super::rows::{self, COLUMNS, NewEvent, Versioned, action_name};
use crate::credential::{Credential, MAX_CHAIN, Record};
use crate::reason::Reason;
use crate::state::{Lane, State};

// === impl Ledger ===

impl Ledger {
    /// Records the result of a step and gives the row back. Returns false if another replica has gone on with it: then nothing
    /// is written.
    ///
    /// The credentials that an adopted one replaces are due at once.
    pub async fn finish(&self, claimed: &Claimed, change: &Change<'_>) -> Result<bool, LedgerError> {
        let credential = &claimed.credential;
        let mut parameters = Parameters::default();
        let password = match &change.password {
            Password::Keep => String::new(),
            Password::Set(password) => {
                let sealed = self.seal(credential, password)?;
                format!("password = {}, ", parameters.add(Value::Text(sealed)))
            }
            Password::Erase => "password = NULL, ".to_owned(),
        };
        let [state, reason, published, record, lane, due] = [
            rows::text(change.state),
            rows::text(change.standing),
            change.record.published.map_or(Value::NoNumber, micros),
            rows::record(&change.record)?,
            rows::lane(change.lane),
            rows::due(change.due),
        ]
        .map(|value| parameters.add(value));
        let slot = if change.instead.is_some() { "slot = NULL, " } else { "" };
        let (id, version) = key(&mut parameters, claimed);
        let sql = format!(
            "UPDATE credentials SET {password}{slot}state = {state}, reason = {reason}, published = {published}, record = {record}, \
             lane = {lane}, due = {due}, leased_by = NULL, leased_until = 0, version = version + 1 WHERE id = {id} AND version = {version}"
        );
        let mut write = self.database().begin().await?;
        if write.execute(sql, parameters).await? == 0 {
            return Ok(false);
        }
        let event = NewEvent {
            credential,
            actor: change.actor,
            action: action_name(change.action),
            outcome: change.outcome,
            reason: change.reason,
            remark: None,
        };
        if is_event(change, credential) {
            add_event(&mut write, &event, change.now).await?;
        }
        if let Some(fresh) = &change.instead {
            let slot = credential.cluster.clone().map(|cluster| {
                let (registry, replaces) = (credential.registry.clone(), credential.replaces);
                Slot { registry, cluster, replaces }
            });
            let reservation = Reservation { fresh: fresh.clone(), registry: credential.registry.clone(), slot };
            // Beside one of AMS it stays unpublished, too.
            let record = Record { held: credential.record.held, ..Record::default() };
            insert_with(&mut write, &reservation, &record, change.actor, change.now).await?;
        }
        if change.state == State::Adopted {
            wake_replaced(&mut write, credential.replaces, change.now).await?;
        }
        write.commit().await?;
        Ok(true)
    }

    /// Reserves credentials for the pool.
    pub async fn reserve(&self, reservations: &[Reservation], actor: &str, now: Timestamp) -> Result<(), LedgerError> {
        let mut write = self.database().begin().await?;
        for reservation in reservations {
            insert(&mut write, reservation, actor, now).await?;
        }
        Ok(write.commit().await?)
    }
}

/// Returns true for what is worth an event. A row that waits on for the same reason is none, nor is an observation: its evidence
/// is in the row.
fn is_event(change: &Change<'_>, credential: &Credential) -> bool {
    match change.action {
        Some(action) if action.observes() => change.outcome != Outcome::Succeeded && change.reason != credential.reason,
        Some(_) => true,
        None => change.state != credential.state || change.standing != credential.reason,
    }
}

/// Makes a row due. A replica that works on it is overtaken, as it has decided by older facts.
pub(super) async fn wake(
    write: &mut Transaction,
    id: CredentialId,
    lane: Option<Lane>,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let mut parameters = Parameters::default();
    let [now, id, lane] =
        [Value::Number(now.as_microsecond()), rows::text(id), rows::lane(lane)].map(|value| parameters.add(value));
    let sql = format!(
        "UPDATE credentials SET due = {now}, lane = {lane}, leased_by = NULL, leased_until = 0, version = version + 1 \
         WHERE id = {id}"
    );
    write.execute(sql, parameters).await?;
    Ok(())
}

/// Makes the credentials that an adopted one replaces due: the next one, and those before it that are not over.
async fn wake_replaced(
    write: &mut Transaction,
    replaced: Option<CredentialId>,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let mut next = replaced;
    for _each in 0..MAX_CHAIN {
        let Some(id) = next else { break };
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(id));
        let found = write.fetch(format!("SELECT {COLUMNS} FROM credentials WHERE id = {key}"), parameters).await?;
        let Some(found) = found.first().map(rows::credential).transpose()? else { break };
        if !found.credential.state.is_over() {
            wake(write, id, None, now).await?;
        }
        next = found.credential.replaces;
    }
    Ok(())
}

/// Inserts a reserved row with its event and returns it.
pub(super) async fn insert(
    write: &mut Transaction,
    reservation: &Reservation,
    actor: &str,
    now: Timestamp,
) -> Result<Credential, LedgerError> {
    insert_with(write, reservation, &Record::default(), actor, now).await
}

async fn insert_with(
    write: &mut Transaction,
    reservation: &Reservation,
    record: &Record,
    actor: &str,
    now: Timestamp,
) -> Result<Credential, LedgerError> {
    let Reservation { fresh, registry, slot } = reservation;
    let replaces = slot.as_ref().and_then(|slot| slot.replaces);
    let lane = match slot {
        None => Lane::Refill,
        Some(slot) if slot.replaces.is_some() => Lane::Rotation,
        Some(_) => Lane::NewCluster,
    };
    let mut parameters = Parameters::default();
    let values = [
        rows::text(fresh.id),
        rows::text(registry),
        rows::text(&fresh.account),
        rows::text(State::Reserved),
        rows::text(Reason::ToCreate),
        rows::optional(slot.as_ref().map(|slot| &slot.cluster.id)),
        slot.as_ref().map_or(Value::NoNumber, |slot| Value::Number(slot.cluster.incarnation)),
        rows::optional(replaces),
        rows::optional(slot.as_ref().map(rows::slot)),
        rows::record(record)?,
        rows::lane(Some(lane)),
        Value::Number(now.as_microsecond()),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "INSERT INTO credentials (id, registry, account, state, reason, cluster_id, incarnation, replaces, slot, record, lane, \
         due, leased_until, version) VALUES ({}, 0, 1) RETURNING {COLUMNS}",
        values.join(", ")
    );
    let inserted = write.fetch(sql, parameters).await?;
    let row = inserted.first().ok_or(rows::damaged("credentials"))?;
    let Versioned { credential, version: _first } = rows::credential(row)?;
    let event = NewEvent {
        credential: &credential,
        actor,
        action: "Reserve",
        outcome: Outcome::Recorded,
        reason: Reason::ToCreate,
        remark: None,
    };
    add_event(write, &event, now).await?;
    Ok(credential)
}
