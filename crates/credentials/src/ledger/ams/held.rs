//! Credentials of our own beside those of AMS: kept from publication until their clusters are moved.

use std::collections::BTreeMap;

use database::{DatabaseError, Parameters, Transaction};
use jiff::Timestamp;
use registry_account::name::CredentialId;

use crate::credential::{ClusterRef, Credential, Evidence, RegistryName};
use crate::ledger::handle::{Ledger, LedgerError, add_event};
use crate::ledger::model::{Fresh, Outcome, Slot, Statement};
use crate::ledger::orders::{lock, order};
use crate::ledger::pool::take;
use crate::ledger::rows::{self, NewEvent};
use crate::ledger::write::wake;
use crate::reason::Reason;
use crate::rotation::Candidate;
use crate::state::State;

/// The credentials of our own, by cluster.
pub type OwnCredentials = BTreeMap<ClusterRef, Vec<Credential>>;

// === impl Ledger ===

impl Ledger {
    /// Gives a cluster its first credential, which is made and probed but not published. Returns the one that it has,
    /// if it has one already; one that is kept from publication and on its way out, or over, gives way to another.
    /// Returns `None` if all that the cluster has are on their way out or over, and were not kept from publication:
    /// `replace` is for those.
    pub async fn issue_held(
        &self,
        slot: &Slot,
        fresh: &Fresh,
        statement: &Statement<'_>,
    ) -> Result<Option<Credential>, LedgerError> {
        let former = self.of_slot(slot).await?;
        if let Some(former) = &former {
            let newest = self.newest(former.id).await?;
            if let Some(live) = [former, &newest].into_iter().find(|one| !is_on_its_way_out(one)) {
                return Ok(Some(live.clone()));
            }
            if !former.record.held {
                return Ok(None);
            }
        }
        let issued = async {
            let mut write = self.database().begin().await?;
            if let Some(former) = &former {
                let former = lock(&mut write, former.id).await?;
                if former.record.held {
                    withdraw(&mut write, former, statement).await?;
                }
            }
            let credential = take(&mut write, slot, fresh, statement.actor, statement.now).await?;
            let credential = hold(&mut write, credential, statement).await?;
            write.commit().await?;
            Ok(credential)
        };
        match issued.await {
            // Another caller was first.
            Err(LedgerError::Database(DatabaseError::Duplicate { unique })) => {
                self.of_slot(slot).await?.map(Some).ok_or(DatabaseError::Duplicate { unique }.into())
            }
            result => result.map(Some),
        }
    }

    /// Returns the credentials of a registry that are probed and kept from publication, with their clusters.
    pub async fn held(&self, registry: &RegistryName) -> Result<Vec<Candidate>, LedgerError> {
        let all = self.own_credentials(registry).await?;
        let held = all.into_values().flatten().filter(|one| one.record.held && one.state == State::Probed);
        let candidate =
            |one: Credential| Some(Candidate { credential: one.id, cluster: one.cluster.map(|cluster| cluster.id)? });
        Ok(held.filter_map(candidate).collect())
    }

    /// Reads the credentials of a registry that are neither over nor given up, by cluster.
    pub async fn own_credentials(&self, registry: &RegistryName) -> Result<OwnCredentials, LedgerError> {
        let filter = crate::ledger::Filter { registry: Some(registry.clone()), ..Default::default() };
        let mut own = OwnCredentials::new();
        for credential in self.list(&filter).await? {
            let is_gone = credential.state >= State::Retiring || credential.record.given_up.is_some();
            if let Some(cluster) = credential.cluster.clone().filter(|_| !is_gone) {
                own.entry(cluster).or_default().push(credential);
            }
        }
        Ok(own)
    }

