//! Credentials of AMS: imports, their numbers, tokens, deletions.

use std::collections::BTreeMap;

use accounts_mgmt::{ImportedCredential, Ksuid, RegistryId};
use database::sealed::Bound;
use database::{Parameters, Row, Statements, Value, insert_or};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

use crate::ams::{AmsCredential, ImportPass, RegistryCount};
use crate::ledger::claim::micros;
use crate::ledger::handle::{Ledger, LedgerError};
use crate::ledger::model::{Outcome, Statement};
use crate::ledger::rows::{self, damaged};

/// The columns that [`credential`] reads.
const COLUMNS: &str = "id, registry, username, account, resource, pass, delete_started, deleted";

/// The columns that an import writes.
const IMPORTED: &str = "ams_credentials (id, registry, username, token, account, resource, created, pass)";

/// A row that is there already keeps its deletion.
const AGAIN: &str = " WHERE TRUE ON CONFLICT (id) DO UPDATE SET registry = excluded.registry, username = excluded.username, \
                     token = excluded.token, account = excluded.account, resource = excluded.resource, \
                     created = excluded.created, pass = excluded.pass";

// === impl Ledger ===

impl Ledger {
    /// Begins an import, and returns its number.
    pub async fn begin_ams_import(&self, now: Timestamp) -> Result<i64, LedgerError> {
        let mut parameters = Parameters::default();
        let now = parameters.add(micros(now));
        let sql = format!(
            "INSERT INTO ams_imports (pass, started) SELECT COALESCE(MAX(pass), 0) + 1, {now} FROM ams_imports RETURNING pass"
        );
        let mut write = self.database().begin().await?;
        let pass = write.fetch(sql, parameters).await?.first().map(|row| row.number(0)).transpose()?;
        write.commit().await?;
        Ok(pass.ok_or(damaged("ams_imports.pass"))?)
    }

    /// Records credentials of AMS that an import has read; their tokens are sealed.
    pub async fn import_ams(&self, pass: i64, found: &[ImportedCredential]) -> Result<(), LedgerError> {
        let row = |found: &ImportedCredential| {
            let sealed = self.seal_ams(&found.id, &found.username, &found.token)?;
            Ok(vec![
                rows::text(&found.id),
                rows::text(&found.registry),
                rows::text(&found.username),
                Value::Text(sealed),
                rows::optional(found.account.as_ref()),
                rows::optional(found.resource.as_ref()),
                found.created.map_or(Value::NoNumber, micros),
                Value::Number(pass),
            ])
        };
        let rows = found.iter().map(row).collect::<Result<_, LedgerError>>()?;
        let mut write = self.database().begin().await?;
        let mut statements = Statements::new(write.dialect());
        insert_or(&mut statements, IMPORTED, rows, AGAIN);
        statements.run(&mut write).await?;
        Ok(write.commit().await?)
    }

    /// Counts the credentials of an import by their registry.
    pub async fn ams_counts(&self, pass: i64) -> Result<BTreeMap<RegistryId, u64>, LedgerError> {
        let mut parameters = Parameters::default();
        let pass = parameters.add(Value::Number(pass));
        let sql = format!("SELECT registry, COUNT(*) FROM ams_credentials WHERE pass = {pass} GROUP BY registry");
        let mut counts = BTreeMap::new();
        for row in self.database().fetch(sql, parameters).await? {
            counts.insert(registry(&row.text(0)?)?, u64::try_from(row.number(1)?).unwrap_or_default());
        }
        Ok(counts)
    }

    /// Records the end of an import.
    pub async fn finish_ams_import(
        &self,
        pass: i64,
        counts: &[RegistryCount],
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let counts = serde_json::to_string(counts).map_err(|_unwritable| damaged("ams_imports.counts"))?;
        let mut parameters = Parameters::default();
        let [now, counts, pass] =
            [micros(now), Value::Text(counts), Value::Number(pass)].map(|value| parameters.add(value));
        let sql = format!("UPDATE ams_imports SET finished = {now}, counts = {counts} WHERE pass = {pass}");
        let mut write = self.database().begin().await?;
        write.execute(sql, parameters).await?;
        Ok(write.commit().await?)
    }

    /// Reads the last import that has read all; `None` if there is none.
    pub async fn ams_import(&self) -> Result<Option<ImportPass>, LedgerError> {
        let sql = "SELECT pass, started, finished, counts FROM ams_imports WHERE finished IS NOT NULL ORDER BY pass DESC LIMIT 1";
        let rows = self.database().fetch(sql.to_owned(), Parameters::default()).await?;
        rows.first().map(import_pass).transpose()
    }

    /// Reads the credentials of AMS of these users that an import contained, or one after it that has not read all (it may be at
    /// work, or dead), and that are not deleted.
    pub async fn ams_of_users(&self, pass: i64, usernames: &[String]) -> Result<Vec<AmsCredential>, LedgerError> {
        let mut parameters = Parameters::default();
        let pass = parameters.add(Value::Number(pass));
        let users = parameters.one_of(self.database().dialect(), "username", usernames);
        let sql = format!(
            "SELECT {COLUMNS} FROM ams_credentials WHERE pass >= {pass} AND deleted IS NULL AND {users} ORDER BY id"
        );
        self.database().fetch(sql, parameters).await?.iter().map(credential).collect()
    }

