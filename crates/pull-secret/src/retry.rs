//! `pull-secret retry`: makes the adapter run failed Jobs again now.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use daemon::output::{self, plain};
use daemon::retry::Budget;
use diagnosis::retry::{Outcome, ResultKind, Retry, Selection};
use kubernetes::Cluster;

use crate::cli::{OutputFormat, RetryArguments};
use crate::client;
use crate::context::Chosen;

/// Maximum time of the whole command: ten thousand clusters at the default rate.
const TIMEOUT: Duration = Duration::from_hours(3);

/// Maximum time of a call to Kubernetes.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Retries the selected clusters, or prints what would be retried.
pub(crate) fn retry(arguments: RetryArguments) -> anyhow::Result<ExitCode> {
    let RetryArguments { clusters, search, api, kubeconfig, namespace, rate, yes, output: format } = arguments;
    let selection = match (search, clusters) {
        (Some(search), _) => Selection::Search(search),
        (None, clusters) => Selection::Named(clusters),
    };
    let context = Chosen::of_fleet(&api)?;
    let kubernetes = context.kubernetes(kubeconfig.as_ref())?;
    let namespace = context.namespace(namespace.as_ref());
    if kubernetes.kubeconfig.is_none() {
        bail!("no access to Jobs: give --kubeconfig, or set KUBECONFIG; a retry deletes the Job that has failed");
    }
    let client = client::client_in(&api, &context)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let cluster = Cluster::connect(&kubernetes.settings(CALL_TIMEOUT)).await?;
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let budget = Budget::new(TIMEOUT, stop.clone());
        let calls = client.within(&budget);
        let retry = Retry { calls, cluster: &cluster, namespace: &namespace, rate, is_dry: !yes };
        let mut counts = Counts::default();
        let mut printed = Ok(());
        let each = |number: usize, all: usize, outcome: Outcome| {
            counts.add(outcome.result);
            let shown = match format {
                OutputFormat::Table => output::print(line(&outcome)),
                OutputFormat::Json => output::print(format_args!("{}\n", serde_json::json!(outcome))),
            };
            printed = std::mem::replace(&mut printed, Ok(())).and(shown.map(drop));
            if all > 1 && yes {
                output::note(format_args!("{number} of {all}, at most {rate} a minute"));
            }
        };
        let done = retry.run(&selection, &stop, each).await;
        printed?;
        if let Err(error) = done {
            return Ok(client::refused(&error));
        }
        output::note(counts.text(yes));
        Ok(if counts.refused + counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Numbers of clusters by result.
#[derive(Debug, Default)]
struct Counts {
    retried: u64,
    refused: u64,
    failed: u64,
}

impl Counts {
    fn add(&mut self, result: ResultKind) {
        let counter = match result {
            ResultKind::Retried | ResultKind::WouldRetry => &mut self.retried,
            ResultKind::Refused => &mut self.refused,
            ResultKind::Failed => &mut self.failed,
        };
        *counter += 1;
    }

    fn text(&self, is_done: bool) -> String {
        let Self { retried, refused, failed } = self;
        if is_done {
            format!("{retried} retried, {refused} refused, {failed} failed")
        } else {
            format!("{retried} would be retried, {refused} refused, {failed} failed; nothing was changed: add --yes")
        }
    }
}

fn line(outcome: &Outcome) -> String {
    let Outcome { cluster, name, result, job, because } = outcome;
    let word = match result {
        ResultKind::Retried => "retried",
        ResultKind::WouldRetry => "would retry",
        ResultKind::Refused => "refused",
        ResultKind::Failed => "failed",
    };
    let name = if name.is_empty() { String::new() } else { format!(" ({})", plain(name)) };
    let job = job.as_deref().map(|job| format!("Job {}: ", plain(job))).unwrap_or_default();
    format!("{word:<11}  {}{name}  {job}{}\n", plain(cluster), plain(because))
}