    /// Keeps a credential from publication from now on, because the cluster gets that of AMS back. The row is worked on
    /// anew when it is released. One that replaces another one and was never published is given up, and one that is on
    /// its way out already, so that it is never published again, stays as it is. Returns it as it is now.
    pub async fn keep_back(&self, id: CredentialId, statement: &Statement<'_>) -> Result<Credential, LedgerError> {
        let mut write = self.database().begin().await?;
        let mut credential = lock(&mut write, id).await?;
        let record = &credential.record;
        let is_revoked = record.order.as_ref().is_some_and(|order| order.break_glass);
        if credential.state >= State::Retiring || record.given_up.is_some() || is_revoked {
            return Ok(credential);
        }
        let is_kept = record.held && credential.state <= State::Probed;
        if credential.replaces.is_some() && !credential.may_be_named() {
            let credential = withdraw(&mut write, credential, statement).await?;
            write.commit().await?;
            return Ok(credential);
        }
        if is_kept {
            return Ok(credential);
        }
        // A token that is being renewed was adopted before.
        (credential.record.published, credential.record.adopted) = (None, None);
        credential.record.evidence = Evidence::default();
        credential.state = credential.state.min(State::Probed);
        let credential = hold(&mut write, credential, statement).await?;
        write.commit().await?;
        Ok(credential)
    }

    /// Gives up a credential that was never published, or whose cluster has that of AMS again; it is retired once nothing uses it,
    /// and the cluster can get another one.
    ///
    /// # Errors
    ///
    /// `TooLate` if it is being deleted, or is deleted.
    pub async fn withdraw_held(&self, id: CredentialId, statement: &Statement<'_>) -> Result<(), LedgerError> {
        let mut write = self.database().begin().await?;
        let credential = lock(&mut write, id).await?;
        if credential.state >= State::Retiring || !credential.record.held {
            return Err(LedgerError::TooLate(id));
        }
        withdraw(&mut write, credential, statement).await?;
        Ok(write.commit().await?)
    }
}

/// Returns true for a credential that is retired or revoked by an order, given up, being deleted, or over.
fn is_on_its_way_out(credential: &Credential) -> bool {
    let Credential { state, record, .. } = credential;
    *state >= State::Retiring || record.order.is_some() || record.given_up.is_some()
}

/// Lets a credential be published.
pub(in crate::ledger) async fn release(
    write: &mut Transaction,
    mut credential: Credential,
    actor: &str,
    now: Timestamp,
) -> Result<(), LedgerError> {
    credential.record.held = false;
    let statement = Statement { actor, reason: "moved away from AMS", now };
    save(write, &credential, "Release", Reason::ToPublish, &statement).await
}

/// Gives a credential up, and frees its place for another one.
async fn withdraw(
    write: &mut Transaction,
    mut credential: Credential,
    statement: &Statement<'_>,
) -> Result<Credential, LedgerError> {
    let record = &mut credential.record;
    record.held = false;
    record.given_up.get_or_insert(Reason::RolledBack);
    record.order.get_or_insert_with(|| order(statement, false));
    let mut parameters = Parameters::default();
    let key = parameters.add(rows::text(credential.id));
    write.execute(format!("UPDATE credentials SET slot = NULL WHERE id = {key}"), parameters).await?;
    save(write, &credential, "Withdraw", Reason::RolledBack, statement).await?;
    Ok(credential)
}

async fn hold(
    write: &mut Transaction,
    mut credential: Credential,
    statement: &Statement<'_>,
) -> Result<Credential, LedgerError> {
    credential.record.held = true;
    save(write, &credential, "Hold", Reason::Held, statement).await?;
    Ok(credential)
}

/// Writes a credential as it is from now on; the row is due at once.
async fn save(
    write: &mut Transaction,
    credential: &Credential,
    action: &str,
    reason: Reason,
    statement: &Statement<'_>,
) -> Result<(), LedgerError> {
    let mut parameters = Parameters::default();
    let published = credential.record.published.map_or(database::Value::NoNumber, crate::ledger::claim::micros);
    let [state, record, published, id] =
        [rows::text(credential.state), rows::record(&credential.record)?, published, rows::text(credential.id)]
            .map(|value| parameters.add(value));
    let sql =
        format!("UPDATE credentials SET state = {state}, record = {record}, published = {published} WHERE id = {id}");
    write.execute(sql, parameters).await?;
    let lane = credential.record.last_create.is_none().then_some(crate::state::Lane::NewCluster);
    wake(write, credential.id, lane, statement.now).await?;
    let event = NewEvent {
        credential,
        actor: statement.actor,
        action,
        outcome: Outcome::Recorded,
        reason,
        remark: Some(statement.reason),
    };
    add_event(write, &event, statement.now).await
}
