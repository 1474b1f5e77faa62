//! Gives a cluster a former credential back.

use database::{Dialect, Parameters, Transaction, Value};
use registry_account::name::CredentialId;

use super::claim::micros;
use super::handle::{Ledger, LedgerError, add_event};
use super::model::{Outcome, Slot, Statement};
use super::of_cluster::ClusterCredential;
use super::orders::order;
use super::rows::{self, COLUMNS, NewEvent};
use super::write::wake;
use crate::credential::{Credential, Evidence, MAX_CHAIN};
use crate::reason::Reason;
use crate::state::State;

// === impl Ledger ===

impl Ledger {
    /// Records a person's order to give a cluster a credential back that newer ones replace: it is probed, published
    /// and adopted anew, and the newer ones are retired once nothing uses them. The same order again changes nothing.
    /// Returns those that are to be retired, oldest first; `None` if nothing replaces it any more.
    ///
    /// # Errors
    ///
    /// `TooLate` if the account is revoked, being deleted, deleted, or lost.
    pub async fn put_back(
        &self,
        id: CredentialId,
        statement: &Statement<'_>,
    ) -> Result<Option<Vec<CredentialId>>, LedgerError> {
        let mut write = self.database().begin().await?;
        let retired = put_back(&mut write, id, PutBack::Always, statement).await?;
        write.commit().await?;
        Ok(retired)
    }
}

/// The condition for putting a credential back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutBack {
    /// None.
    Always,
    /// The cluster has adopted none of the newer ones.
    UnlessAdopted,
}

/// See [`Ledger::put_back`]. A `TooLate`, which a condition that is not met is too, has written nothing.
pub(super) async fn put_back(
    write: &mut Transaction,
    id: CredentialId,
    condition: PutBack,
    statement: &Statement<'_>,
) -> Result<Option<Vec<CredentialId>>, LedgerError> {
    let (mut former, mut later) = (None, Vec::new());
    // Each before the one that it replaces: the adoption of a newer one locks them in this order.
    for one in family(write, id).await?.into_iter().rev() {
        let found = lock_placed(write, one).await?;
        if one == id {
            former = Some(found);
        } else {
            later.push(found);
        }
    }
    let former = former.ok_or(LedgerError::Absent(id))?;
    if !is_alive(&former) || (condition == PutBack::UnlessAdopted && later.iter().any(is_adopted)) {
        return Err(LedgerError::TooLate(id));
    }
    let ClusterCredential { credential: mut former, has_place } = former;
    later.retain(is_in_the_way);
    // One that was given up itself has lost its place, and takes it again.
    let place = if has_place { None } else { slot_of(&former) };
    if later.is_empty() && place.is_none() {
        return Ok(None);
    }
    // Where no other one was ever sent, the pull secret still names the former one.
    let must_publish = place.is_some() || later.iter().any(|found| found.credential.may_be_named());
    let mut retired = Vec::new();
    for ClusterCredential { credential, .. } in later.iter_mut().rev() {
        give_up(credential, statement);
        save(write, credential, Some(Value::NoText), statement).await?;
        if !credential.state.is_over() {
            retired.push(credential.id);
        }
    }
    begin_anew(&mut former, must_publish);
    save(write, &former, place, statement).await?;
    Ok(Some(retired))
}

/// Returns true for a credential that its cluster can have again: not if its account was lost, and another one was
/// reserved in its place.
fn is_alive(former: &ClusterCredential) -> bool {
    let Credential { state, has_password, record, .. } = &former.credential;
    let is_proven = matches!(state, State::Probed | State::Published | State::Adopted | State::Quiet);
    let is_kept_back = *state == State::Probed && record.held;
    let is_revoked = record.order.as_ref().is_some_and(|order| order.break_glass);
    let is_lost = !former.has_place && record.given_up != Some(Reason::RolledBack);
    is_proven && *has_password && !is_kept_back && !is_revoked && !is_lost
}

/// Returns true for a newer credential that the cluster has adopted, and still has.
fn is_adopted(found: &ClusterCredential) -> bool {
    let record = &found.credential.record;
    found.has_place && record.adopted.is_some() && record.given_up.is_none()
}

/// Returns true for a newer credential that has its place in the life of the cluster, or may be published still. One
/// that is over leaves its place too: the cluster may have adopted it, which would retire the former one.
fn is_in_the_way(found: &ClusterCredential) -> bool {
    let credential = &found.credential;
    found.has_place || (credential.record.given_up.is_none() && !credential.state.is_over())
}

