//! Orders and attestations of people.

use database::{Dialect, Parameters, Transaction};
use registry_account::name::CredentialId;

use super::handle::{Ledger, LedgerError, add_event};
use super::model::{Attested, Fresh, Outcome, Revocation, Slot, Statement};
use super::rows::{self, COLUMNS, NewEvent};
use super::write::wake;
use crate::credential::{Approval, Credential, Order, Proof};
use crate::reason::Reason;
use crate::state::{Lane, State};

// === impl Ledger ===

impl Ledger {
    /// Records a person's order to retire a credential once nothing uses it, which is also the approval that the policy `manual`
    /// waits for.
    pub async fn retire(&self, id: CredentialId, statement: &Statement<'_>) -> Result<(), LedgerError> {
        self.change(id, "OrderRetirement", Reason::Ordered, statement, |credential| {
            let is_over = credential.state == State::Retiring || credential.state.is_over();
            credential.record.order.get_or_insert_with(|| order(statement, false));
            !is_over
        })
        .await
    }

    /// Records a person's order to replace a credential, and returns the one that replaces it: the newest of its cluster, or,
    /// if that one is on its way out as well, a new one. The replaced one stays as it is until the new one is adopted.
    pub async fn replace(
        &self,
        id: CredentialId,
        fresh: &Fresh,
        statement: &Statement<'_>,
    ) -> Result<Credential, LedgerError> {
        // The one that replaces it would be published.
        if self.get(id).await?.is_some_and(|known| known.record.held) {
            return Err(LedgerError::Held(id));
        }
        self.change(id, "OrderReplacement", Reason::Ordered, statement, |_credential| true).await?;
        let newest = self.newest(id).await?;
        if newest.id != id && !is_on_its_way_out(&newest) {
            return Ok(newest);
        }
        let cluster = newest.cluster.ok_or(LedgerError::InPool(id))?;
        let slot = Slot { registry: newest.registry, cluster, replaces: Some(newest.id) };
        self.assign(&slot, fresh, statement.actor, statement.now).await
    }

    /// Records a person's order to revoke a credential at once, whatever uses it. The first such order stays. Where another person
    /// has to approve it, the first one's is a request, which stays until it has lapsed.
    pub async fn revoke(
        &self,
        id: CredentialId,
        approval: Approval,
        statement: &Statement<'_>,
    ) -> Result<Revocation, LedgerError> {
        let known = self.get(id).await?.ok_or(LedgerError::Absent(id))?.record;
        if known.order.as_ref().is_some_and(|order| order.break_glass) {
            return Ok(Revocation::Ordered);
        }
        match (approval, known.waiting_request(statement.now)) {
            (Approval::AnotherPerson, Some(request)) if request.actor == statement.actor => Ok(Revocation::Requested),
            (Approval::AnotherPerson, None) => {
                self.change(id, "RequestRevocation", Reason::Ordered, statement, |credential| {
                    if credential.record.waiting_request(statement.now).is_none() {
                        credential.record.revocation_request = Some(order(statement, true));
                    }
                    !credential.state.is_over()
                })
                .await?;
                Ok(Revocation::Requested)
            }
            (Approval::AnotherPerson, Some(_)) | (Approval::None, _) => {
                self.change(id, "OrderRevocation", Reason::BreakGlass, statement, |credential| {
                    credential.record.order = Some(order(statement, true));
                    !credential.state.is_over()
                })
                .await?;
                Ok(Revocation::Ordered)
            }
        }
    }

    /// Records a part of the evidence that a person attests.
    pub async fn attest(&self, id: CredentialId, part: Attested, statement: &Statement<'_>) -> Result<(), LedgerError> {
        self.change(id, "Attest", Reason::Ordered, statement, |credential| {
            let source = format!("attested by {}: {}", statement.actor, statement.reason);
            let proof = Some(Proof { at: statement.now, source });
            let is_over = credential.state == State::Retiring || credential.state.is_over();
            let evidence = &mut credential.record.evidence;
            match part {
                Attested::Report => evidence.report = proof,
                Attested::Nodes => evidence.nodes = proof,
                Attested::FirstPull => evidence.first_pull = proof,
                Attested::Quiet => evidence.quiet = proof,
            }
            !is_over
        })
        .await
    }

    /// Changes a record; the row is due at once. `change` returns false if it is too late for it.
    async fn change(
        &self,
        id: CredentialId,
        action: &'static str,
        reason: Reason,
        statement: &Statement<'_>,
        change: impl FnOnce(&mut Credential) -> bool,
    ) -> Result<(), LedgerError> {
        let mut write = self.database().begin().await?;
        let mut credential = lock(&mut write, id).await?;
        if !change(&mut credential) {
            return Err(LedgerError::TooLate(id));
        }
        let record = &mut credential.record;
        (record.attempts, record.failure, record.retry_at) = (0, None, None);
        let mut parameters = Parameters::default();
        let (record, key) = (parameters.add(rows::record(record)?), parameters.add(rows::text(id)));
        write.execute(format!("UPDATE credentials SET record = {record} WHERE id = {key}"), parameters).await?;
        let is_urgent = reason == Reason::BreakGlass;
        wake(&mut write, id, is_urgent.then_some(Lane::BreakGlass), statement.now).await?;
        let event = NewEvent {
            credential: &credential,
            actor: statement.actor,
            action,
            outcome: Outcome::Recorded,
            reason,
            remark: Some(statement.reason),
        };
        add_event(&mut write, &event, statement.now).await?;
        Ok(write.commit().await?)
    }
}

/// Returns true for a credential that is revoked, being deleted, or over.
fn is_on_its_way_out(credential: &Credential) -> bool {
    let is_revoked = credential.record.order.as_ref().is_some_and(|order| order.break_glass);
    is_revoked || credential.state == State::Retiring || credential.state.is_over()
}

pub(super) fn order(statement: &Statement<'_>, break_glass: bool) -> Order {
    let Statement { actor, reason, now } = *statement;
    Order { actor: actor.to_owned(), reason: reason.to_owned(), at: now, break_glass }
}

/// Reads a credential, and locks its row until the end of the transaction.
pub(super) async fn lock(write: &mut Transaction, id: CredentialId) -> Result<Credential, LedgerError> {
    let lock = if write.dialect() == Dialect::Postgres { " FOR UPDATE" } else { "" };
    let mut parameters = Parameters::default();
    let key = parameters.add(rows::text(id));
    let rows = write.fetch(format!("SELECT {COLUMNS} FROM credentials WHERE id = {key}{lock}"), parameters).await?;
    let row = rows.first().ok_or(LedgerError::Absent(id))?;
    Ok(rows::credential(row)?.credential)
}
