//! Gives a cluster its former credential back.

use database::{Parameters, Transaction};
use registry_account::name::CredentialId;

use super::handle::{Ledger, LedgerError, add_event};
use super::model::{Outcome, Statement};
use super::orders::{lock, order};
use super::rows::{self, NewEvent};
use super::write::wake;
use crate::credential::{Credential, Evidence};
use crate::reason::Reason;
use crate::state::State;

// === impl Ledger ===

impl Ledger {
    /// Records a person's order to give a cluster a credential back that a newer one replaces: it is probed, published and adopted
    /// anew, and the newer one is retired once nothing uses it. Returns the newer one; `None` if there is none any more.
    ///
    /// # Errors
    ///
    /// `TooLate` if the account is revoked, being deleted, or deleted.
    pub async fn put_back(
        &self,
        id: CredentialId,
        statement: &Statement<'_>,
    ) -> Result<Option<CredentialId>, LedgerError> {
        let mut write = self.database().begin().await?;
        let newer = put_back(&mut write, id, statement).await?;
        write.commit().await?;
        Ok(newer)
    }
}

/// See [`Ledger::put_back`].
pub(super) async fn put_back(
    write: &mut Transaction,
    id: CredentialId,
    statement: &Statement<'_>,
) -> Result<Option<CredentialId>, LedgerError> {
    let newer = newer(write, id).await?;
    // In the order in which the adoption of the newer one locks them.
    let mut newer = match newer {
        Some(newer) => Some(lock(write, newer).await?),
        None => None,
    };
    let mut former = lock(write, id).await?;
    let is_alive = matches!(former.state, State::Published | State::Adopted | State::Quiet) && former.has_password;
    if !is_alive || former.record.order.as_ref().is_some_and(|order| order.break_glass) {
        return Err(LedgerError::TooLate(id));
    }
    let Some(newer) = &mut newer else { return Ok(None) };
    if newer.state == State::Retiring || newer.state.is_over() {
        return Err(LedgerError::TooLate(newer.id));
    }
    newer.record.given_up = Some(Reason::RolledBack);
    newer.record.order.get_or_insert_with(|| order(statement, false));
    save(write, newer, "slot = NULL, ", statement).await?;
    // Where the newer one was never sent, the pull secret still names the former one.
    let mut further = "";
    if newer.may_be_named() {
        further = "published = NULL, ";
        former.state = State::Probed;
        former.reason = Reason::ToPublish;
        let record = &mut former.record;
        (record.published, record.adopted, record.order) = (None, None, None);
        record.evidence = Evidence::default();
    }
    save(write, &former, further, statement).await?;
    Ok(Some(newer.id))
}

/// Returns the credential that replaces another one.
async fn newer(write: &mut Transaction, id: CredentialId) -> Result<Option<CredentialId>, LedgerError> {
    let mut parameters = Parameters::default();
    let key = parameters.add(rows::text(id));
    let sql = format!("SELECT id FROM credentials WHERE replaces = {key} AND slot IS NOT NULL");
    let found = write.fetch(sql, parameters).await?;
    Ok(found.first().map(|row| rows::id(&row.text(0)?)).transpose()?)
}

/// Writes a credential as it is from now on; the row is due at once.
async fn save(
    write: &mut Transaction,
    credential: &Credential,
    further: &'static str,
    statement: &Statement<'_>,
) -> Result<(), LedgerError> {
    let mut record = credential.record.clone();
    (record.attempts, record.failure, record.retry_at) = (0, None, None);
    let mut parameters = Parameters::default();
    let [state, reason, record, id] = [
        rows::text(credential.state),
        rows::text(credential.reason),
        rows::record(&record)?,
        rows::text(credential.id),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "UPDATE credentials SET {further}state = {state}, reason = {reason}, record = {record} WHERE id = {id}"
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