    /// Reads a credential of AMS.
    pub async fn ams_credential(&self, id: &Ksuid) -> Result<Option<AmsCredential>, LedgerError> {
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(id));
        let sql = format!("SELECT {COLUMNS} FROM ams_credentials WHERE id = {key}");
        self.database().fetch(sql, parameters).await?.first().map(credential).transpose()
    }

    /// Reads the token of a credential of AMS; `None` if it is erased.
    pub async fn ams_token(&self, of: &AmsCredential) -> Result<Option<SecretString>, LedgerError> {
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(&of.id));
        let sql = format!("SELECT token FROM ams_credentials WHERE id = {key}");
        let rows = self.database().fetch(sql, parameters).await?;
        let Some(sealed) = rows.first().map(|row| row.optional_text(0)).transpose()?.flatten() else { return Ok(None) };
        let unopened = || LedgerError::AmsToken(of.id.clone());
        let bytes =
            self.keyring().open(Bound::to(&binding(&of.id, &of.username)), &sealed).map_err(|_cause| unopened())?;
        let text = str::from_utf8(&bytes).map_err(|_quotes| unopened())?;
        Ok(Some(SecretString::from(text)))
    }

    /// Records that a credential of AMS is about to be deleted, or was: an event each time.
    pub async fn record_ams_deletion(
        &self,
        of: &AmsCredential,
        outcome: Outcome,
        statement: &Statement<'_>,
    ) -> Result<(), LedgerError> {
        let mut write = self.database().begin().await?;
        let mut parameters = Parameters::default();
        let [now, id] = [micros(statement.now), rows::text(&of.id)].map(|value| parameters.add(value));
        let change = match outcome {
            Outcome::Succeeded => format!("deleted = COALESCE(deleted, {now}), token = NULL"),
            _ => format!("delete_started = COALESCE(delete_started, {now})"),
        };
        write.execute(format!("UPDATE ams_credentials SET {change} WHERE id = {id}"), parameters).await?;
        let mut parameters = Parameters::default();
        let values = [
            rows::text(&of.id),
            rows::text(&of.registry),
            rows::text(statement.actor),
            rows::text("DeleteAtAms"),
            rows::text(outcome),
            rows::text("Ordered"),
            rows::text(statement.reason),
            micros(statement.now),
        ]
        .map(|value| parameters.add(value));
        let sql = format!(
            "INSERT INTO credential_events (credential, registry, actor, action, outcome, reason, remark, time) VALUES ({})",
            values.join(", ")
        );
        write.execute(sql, parameters).await?;
        Ok(write.commit().await?)
    }

    /// Forgets everything that was imported from AMS.
    pub async fn forget_ams(&self) -> Result<(), LedgerError> {
        let mut write = self.database().begin().await?;
        for table in ["ams_uses", "ams_entries", "ams_clusters", "ams_imports", "ams_credentials"] {
            write.execute(format!("DELETE FROM {table}"), Parameters::default()).await?;
        }
        Ok(write.commit().await?)
    }

    fn seal_ams(&self, id: &Ksuid, username: &str, token: &SecretString) -> Result<String, LedgerError> {
        let bytes = token.expose_secret().as_bytes().to_vec();
        let sealed = self.keyring().seal(Bound::to(&binding(id, username)), bytes);
        sealed.ok_or_else(|| LedgerError::AmsToken(id.clone()))
    }
}

/// Returns the text that a sealed token is bound to.
pub(super) fn binding(id: &Ksuid, username: &str) -> String {
    format!("credentials/ams/1\n{id}\n{username}")
}

fn registry(text: &str) -> Result<RegistryId, LedgerError> {
    Ok(text.parse().map_err(|_invalid| damaged("ams_credentials.registry"))?)
}

pub(super) fn ksuid(text: &str) -> Result<Ksuid, LedgerError> {
    Ok(text.parse().map_err(|_invalid| damaged("ams_credentials.id"))?)
}

fn credential(row: &Row) -> Result<AmsCredential, LedgerError> {
    let time = |column| row.optional_number(column)?.map(rows::time).transpose();
    Ok(AmsCredential {
        id: ksuid(&row.text(0)?)?,
        registry: registry(&row.text(1)?)?,
        username: row.text(2)?,
        account: row.optional_text(3)?,
        resource: row.optional_text(4)?,
        pass: row.number(5)?,
        delete_started: time(6)?,
        deleted: time(7)?,
    })
}

fn import_pass(row: &Row) -> Result<ImportPass, LedgerError> {
    let counts = row.optional_text(3)?.unwrap_or_else(|| "[]".to_owned());
    Ok(ImportPass {
        pass: row.number(0)?,
        started: rows::time(row.number(1)?)?,
        finished: row.optional_number(2)?.map(rows::time).transpose()?,
        counts: serde_json::from_str(&counts).map_err(|_quotes| damaged("ams_imports.counts"))?,
    })
}
