//! Gives clusters credentials: from the pool, without waiting for the registry, or reserved for them.

use database::{DatabaseError, Parameters, Row, Transaction, Value};
use jiff::Timestamp;

use super::claim::{lock_budget, micros, skip_locked};
use super::handle::{Ledger, LedgerError, add_event};
use super::model::{Fresh, Outcome, PoolCounts, Refill, Reservation, Slot};
use super::rows::{self, COLUMNS, FREE, NewEvent, Statement};
use super::write::{insert, wake};
use crate::credential::{Credential, RegistryName};
use crate::decide::{Pool, budget::remaining, reserve};
use crate::reason::Reason;
use crate::state::{Lane, State};

// === impl Ledger ===

impl Ledger {
    /// Returns the credential of a slot. If there is none yet, it is claimed from the pool; if that is empty, it is reserved with
    /// the fresh id and name. Two callers get the same one.
    pub async fn assign(
        &self,
        slot: &Slot,
        fresh: &Fresh,
        actor: &str,
        now: Timestamp,
    ) -> Result<Credential, LedgerError> {
        if let Some(found) = self.of_slot(slot).await? {
            return Ok(found);
        }
        match self.assign_new(slot, fresh, actor, now).await {
            // Another caller was first.
            Err(LedgerError::Database(DatabaseError::Duplicate { unique })) => match self.of_slot(slot).await? {
                Some(found) => Ok(found),
                None => Err(DatabaseError::Duplicate { unique }.into()),
            },
            result => result,
        }
    }

    /// Counts the credentials of a registry that belong to no cluster.
    pub async fn pool(&self, registry: &RegistryName) -> Result<PoolCounts, LedgerError> {
        let Statement { sql, parameters } = count(registry);
        counted(&self.database().fetch(sql, parameters).await?)
    }

    /// Reserves credentials for the pool, as many as are missing and as the rate allows; one replica at a time. Returns their
    /// number.
    pub async fn refill(
        &self,
        refill: &Refill<'_>,
        fresh: &mut (dyn FnMut() -> Option<Fresh> + Send),
    ) -> Result<u64, LedgerError> {
        let Refill { registry, target, per_minute, actor, now } = *refill;
        let mut write = self.database().begin().await?;
        let budget = lock_budget(&mut write, registry).await?;
        let Statement { sql, parameters } = count(registry);
        let PoolCounts { ready, in_progress } = counted(&write.fetch(sql, parameters).await?)?;
        let remaining_calls = remaining(&budget, per_minute, Lane::Refill, now);
        let number = reserve(&Pool { ready, in_progress, target, remaining_calls });
        let mut reserved = 0;
        for fresh in (0..number).map_while(|_each| fresh()) {
            let reservation = Reservation { fresh, registry: registry.clone(), slot: None };
            insert(&mut write, &reservation, actor, now).await?;
            reserved += 1;
        }
        write.commit().await?;
        Ok(reserved)
    }

    pub(super) async fn of_slot(&self, slot: &Slot) -> Result<Option<Credential>, LedgerError> {
        let mut parameters = Parameters::default();
        let place = parameters.add(Value::Text(rows::slot(slot)));
        let sql = format!("SELECT {COLUMNS} FROM credentials WHERE slot = {place}");
        let rows = self.database().fetch(sql, parameters).await?;
        Ok(rows.first().map(rows::credential).transpose()?.map(|row| row.credential))
    }

    async fn assign_new(
        &self,
        slot: &Slot,
        fresh: &Fresh,
        actor: &str,
        now: Timestamp,
    ) -> Result<Credential, LedgerError> {
        let mut write = self.database().begin().await?;
        let credential = take(&mut write, slot, fresh, actor, now).await?;
        write.commit().await?;
        Ok(credential)
    }
}

/// Takes a credential for a slot: from the pool, or reserved with the fresh id and name.
pub(super) async fn take(
    write: &mut Transaction,
    slot: &Slot,
    fresh: &Fresh,
    actor: &str,
    now: Timestamp,
) -> Result<Credential, LedgerError> {
    let credential = if let Some(credential) = claim_pooled(write, slot, now).await? {
        let event = NewEvent {
            credential: &credential,
            actor,
            action: "Assign",
            outcome: Outcome::Changed,
            reason: Reason::ToPublish,
            remark: None,
        };
        add_event(write, &event, now).await?;
        credential
    } else {
        let (fresh, registry, slot) = (fresh.clone(), slot.registry.clone(), Some(slot.clone()));
        insert(write, &Reservation { fresh, registry, slot }, actor, now).await?
    };
    if let Some(replaced) = slot.replaces {
        wake(write, replaced, None, now).await?;
    }
    Ok(credential)
}

fn count(registry: &RegistryName) -> Statement {
    let mut parameters = Parameters::default();
    let registry = parameters.add(rows::text(registry));
    let states = [State::Reserved, State::Created, State::Permitted, State::Pooled].map(|state| state.to_string());
    let states = states.map(|state| parameters.add(Value::Text(state))).join(", ");
    let sql = format!(
        "SELECT state, COUNT(*) FROM credentials WHERE registry = {registry} AND cluster_id IS NULL AND state IN ({states}) \
         GROUP BY state"
    );
    Statement { sql, parameters }
}

fn counted(rows: &[Row]) -> Result<PoolCounts, LedgerError> {
    let mut counts = PoolCounts::default();
    for row in rows {
        let count = u64::try_from(row.number(1)?).unwrap_or_default();
        if row.text(0)? == State::Pooled.as_str() {
            counts.ready += count;
        } else {
            counts.in_progress += count;
        }
    }
    Ok(counts)
}

/// Claims the oldest ready credential for a slot, in one statement.
async fn claim_pooled(write: &mut Transaction, slot: &Slot, now: Timestamp) -> Result<Option<Credential>, LedgerError> {
    let mut parameters = Parameters::default();
    let [cluster, incarnation, replaces, place, probed, reason, due, registry, pooled] = [
        rows::text(&slot.cluster.id),
        Value::Number(slot.cluster.incarnation),
        rows::optional(slot.replaces),
        Value::Text(rows::slot(slot)),
        rows::text(State::Probed),
        rows::text(Reason::ToPublish),
        micros(now),
        rows::text(&slot.registry),
        rows::text(State::Pooled),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "UPDATE credentials SET cluster_id = {cluster}, incarnation = {incarnation}, replaces = {replaces}, slot = {place}, \
         state = {probed}, reason = {reason}, due = {due}, lane = {FREE}, leased_by = NULL, leased_until = 0, \
         version = version + 1 WHERE id = (SELECT id FROM credentials WHERE registry = {registry} AND state = {pooled} \
         AND cluster_id IS NULL AND due = {} ORDER BY id LIMIT 1{}) RETURNING {COLUMNS}",
        rows::NEVER,
        skip_locked(write.dialect()),
    );
    let rows = write.fetch(sql, parameters).await?;
    Ok(rows.first().map(rows::credential).transpose()?.map(|row| row.credential))
}
