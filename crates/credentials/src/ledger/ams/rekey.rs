//! Seals the tokens of AMS anew.

use database::sealed::{Begins, Bound, SealedColumn, key_id};
use database::{Parameters, Value};

use super::credentials::{binding, ksuid};
use crate::ledger::handle::{Ledger, LedgerError};
use crate::ledger::rows;

/// The sealed tokens.
pub(in crate::ledger) const AMS_TOKENS: SealedColumn = SealedColumn { table: "ams_credentials", column: "token" };

/// Seals every token with the first key that is not, and returns their number. One that cannot be opened is imported again.
pub(in crate::ledger) async fn reseal_tokens(ledger: &Ledger) -> Result<usize, LedgerError> {
    let (mut number, mut after) = (0, String::new());
    let Some(current) = ledger.keyring().beginning() else { return Ok(number) };
    loop {
        let ids = AMS_TOKENS.ids(ledger.database(), Begins::Otherwise(&current), &after).await?;
        let Some(last) = ids.last() else { return Ok(number) };
        after.clone_from(last);
        for id in &ids {
            number += usize::from(reseal(ledger, id).await?);
        }
    }
}

/// Erases every token that is sealed with a lost key: the next import reads it again.
pub(in crate::ledger) async fn erase_lost_tokens(ledger: &Ledger, key: &str) -> Result<(), LedgerError> {
    let beginnings = AMS_TOKENS.by_beginning(ledger.database()).await?;
    for beginning in beginnings.into_keys().filter(|beginning| key_id(beginning) == key) {
        let mut write = ledger.database().begin().await?;
        let mut parameters = Parameters::default();
        let value = parameters.add(Value::Text(beginning));
        let begins = AMS_TOKENS.beginning(write.dialect());
        write.execute(format!("UPDATE ams_credentials SET token = NULL WHERE {begins} = {value}"), parameters).await?;
        write.commit().await?;
    }
    Ok(())
}

async fn reseal(ledger: &Ledger, id: &str) -> Result<bool, LedgerError> {
    let mut write = ledger.database().begin().await?;
    let mut parameters = Parameters::default();
    let key = parameters.add(rows::text(id));
    let sql = format!("SELECT username, token FROM ams_credentials WHERE id = {key} AND token IS NOT NULL");
    let found = write.fetch(sql, parameters).await?;
    let Some(row) = found.first() else { return Ok(false) };
    let (binding, sealed) = (binding(&ksuid(id)?, &row.text(0)?), row.text(1)?);
    let Ok(resealed) = ledger.keyring().reseal(Bound::to(&binding), &sealed, Bound::to(&binding)) else {
        return Ok(false);
    };
    let mut parameters = Parameters::default();
    let [resealed, id, sealed] =
        [Value::Text(resealed), rows::text(id), Value::Text(sealed)].map(|value| parameters.add(value));
    // A token that was imported meanwhile stays as it is.
    let sql = format!("UPDATE ams_credentials SET token = {resealed} WHERE id = {id} AND token = {sealed}");
    let is_written = write.execute(sql, parameters).await? > 0;
    write.commit().await?;
    Ok(is_written)
}