/// Returns the slot of a credential that replaced another one.
fn slot_of(credential: &Credential) -> Option<Value> {
    let replaces = credential.replaces?;
    let (registry, cluster) = (credential.registry.clone(), credential.cluster.clone()?);
    Some(Value::Text(rows::slot(&Slot { registry, cluster, replaces: Some(replaces) })))
}

/// Gives a newer credential up; the former one may be published over it from now on, even if it is over.
fn give_up(newer: &mut Credential, statement: &Statement<'_>) {
    newer.record.given_up = Some(Reason::RolledBack);
    if !newer.state.is_over() {
        newer.record.order.get_or_insert_with(|| order(statement, false));
    }
}

/// Takes back that a credential was given up, or was to be retired.
fn begin_anew(former: &mut Credential, must_publish: bool) {
    let record = &mut former.record;
    (record.given_up, record.order) = (None, None);
    if must_publish {
        (record.published, record.adopted) = (None, None);
        record.evidence = Evidence::default();
        former.state = State::Probed;
        former.reason = Reason::ToPublish;
        return;
    }
    record.evidence.quiet = None;
    if former.state == State::Quiet {
        former.state = if record.adopted.is_some() { State::Adopted } else { State::Published };
    }
}

/// Returns a credential and all that replace it, directly or not, each after the one that it replaces. If another one
/// has taken its place, that one and those that replace it are among them.
async fn family(write: &mut Transaction, id: CredentialId) -> Result<Vec<CredentialId>, LedgerError> {
    let mut parameters = Parameters::default();
    let key = parameters.add(rows::text(id));
    let sql = format!(
        "SELECT id FROM credentials WHERE id = {key} OR (slot IS NOT NULL AND replaces = \
         (SELECT replaces FROM credentials WHERE id = {key})) ORDER BY id"
    );
    let mut family = ids(write, sql, parameters).await?;
    for index in 0..MAX_CHAIN {
        let Some(one) = family.get(index) else { break };
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(one));
        let sql = format!("SELECT id FROM credentials WHERE replaces = {key} ORDER BY id");
        family.extend(ids(write, sql, parameters).await?);
    }
    Ok(family)
}

async fn ids(write: &mut Transaction, sql: String, parameters: Parameters) -> Result<Vec<CredentialId>, LedgerError> {
    let mut ids = Vec::new();
    for row in write.fetch(sql, parameters).await? {
        ids.push(rows::id(&row.text(0)?)?);
    }
    Ok(ids)
}

/// Reads a credential with its place, and locks its row until the end of the transaction.
async fn lock_placed(write: &mut Transaction, id: CredentialId) -> Result<ClusterCredential, LedgerError> {
    let lock = if write.dialect() == Dialect::Postgres { " FOR UPDATE" } else { "" };
    let mut parameters = Parameters::default();
    let key = parameters.add(rows::text(id));
    let sql = format!(
        "SELECT {COLUMNS}, CAST(CASE WHEN slot IS NULL THEN 0 ELSE 1 END AS BIGINT) FROM credentials \
         WHERE id = {key}{lock}"
    );
    let found = write.fetch(sql, parameters).await?;
    let row = found.first().ok_or(LedgerError::Absent(id))?;
    Ok(ClusterCredential { credential: rows::credential(row)?.credential, has_place: row.number(11)? == 1 })
}

/// Writes a credential as it is from now on, and its slot, where that changes; the row is due at once.
async fn save(
    write: &mut Transaction,
    credential: &Credential,
    place: Option<Value>,
    statement: &Statement<'_>,
) -> Result<(), LedgerError> {
    let mut record = credential.record.clone();
    (record.attempts, record.failure, record.retry_at) = (0, None, None);
    let mut parameters = Parameters::default();
    let [state, reason, published, record, id] = [
        rows::text(credential.state),
        rows::text(credential.reason),
        record.published.map_or(Value::NoNumber, micros),
        rows::record(&record)?,
        rows::text(credential.id),
    ]
    .map(|value| parameters.add(value));
    let slot = place.map_or_else(String::new, |place| format!("slot = {}, ", parameters.add(place)));
    let sql = format!(
        "UPDATE credentials SET {slot}state = {state}, reason = {reason}, published = {published}, record = {record} \
         WHERE id = {id}"
    );
    write.execute(sql, parameters).await?;
    wake(write, credential.id, None, statement.now).await?;
    let event = NewEvent {
        credential,
        actor: statement.actor,
        action: "PutBack",
        outcome: Outcome::Recorded,
        reason: Reason::RolledBack,
        remark: Some(statement.reason),
    };
    add_event(write, &event, statement.now).await
}
