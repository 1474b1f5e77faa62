//! `pull-secret status`: the fleet as a table, page by page as the API returns it.

mod why;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::output;
use daemon::retry::Budget;
use diagnosis::fleet::{FIELDS, HEADING, Judge, Row, Summary};
use hyperfleet_client::ListQuery;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cli::{OutputFormat, StatusArguments};
use crate::client;

/// Maximum time of one page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum time of the whole list; a fleet of any size is read in pages, each with a timeout of its own.
const LIST_TIMEOUT: Duration = Duration::from_hours(1);

/// Lists the fleet.
pub(crate) fn status(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let client = client::client(&arguments.api)?;
    if arguments.why {
        return why::why(arguments, &client, LIST_TIMEOUT);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let budget = Budget::new(LIST_TIMEOUT, CancellationToken::new());
        let fields = FIELDS.map(str::to_owned).to_vec();
        let query = ListQuery { search: arguments.search.clone(), fields, ..ListQuery::default() };
        let calls = client.within(&budget);
        let mut pages = calls.list_all("clusters", query);
        let mut summary = Summary::default();
        let now = Timestamp::now();
        let judge = Judge::new(now, SignedDuration::from_secs(arguments.stale_after.into()));
        let mut heading = if arguments.output == OutputFormat::Table { HEADING } else { "" };
        loop {
            let next = async {
                match pages.next().await? {
                    Some(page) => calls.all_with_adapters("clusters", page).await.map(Some),
                    None => Ok(None),
                }
            };
            let page = match tokio::time::timeout(PAGE_TIMEOUT, next).await {
                Ok(Ok(Some(page))) => page,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Ok(client::refused(&error)),
                Err(_elapsed) => {
                    output::note("error: the API does not answer in time; try again later");
                    return Ok(ExitCode::from(75));
                }
            };
            let rows: Vec<Row> = page.iter().map(|cluster| Row::of(cluster, &judge)).collect();
            let mut text = std::mem::take(&mut heading).to_owned();
            for row in &rows {
                summary.count(row);
                match arguments.output {
                    OutputFormat::Table => text += &row.line(now),
                    OutputFormat::Json => text += &(serde_json::to_string(row)? + "\n"),
                }
            }
            output::print(text)?;
        }
        Ok(match arguments.output {
            OutputFormat::Table => output::print(summary.text(now))?,
            OutputFormat::Json => output::print(format_args!("{}\n", json!({ "summary": summary })))?,
        })
    })
}
