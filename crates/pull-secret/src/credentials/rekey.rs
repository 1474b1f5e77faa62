//! `pull-secret credentials rekey`: the rotation of the keys that seal passwords in the ledger.

use std::process::ExitCode;

use anyhow::ensure;
use credentials::ledger::Statement;
use daemon::output;
use jiff::Timestamp;

use super::common;
use crate::cli::{OrderFlags, RekeyLedgerArguments};
use crate::rekeyed::Rekeyed;

/// Seals every password with the first key; before that, erases those whose key is lost.
pub(super) async fn rekey(arguments: RekeyLedgerArguments) -> anyhow::Result<ExitCode> {
    let RekeyLedgerArguments { remove_lost_key, reason, actor, output: format, flags } = arguments;
    let checked = common::checked(flags)?;
    let keyring = checked.keyring().map_err(anyhow::Error::msg)?;
    let ledger = common::ledger(&checked).await?;
    let mut removed = Vec::new();
    if let Some(key) = remove_lost_key {
        ensure!(!keyring.has(&key), "--remove-lost-key: {key} is in `keys`, and what it seals can be read");
        let order = OrderFlags { reason: reason.unwrap_or_default(), actor };
        let actor = common::actor(&order)?;
        let statement = Statement { actor: &actor, reason: &order.reason, now: Timestamp::now() };
        removed = ledger.remove_lost(&key, &statement).await?;
        output::note(format_args!(
            "{} passwords erased; clusters that have theirs keep it, the others get another one",
            removed.len()
        ));
    }
    let done = ledger.rekey().await?;
    output::note(format_args!("{} passwords sealed anew", done.resealed));
    for id in &done.unopened {
        output::note(format_args!("error: the password of credential {id} cannot be opened and stays as it is"));
    }
    let texts = |ids: Vec<_>| ids.into_iter().map(|id: registry_account::CredentialId| id.to_string()).collect();
    let (failed, removed) = (texts(done.unopened), texts(removed));
    Rekeyed { done: done.resealed, failed, removed, keys: ledger.keys_in_use().await? }.print(format)
}
