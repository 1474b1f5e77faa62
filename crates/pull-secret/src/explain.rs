//! `pull-secret explain`: the cause of a cluster's state, on one page.

use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::output;
use daemon::retry::Budget;
use diagnosis::cluster::{Target, observe};
use diagnosis::{decide, page};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::cli::{ExplainArguments, OutputFormat};
use crate::client;

/// Maximum time of all calls together.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Minimum width of a terminal for which lines are wrapped.
const MIN_WIDTH: usize = 40;

/// Explains one cluster.
pub(crate) fn cluster(arguments: ExplainArguments) -> anyhow::Result<ExitCode> {
    let ExplainArguments { id, api, kubeconfig, namespace, stale_after, output: format } = arguments;
    let client = client::client(&api)?;
    let kubeconfig = match kubeconfig {
        Some(path) => Some(path),
        None => ProcessEnvironment.text("KUBECONFIG")?.map(PathBuf::from),
    };
    let stale_after = SignedDuration::from_secs(stale_after.into());
    let target = Target { id, job_namespace: namespace, kubeconfig, stale_after };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    let facts =
        runtime.block_on(async { observe(&client, &target, &Budget::new(TIMEOUT, CancellationToken::new())).await });
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return Ok(client::refused(&error)),
    };
    let page = decide::page(&facts);
    match format {
        OutputFormat::Table => output::print(page::text(&page, Timestamp::now(), width()))?,
        OutputFormat::Json => output::print(serde_json::to_string_pretty(&page)? + "\n")?,
    };
    Ok(if page.verdict.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The width of the terminal; `None` if the page is read by a program or kept in a file.
fn width() -> Option<usize> {
    let stdout = stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= MIN_WIDTH)
}
