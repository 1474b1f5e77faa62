//! Claims due rows, and records actions before they begin.

use database::{Dialect, Parameters, Row, Transaction, Value};
use jiff::Timestamp;

use super::handle::{Ledger, LedgerError, add_event};
use super::model::{Call, Claim, Claimed, Outcome, Start, Started, UNUSED};
use super::rows::{self, COLUMNS, FREE, NewEvent, Versioned};
use crate::credential::RegistryName;
use crate::decide::budget::cost;
use crate::decide::{Budget, Grant, grant};
use crate::state::Lane;

// === impl Ledger ===

impl Ledger {
    /// Claims the most urgent due row of a registry, if there is one. A row whose lease has ended is due again.
    pub async fn claim(&self, claim: &Claim<'_>) -> Result<Option<Claimed>, LedgerError> {
        let mut parameters = Parameters::default();
        let (worker, until) = (parameters.add(rows::text(claim.worker)), parameters.add(micros(claim.until)));
        let (registry, now) = (parameters.add(rows::text(claim.registry)), parameters.add(micros(claim.now)));
        let lanes = match claim.lane {
            Some(lane) => format!("lane BETWEEN 0 AND {}", parameters.add(Value::Number(i64::from(lane.rank())))),
            None => format!("lane = {FREE}"),
        };
        let mut write = self.database().begin().await?;
        let sql = format!(
            "UPDATE credentials SET leased_by = {worker}, leased_until = {until}, version = version + 1 WHERE id = (\
             SELECT id FROM credentials WHERE registry = {registry} AND {lanes} AND due <= {now} AND leased_until <= {now} \
             ORDER BY lane, due, id LIMIT 1{}) RETURNING {COLUMNS}",
            skip_locked(write.dialect()),
        );
        let rows = write.fetch(sql, parameters).await?;
        write.commit().await?;
        rows.first().map(claimed).transpose()
    }

    /// Records an action that is about to begin, and takes its call from the budget of the registry.
    pub async fn begin(&self, claimed: &mut Claimed, start: &Start<'_>) -> Result<Started, LedgerError> {
        let mut write = self.database().begin().await?;
        let mut parameters = Parameters::default();
        let record = parameters.add(rows::record(&start.record)?);
        let (id, version) = key(&mut parameters, claimed);
        let sql = format!(
            "UPDATE credentials SET record = {record}, version = version + 1 WHERE id = {id} AND version = {version}"
        );
        if write.execute(sql, parameters).await? == 0 {
            return Ok(Started::Overtaken);
        }
        if let Some(call) = start.call
            && let Grant::Wait(until) = take_call(&mut write, &claimed.credential.registry, call, start.now).await?
        {
            write.roll_back().await?;
            return Ok(Started::NoCall(until));
        }
        let event = NewEvent {
            credential: &claimed.credential,
            actor: start.actor,
            action: start.action.as_str(),
            outcome: Outcome::Started,
            reason: start.reason,
            remark: None,
        };
        if !start.action.observes() {
            add_event(&mut write, &event, start.now).await?;
        }
        write.commit().await?;
        claimed.version += 1;
        claimed.credential.record.clone_from(&start.record);
        Ok(Started::Recorded)
    }

    /// Gives a claimed row back, to be claimed at that time in that lane.
    pub async fn release(&self, claimed: &Claimed, lane: Option<Lane>, due: Timestamp) -> Result<(), LedgerError> {
        let mut parameters = Parameters::default();
        let (due, lane) = (parameters.add(micros(due)), parameters.add(rows::lane(lane)));
        let (id, version) = key(&mut parameters, claimed);
        let sql = format!(
            "UPDATE credentials SET due = {due}, lane = {lane}, leased_by = NULL, leased_until = 0, version = version + 1 \
             WHERE id = {id} AND version = {version}"
        );
        let mut write = self.database().begin().await?;
        write.execute(sql, parameters).await?;
        Ok(write.commit().await?)
    }

    /// Takes a call of a registry that belongs to no credential, such as a list.
    pub async fn take_call(&self, registry: &RegistryName, call: Call, now: Timestamp) -> Result<Grant, LedgerError> {
        let mut write = self.database().begin().await?;
        let grant = take_call(&mut write, registry, call, now).await?;
        write.commit().await?;
        Ok(grant)
    }

