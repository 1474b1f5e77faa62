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
    /// Gives a cluster its first credential, which is made and probed but not published. Returns the one that it has, if it has
    /// one already.
    pub async fn issue_held(
        &self,
        slot: &Slot,
        fresh: &Fresh,
        statement: &Statement<'_>,
    ) -> Result<Credential, LedgerError> {
        if let Some(found) = self.of_slot(slot).await? {
            return Ok(found);
        }
        let issued = async {
            let mut write = self.database().begin().await?;
            let credential = take(&mut write, slot, fresh, statement.actor, statement.now).await?;
            let credential = hold(&mut write, credential, statement).await?;
            write.commit().await?;
            Ok(credential)
        };
        match issued.await {
            // Another caller was first.
            Err(LedgerError::Database(DatabaseError::Duplicate { unique })) => {
                self.of_slot(slot).await?.ok_or(DatabaseError::Duplicate { unique }.into())
            }
            result => result,
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

    /// Keeps a credential from publication again, because the cluster gets that of AMS back. The row is worked on anew when it is
    /// released.
    ///
    /// # Errors
    ///
    /// `TooLate` if it is being deleted, or is deleted.
    pub async fn hold_again(&self, id: CredentialId, statement: &Statement<'_>) -> Result<Credential, LedgerError> {
        let mut write = self.database().begin().await?;
        let mut credential = lock(&mut write, id).await?;
        if credential.state >= State::Retiring || credential.record.order.is_some() {
            return Err(LedgerError::TooLate(id));
        }
        if credential.state >= State::Probed {
            credential.state = State::Probed;
            (credential.record.published, credential.record.adopted) = (None, None);
            credential.record.evidence = Evidence::default();
        }
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
        let mut credential = lock(&mut write, id).await?;
        if credential.state >= State::Retiring || !credential.record.held {
            return Err(LedgerError::TooLate(id));
        }
        credential.record.held = false;
        credential.record.given_up = Some(Reason::RolledBack);
        credential.record.order.get_or_insert_with(|| order(statement, false));
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(id));
        write.execute(format!("UPDATE credentials SET slot = NULL WHERE id = {key}"), parameters).await?;
        save(&mut write, &credential, "Withdraw", Reason::RolledBack, statement).await?;
        Ok(write.commit().await?)
    }
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
