//! `pull-secret credentials entries`.

use std::process::ExitCode;

use anyhow::Context as _;
use credentials::entries::{KnownEntry, Since};
use credentials::ledger::EntryFilter;
use daemon::output::{self, plain};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{common, page};
use crate::cli::{EntriesArguments, OutputFormat};

/// Lists the entries of all pull secrets.
pub(super) async fn entries(arguments: EntriesArguments) -> anyhow::Result<ExitCode> {
    let EntriesArguments { cluster, host, expiring, older_than, made_elsewhere, output, flags } = arguments;
    let now = Timestamp::now();
    let expires_before = expiring.map(|time| now.checked_add(time).context("--expiring: is too long")).transpose()?;
    let since_before = older_than.map(|age| now.checked_sub(age).context("--older-than: is too long")).transpose()?;
    let ledger = common::ledger(&common::checked(flags)?).await?;
    let mut found = ledger.entries(&EntryFilter { cluster, host, expires_before, since_before }).await?;
    found.retain(|entry| !made_elsewhere || entry.credential.is_none());
    let unread = ledger.entry_counts(now).await?.unread;
    if unread > 0 {
        output::note(format_args!(
            "{unread} clusters are not looked at: their pull secret is by reference, hidden or no document"
        ));
    }
    Ok(output::print(text(&found, output))?)
}

fn text(found: &[KnownEntry], format: OutputFormat) -> String {
    match format {
        OutputFormat::Json => format!("{:#}\n", found.iter().map(object).collect::<Value>()),
        OutputFormat::Table => {
            let row = |entry: &KnownEntry| {
                [
                    plain(&entry.cluster),
                    plain(&entry.host),
                    entry.credential.map_or_else(|| "elsewhere".to_owned(), |id| id.to_string()),
                    since(entry.since),
                    page::time(entry.expires),
                ]
            };
            output::table(["CLUSTER", "HOST", "MADE BY", "SINCE", "EXPIRES"], found.iter().map(row))
        }
    }
}

fn since(since: Since) -> String {
    match since {
        Since::Made(time) => time.to_string(),
        Since::FirstObserved(time) => format!("{time} or earlier"),
    }
}

fn object(entry: &KnownEntry) -> Value {
    let KnownEntry { cluster, host, credential, since, expires } = entry;
    let is_known = matches!(since, Since::Made(_));
    json!({
        "cluster": cluster, "host": host, "credential": credential.map(|id| id.to_string()), "since": since.time(),
        "sinceIsKnown": is_known, "expires": expires,
    })
}
