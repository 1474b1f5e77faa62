//! `pull-secret credentials audit verify`: shows if an event of the ledger was changed or is missing.

use std::process::ExitCode;

use credentials::chain::Verified;
use daemon::output;

use super::common;
use crate::cli::{LedgerVerifyArguments, OutputFormat};

/// Verifies the chain of events; the exit code is 1 if it has a fault.
pub(super) async fn verify(arguments: LedgerVerifyArguments) -> anyhow::Result<ExitCode> {
    let LedgerVerifyArguments { link: known, output: format, flags } = arguments;
    let ledger = common::ledger(&common::checked(flags)?).await?;
    let verified = ledger.verify_events(&known).await?;
    let text = match format {
        OutputFormat::Table => lines(&verified),
        OutputFormat::Json => serde_json::to_string_pretty(&verified)? + "\n",
    };
    let _printed = output::print(text)?;
    Ok(if verified.fault.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(verified: &Verified) -> String {
    let Verified { links, events, unlinked, newest, fault } = verified;
    let state = match (fault, newest) {
        (Some(fault), _) => format!("BROKEN: {fault}"),
        (None, None) => "no link: the service makes the first one within a minute".to_owned(),
        (None, Some(_)) => "unbroken".to_owned(),
    };
    let newest = newest.as_ref().map(|link| format!("newest link  {}:{} of {}\n", link.number, link.hash, link.time));
    format!(
        "events       {events} in {links} links, {unlinked} not linked yet\n{}state        {state}\n",
        newest.unwrap_or_default()
    )
}