    /// Pays for requests of a registry that a granted call took beyond its first one.
    pub async fn pay(&self, registry: &RegistryName, requests: u32, per_minute: u32) -> Result<(), LedgerError> {
        let cost = cost(requests, per_minute);
        let micros = i64::try_from(cost.as_micros()).unwrap_or(i64::MAX);
        let mut parameters = Parameters::default();
        let (cost, name) = (parameters.add(Value::Number(micros)), parameters.add(rows::text(registry)));
        let sql = format!("UPDATE registry_budgets SET next = next + {cost} WHERE registry = {name}");
        let mut write = self.database().begin().await?;
        write.execute(sql, parameters).await?;
        Ok(write.commit().await?)
    }

    /// Returns the budget of a registry.
    pub async fn budget(&self, registry: &RegistryName) -> Result<Budget, LedgerError> {
        let mut parameters = Parameters::default();
        let name = parameters.add(rows::text(registry));
        let sql = format!("SELECT next, blocked_until FROM registry_budgets WHERE registry = {name}");
        let rows = self.database().fetch(sql, parameters).await?;
        rows.first().map_or(Ok(UNUSED), budget)
    }

    /// Leaves a registry alone until a time that it has asked for.
    pub async fn block(&self, registry: &RegistryName, until: Timestamp) -> Result<(), LedgerError> {
        let mut parameters = Parameters::default();
        let (name, until) = (parameters.add(rows::text(registry)), parameters.add(micros(until)));
        let sql = format!(
            "INSERT INTO registry_budgets (registry, next, blocked_until) VALUES ({name}, 0, {until}) \
             ON CONFLICT (registry) DO UPDATE SET blocked_until = {until} WHERE registry_budgets.blocked_until < {until}"
        );
        let mut write = self.database().begin().await?;
        write.execute(sql, parameters).await?;
        Ok(write.commit().await?)
    }
}

async fn take_call(
    write: &mut Transaction,
    registry: &RegistryName,
    call: Call,
    now: Timestamp,
) -> Result<Grant, LedgerError> {
    let found = lock_budget(write, registry).await?;
    let granted = grant(&found, call.per_minute, call.lane, now);
    if let Grant::Granted(next) = granted {
        let mut parameters = Parameters::default();
        let (next, name) = (parameters.add(micros(next)), parameters.add(rows::text(registry)));
        write.execute(format!("UPDATE registry_budgets SET next = {next} WHERE registry = {name}"), parameters).await?;
    }
    Ok(granted)
}

/// Reads the budget of a registry and locks it until the end of the transaction.
pub(super) async fn lock_budget(write: &mut Transaction, registry: &RegistryName) -> Result<Budget, LedgerError> {
    let mut parameters = Parameters::default();
    let name = parameters.add(rows::text(registry));
    let sql = format!(
        "INSERT INTO registry_budgets (registry, next, blocked_until) VALUES ({name}, 0, 0) ON CONFLICT (registry) DO NOTHING"
    );
    write.execute(sql, parameters).await?;
    let lock = if write.dialect() == Dialect::Postgres { " FOR UPDATE" } else { "" };
    let mut parameters = Parameters::default();
    let name = parameters.add(rows::text(registry));
    let sql = format!("SELECT next, blocked_until FROM registry_budgets WHERE registry = {name}{lock}");
    let rows = write.fetch(sql, parameters).await?;
    rows.first().map_or(Ok(UNUSED), budget)
}

fn budget(row: &Row) -> Result<Budget, LedgerError> {
    Ok(Budget { next: rows::time(row.number(0)?)?, blocked_until: rows::time(row.number(1)?)? })
}

pub(super) fn claimed(row: &Row) -> Result<Claimed, LedgerError> {
    let Versioned { credential, version } = rows::credential(row)?;
    Ok(Claimed { credential, version })
}

/// Adds the condition that the row is as it was claimed: its id and its version.
pub(super) fn key(parameters: &mut Parameters, claimed: &Claimed) -> (String, String) {
    (parameters.add(rows::text(claimed.credential.id)), parameters.add(Value::Number(claimed.version)))
}

/// Skips rows that another replica is claiming. SQLite has one writer at a time.
pub(super) fn skip_locked(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "",
        Dialect::Postgres => " FOR UPDATE SKIP LOCKED",
    }
}

pub(super) fn micros(time: Timestamp) -> Value {
    Value::Number(time.as_microsecond())
}
