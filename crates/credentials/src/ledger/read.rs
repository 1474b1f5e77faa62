//! Reads of the ledger.

use std::collections::BTreeMap;

use database::{Parameters, Row};
use registry_account::name::{AccountName, CredentialId};

use super::handle::{Ledger, LedgerError};
use super::model::{Entry, KnownAccount};
use super::rows::{self, COLUMNS};
use crate::credential::{Credential, MAX_CHAIN, RegistryName, Successor};
use crate::decide::Work;
use crate::decide::budget::calls_left;
use crate::state::{Lane, State};

/// The most events of a credential that are read, newest first.
const MAX_EVENTS: usize = 1000;

// === impl Ledger ===

impl Ledger {
    /// Reads a credential.
    pub async fn get(&self, id: CredentialId) -> Result<Option<Credential>, LedgerError> {
        Ok(self.select("id = ", rows::text(id)).await?.pop())
    }

    /// Reads the account that a pull secret names.
    pub async fn of_login(&self, registry: &RegistryName, login: &str) -> Result<Option<Credential>, LedgerError> {
        // The name of an account follows the organization, where there is one.
        let account = login.rsplit(['+', '|', '$']).next().unwrap_or(login);
        let mut parameters = Parameters::default();
        let [registry, account] = [rows::text(registry), rows::text(account)].map(|value| parameters.add(value));
        let sql = format!("SELECT {COLUMNS} FROM credentials WHERE registry = {registry} AND account = {account}");
        let rows = self.database().fetch(sql, parameters).await?;
        let found = rows.first().map(rows::credential).transpose()?.map(|row| row.credential);
        Ok(found.filter(|credential| credential.record.login.as_deref() == Some(login)))
    }

    /// Reads the credential that replaces another one: the first adopted one of those that follow it, or the next one that is
    /// not over while there is none.
    pub async fn successor(&self, id: CredentialId) -> Result<Option<Successor>, LedgerError> {
        let (mut next, mut last) = (None, id);
        for _each in 0..MAX_CHAIN {
            let found = self.select("slot IS NOT NULL AND replaces = ", rows::text(last)).await?;
            let Some(Credential { id, state, record, .. }) = found.into_iter().next_back() else { break };
            let published = record.published.or(record.adopted);
            let successor = Successor { id, state, published, adopted: record.adopted };
            last = id;
            if successor.adopted.is_some() {
                return Ok(Some(successor));
            }
            if !state.is_over() {
                next.get_or_insert(successor);
            }
        }
        Ok(next)
    }

    /// Reads the newest of the credentials that replace one another, beginning with this one.
    pub(super) async fn newest(&self, id: CredentialId) -> Result<Credential, LedgerError> {
        let mut newest = self.get(id).await?.ok_or(LedgerError::Absent(id))?;
        for _each in 0..MAX_CHAIN {
            let found = self.select("slot IS NOT NULL AND replaces = ", rows::text(newest.id)).await?;
            let Some(next) = found.into_iter().next_back() else { break };
            newest = next;
        }
        Ok(newest)
    }

    /// Reads the events of a credential, oldest first: the newest 1,000.
    pub async fn events(&self, id: CredentialId) -> Result<Vec<Entry>, LedgerError> {
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(id));
        let sql = format!(
            "SELECT credential, cluster_id, actor, action, outcome, reason, remark, time FROM credential_events \
             WHERE credential = {key} ORDER BY number DESC LIMIT {MAX_EVENTS}"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        Ok(rows.iter().rev().map(rows::entry).collect::<Result<_, _>>()?)
    }

    /// Returns those of some accounts of a registry that the ledger knows.
    pub async fn known(
        &self,
        registry: &RegistryName,
        accounts: &[AccountName],
    ) -> Result<Vec<KnownAccount>, LedgerError> {
        let mut known = Vec::new();
        for accounts in accounts.chunks(500) {
            let names: Vec<String> = accounts.iter().map(ToString::to_string).collect();
            let mut parameters = Parameters::default();
            let registry = parameters.add(rows::text(registry));
            let names = parameters.one_of(self.database().dialect(), "account", &names);
            let sql = format!("SELECT account, id, state FROM credentials WHERE registry = {registry} AND {names}");
            for row in self.database().fetch(sql, parameters).await? {
                known.push(known_account(&row)?);
            }
        }
        Ok(known)
    }

    /// Counts the calls of a registry that wait, by lane.
    pub async fn work(&self, registry: &RegistryName) -> Result<Vec<Work>, LedgerError> {
        let mut parameters = Parameters::default();
        let registry = parameters.add(rows::text(registry));
        // Most credentials are in use, or over, and are not read.
        let states = State::ALL.into_iter().filter(|state| calls_left(*state) > 0);
        let states: Vec<String> = states.map(|state| parameters.add(rows::text(state))).collect();
        let states = states.join(", ");
        let flag = |column: &str| format!("CAST(CASE WHEN {column} IS NULL THEN 0 ELSE 1 END AS BIGINT)");
        let (cluster, replaces) = (flag("cluster_id"), flag("replaces"));
        let sql = format!(
            "SELECT state, {cluster}, {replaces}, COUNT(*) FROM credentials WHERE registry = {registry} AND state IN ({states}) \
             GROUP BY state, {cluster}, {replaces}"
        );
        let mut calls: BTreeMap<Lane, u64> = BTreeMap::new();
        for row in self.database().fetch(sql, parameters).await? {
            let state = State::parse(&row.text(0)?).ok_or(rows::damaged("credentials.state"))?;
            let lane = match (state, row.number(1)?, row.number(2)?) {
                (State::Retiring, ..) => Lane::Rotation,
                (State::Published, ..) => Lane::Audit,
                (_, 0, _) => Lane::Refill,
                (_, _, 0) => Lane::NewCluster,
                _ => Lane::Rotation,
            };
            let count = u64::try_from(row.number(3)?).unwrap_or_default();
            *calls.entry(lane).or_default() += count.saturating_mul(calls_left(state));
        }
        Ok(calls.into_iter().map(|(lane, calls)| Work { lane, calls }).collect())
    }

    async fn select(&self, condition: &'static str, value: database::Value) -> Result<Vec<Credential>, LedgerError> {
        let mut parameters = Parameters::default();
        let value = parameters.add(value);
        let sql = format!("SELECT {COLUMNS} FROM credentials WHERE {condition}{value} ORDER BY id");
        let rows = self.database().fetch(sql, parameters).await?;
        Ok(rows.iter().map(|row| rows::credential(row).map(|row| row.credential)).collect::<Result<_, _>>()?)
    }
}

fn known_account(row: &Row) -> Result<KnownAccount, LedgerError> {
    let account = row.text(0)?.parse().map_err(|_invalid| rows::damaged("credentials.account"))?;
    let state = State::parse(&row.text(2)?).ok_or(rows::damaged("credentials.state"))?;
    Ok(KnownAccount { account, credential: rows::id(&row.text(1)?)?, state })
}
