//! `pull-secret status --why`: the causes for which clusters are not available, once or until it is stopped.

use std::io::{IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::output;
use daemon::retry::Budget;
use diagnosis::why::{self, Why};
use hyperfleet_client::{Client, Error};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cli::{OutputFormat, StatusArguments};
use crate::client;

/// Time between two reads.
const INTERVAL: Duration = Duration::from_secs(2);

/// Share of its time that a watch waits: an API that takes long to answer is asked less often.
const PAUSES: u32 = 4;

/// Moves a terminal's cursor to the top and clears what is below.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

/// Prints the causes; each read takes at most `limit`.
pub(super) fn why(arguments: &StatusArguments, client: &Client, limit: Duration) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        if !arguments.watch {
            return match read(arguments, client, &Budget::new(limit, CancellationToken::new())).await {
                Ok(why) => Ok(output::print(text(&why, arguments)?)?),
                Err(error) => Ok(client::refused(&error)),
            };
        }
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        while !stop.is_cancelled() {
            let began = Instant::now();
            match read(arguments, client, &Budget::new(limit, stop.clone())).await {
                Ok(why) => {
                    let clear = if stdout().is_terminal() { CLEAR } else { "" };
                    output::print(format_args!("{clear}{}", text(&why, arguments)?))?;
                }
                Err(_stopped) if stop.is_cancelled() => break,
                // What comes back is shown again; what never will is the end.
                Err(error) if error.transient() => drop(client::refused(&error)),
                Err(error) => return Ok(client::refused(&error)),
            }
            let pause = INTERVAL.max(began.elapsed() * PAUSES);
            let _stopped = tokio::time::timeout(pause, stop.cancelled()).await;
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn read(arguments: &StatusArguments, client: &Client, budget: &Budget) -> Result<Why, Error> {
    why::read(&client.within(budget), arguments.search.as_deref()).await
}

fn text(why: &Why, arguments: &StatusArguments) -> anyhow::Result<String> {
    Ok(match arguments.output {
        OutputFormat::Table => why.text(Timestamp::now(), SignedDuration::from_secs(arguments.stale_after.into())),
        OutputFormat::Json => serde_json::to_string(why)? + "\n",
    })
}
