//! Seals passwords anew, so that old keys can be withdrawn, and removes those whose key is lost.

use std::collections::BTreeMap;

use database::sealed::{Begins, Bound, SealedColumn, key_id};
use database::{Parameters, Value};
use registry_account::name::CredentialId;

use super::ams::{AMS_TOKENS, erase_lost_tokens, reseal_tokens};
use super::handle::{Ledger, LedgerError, add_event};
use super::model::{Outcome, Statement};
use super::orders::lock;
use super::rows::{self, NewEvent};
use super::write::wake;
use crate::reason::Reason;

/// The sealed passwords.
const PASSWORDS: SealedColumn = SealedColumn { table: "credentials", column: "password" };

/// The outcome of a pass over all passwords.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rekeyed {
    /// Number of passwords that were sealed anew.
    pub resealed: usize,
    /// The credentials whose password cannot be opened.
    pub unopened: Vec<CredentialId>,
}

// === impl Ledger ===

impl Ledger {
    /// Seals every password with the first key that is not. A password that is changed meanwhile stays as it is.
    pub async fn rekey(&self) -> Result<Rekeyed, LedgerError> {
        let (mut done, mut after) = (Rekeyed::default(), String::new());
        let Some(current) = self.keyring().beginning() else { return Ok(done) };
        loop {
            let ids = PASSWORDS.ids(self.database(), Begins::Otherwise(&current), &after).await?;
            let Some(last) = ids.last() else { break };
            after.clone_from(last);
            for id in &ids {
                let id = rows::id(id)?;
                match self.reseal(id).await? {
                    Some(true) => done.resealed += 1,
                    Some(false) => done.unopened.push(id),
                    None => {}
                }
            }
        }
        done.resealed += reseal_tokens(self).await?;
        Ok(done)
    }

    /// Counts the passwords by the id of the key that seals them.
    pub async fn keys_in_use(&self) -> Result<BTreeMap<String, u64>, LedgerError> {
        let mut keys = PASSWORDS.by_key(self.database()).await?;
        for (key, number) in AMS_TOKENS.by_key(self.database()).await? {
            *keys.entry(key).or_default() += number;
        }
        Ok(keys)
    }

    /// Erases every password that is sealed with a lost key, and returns their credentials. A cluster that still waits for its
    /// credential gets another one; one that has it keeps it.
    pub async fn remove_lost(&self, key: &str, statement: &Statement<'_>) -> Result<Vec<CredentialId>, LedgerError> {
        erase_lost_tokens(self, key).await?;
        let mut removed = Vec::new();
        let beginnings = PASSWORDS.by_beginning(self.database()).await?;
        for beginning in beginnings.keys().filter(|beginning| key_id(beginning) == key) {
            let mut after = String::new();
            loop {
                let ids = PASSWORDS.ids(self.database(), Begins::With(beginning), &after).await?;
                let Some(last) = ids.last() else { break };
                after.clone_from(last);
                for id in &ids {
                    let id = rows::id(id)?;
                    removed.extend(self.erase_lost(id, beginning, statement).await?.then_some(id));
                }
            }
        }
        Ok(removed)
    }

    /// Seals a password anew: true if it was, false if it cannot be opened, `None` if it has changed. The version of the row
    /// stays: nothing that is decided on has changed.
    async fn reseal(&self, id: CredentialId) -> Result<Option<bool>, LedgerError> {
        let mut write = self.database().begin().await?;
        let credential = lock(&mut write, id).await?;
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(id));
        let found = write.fetch(format!("SELECT password FROM credentials WHERE id = {key}"), parameters).await?;
        let sealed = found.first().map(|row| row.optional_text(0)).transpose()?.flatten();
        let Some(sealed) = sealed.filter(|sealed| !self.keyring().is_current(sealed)) else { return Ok(None) };
        let binding = credential.binding();
        let Ok(resealed) = self.keyring().reseal(Bound::to(&binding), &sealed, Bound::to(&binding)) else {
            return Ok(Some(false));
        };
        let mut parameters = Parameters::default();
        let [resealed, id] = [Value::Text(resealed), rows::text(id)].map(|value| parameters.add(value));
        write.execute(format!("UPDATE credentials SET password = {resealed} WHERE id = {id}"), parameters).await?;
        write.commit().await?;
        Ok(Some(true))
    }

    /// Erases a password that begins so. Returns false if it has changed. A credential of the pool is given up with it.
    async fn erase_lost(
        &self,
        id: CredentialId,
        beginning: &str,
        statement: &Statement<'_>,
    ) -> Result<bool, LedgerError> {
        let mut write = self.database().begin().await?;
        let mut credential = lock(&mut write, id).await?;
        if credential.cluster.is_none() && !credential.state.is_over() {
            credential.record.given_up = Some(Reason::PasswordLost);
        }
        let mut parameters = Parameters::default();
        let sql = format!(
            "UPDATE credentials SET password = NULL, record = {} WHERE id = {} AND {} = {}",
            parameters.add(rows::record(&credential.record)?),
            parameters.add(rows::text(id)),
            PASSWORDS.beginning(write.dialect()),
            parameters.add(Value::Text(beginning.to_owned())),
        );
        if write.execute(sql, parameters).await? == 0 {
            return Ok(false);
        }
        wake(&mut write, id, None, statement.now).await?;
        let event = NewEvent {
            credential: &credential,
            actor: statement.actor,
            action: "RemoveLostPassword",
            outcome: Outcome::Recorded,
            reason: Reason::PasswordLost,
            remark: Some(statement.reason),
        };
        add_event(&mut write, &event, statement.now).await?;
        write.commit().await?;
        Ok(true)
    }
}
