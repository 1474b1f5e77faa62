//! `pull-secret explain`: the cause of a cluster's state, on one page.

use std::io::{IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;
use daemon::output;
use daemon::retry::Budget;
use diagnosis::cluster::{Target, observe};
use diagnosis::facts::{Facts, Observation};
use diagnosis::{credentials, decide, page};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::cli::{ExplainArguments, OutputFormat};
use crate::client;
use crate::context::Chosen;
use crate::credentials::checked_if_set;

/// Maximum time of all calls together.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Minimum width of a terminal for which lines are wrapped.
const MIN_WIDTH: usize = 40;

/// Explains one cluster.
pub(crate) fn cluster(arguments: ExplainArguments) -> anyhow::Result<ExitCode> {
    let ExplainArguments { id, api, kubeconfig, namespace, credentials_config, stale_after, output: format } =
        arguments;
    let context = Chosen::of_fleet(&api)?;
    let client = client::client_in(&api, &context)?;
    let kubernetes = context.kubernetes(kubeconfig.as_ref())?;
    let checked = checked_if_set(credentials_config.as_ref())?;
    let stale_after = SignedDuration::from_secs(stale_after.into());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    let facts = runtime.block_on(async {
        let budget = Budget::new(TIMEOUT, CancellationToken::new());
        // What is no cluster's name is taken for an id, of which the page says that there is none.
        let id = match client::id_of(&client.within(&budget), &id).await? {
            Ok(found) => found.unwrap_or(id),
            Err(several) => return Ok(Err(several)),
        };
        let job_namespace = context.namespace(namespace.as_ref());
        let target = Target { id, job_namespace, kubernetes, stale_after };
        let ledger = async {
            match &checked {
                Some(checked) => match credentials::observe(checked, &ProcessEnvironment, &target.id).await {
                    Ok(found) => Observation::Found(found),
                    Err(why) => Observation::Failed(why),
                },
                None => Observation::NotObserved,
            }
        };
        let (facts, credentials) = tokio::join!(observe(&client, &target, &budget), ledger);
        facts.map(|facts| Ok(Facts { credentials, ..facts }))
    });
    let facts = match facts {
        Ok(facts) => facts?,
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
