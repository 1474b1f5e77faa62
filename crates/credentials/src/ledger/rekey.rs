//! Seals passwords anew, so that old keys can be withdrawn.

use std::collections::BTreeMap;

use database::sealed::{Bound, key_id};
use database::{Parameters, Value};
use registry_account::name::CredentialId;

use super::handle::{Ledger, LedgerError};
use super::rows::{self, COLUMNS};

/// Number of rows that are read at once.
const BATCH: usize = 100;

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
        loop {
            let mut parameters = Parameters::default();
            let from = parameters.add(Value::Text(after.clone()));
            let sql = format!(
                "SELECT {COLUMNS}, password FROM credentials WHERE password IS NOT NULL AND id > {from} ORDER BY id LIMIT {BATCH}"
            );
            let rows = self.database().fetch(sql, parameters).await?;
            if rows.is_empty() {
                return Ok(done);
            }
            for row in rows {
                let credential = rows::credential(&row)?.credential;
                let sealed = row.text(11)?;
                after = credential.id.to_string();
                if self.keyring().is_current(&sealed) {
                    continue;
                }
                let binding = credential.binding();
                match self.keyring().reseal(Bound::to(&binding), &sealed, Bound::to(&binding)) {
                    Ok(resealed) => done.resealed += usize::from(self.reseal(credential.id, sealed, resealed).await?),
                    Err(_unopened) => done.unopened.push(credential.id),
                }
            }
        }
    }

    /// Counts the passwords by the id of the key that seals them.
    pub async fn keys_in_use(&self) -> Result<BTreeMap<String, u64>, LedgerError> {
        let sql = "SELECT password FROM credentials WHERE password IS NOT NULL".to_owned();
        let mut keys = BTreeMap::new();
        for row in self.database().fetch(sql, Parameters::default()).await? {
            let sealed = row.text(0)?;
            *keys.entry(key_id(sealed.split('.').next().unwrap_or_default())).or_default() += 1;
        }
        Ok(keys)
    }

    /// Returns true if the sealed text was replaced. The version of the row stays: nothing that is decided on has changed.
    async fn reseal(&self, id: CredentialId, from: String, to: String) -> Result<bool, LedgerError> {
        let mut parameters = Parameters::default();
        let [to, id, from] = [Value::Text(to), rows::text(id), Value::Text(from)].map(|value| parameters.add(value));
        let mut write = self.database().begin().await?;
        let sql = format!("UPDATE credentials SET password = {to} WHERE id = {id} AND password = {from}");
        let changed = write.execute(sql, parameters).await?;
        write.commit().await?;
        Ok(changed > 0)
    }
}
