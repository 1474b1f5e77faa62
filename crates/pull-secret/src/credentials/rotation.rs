//! `pull-secret credentials rotation`: new credentials for many clusters.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use credentials::ledger::{Ledger, NewRotation, RotationRequest, Statement};
use credentials::rotation::{Candidate, ClusterProgress, GroupCounts, Rotation, RotationName, RotationPlan};
use credentials::settings::{Checked, CheckedRegistry};
use daemon::output;
use daemon::retry::Budget;
use hyperfleet_client::{Client, ListQuery};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::common;
use super::rotation_page::{self as page, Progress, Proposal};
use crate::cli::{
    OutputFormat, RotationAbortArguments, RotationCommand, RotationRequestArguments, RotationRules,
    RotationStartArguments, RotationStatusArguments,
};

/// Maximum time of the lists of clusters.
const LIST_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum number of failed clusters that the page has.
const SHOWN: u32 = 100;

/// Runs a command of `credentials rotation`.
pub(super) async fn rotation(command: RotationCommand) -> anyhow::Result<ExitCode> {
    match command {
        RotationCommand::Start(arguments) => start(*arguments, false).await,
        RotationCommand::Status(arguments) => status(arguments).await,
        RotationCommand::Pause(arguments) => ask(arguments, RotationRequest::Pause).await,
        RotationCommand::Resume(arguments) => ask(arguments, RotationRequest::Resume).await,
        RotationCommand::Abort(RotationAbortArguments { request, put_back }) => {
            ask(request, RotationRequest::Abort { put_back }).await
        }
    }
}

/// Starts a rotation, or prints its plan. `from_ams` publishes the credentials that wait beside those of AMS.
pub(super) async fn start(arguments: RotationStartArguments, from_ams: bool) -> anyhow::Result<ExitCode> {
    let RotationStartArguments { rules, order, yes, output: format, flags } = arguments;
    let actor = common::actor(&order)?;
    let settings = common::checked(flags)?;
    let ledger = common::ledger(&settings).await?;
    let registry = configured(&settings, &rules)?;
    let plan = RotationPlan { from_ams, ..plan(&rules)? };
    let groups = groups(&settings, &ledger, &rules, from_ams).await?;
    let number: usize = groups.iter().map(Vec::len).sum();
    let lack = if from_ams { "has a credential beside that of AMS" } else { "uses a credential that can be replaced" };
    ensure!(number > 0, "no cluster {lack}: registry {}", rules.registry);
    let now = Timestamp::now();
    let counts: Vec<GroupCounts> = groups.iter().map(|group| waiting(group.len())).collect();
    let each = rules.min_success_time.saturating_add(registry.policy.interval.saturating_mul(2));
    let per_minute = registry.client.calls_per_minute();
    let proposal = Proposal { name: &rules.name, plan: &plan, counts: &counts, per_minute, each, now };
    output::print(page::proposal(&proposal, format))?;
    if !yes {
        output::note("nothing was changed: add --yes");
        return Ok(ExitCode::SUCCESS);
    }
    let statement = Statement { actor: &actor, reason: &order.reason, now };
    let new = NewRotation { name: &rules.name, registry: &rules.registry, plan: &plan, groups: &groups };
    ledger.start_rotation(&new, &statement).await?;
    output::note(format_args!(
        "started: the service works on it; see `pull-secret credentials rotation status {}`",
        rules.name
    ));
    Ok(ExitCode::SUCCESS)
}

async fn status(arguments: RotationStatusArguments) -> anyhow::Result<ExitCode> {
    let settings = common::checked(arguments.flags)?;
    let ledger = common::ledger(&settings).await?;
    match arguments.name {
        Some(name) => print(&settings, &ledger, &name, arguments.output).await,
        None => Ok(output::print(page::list(&ledger.rotations().await?, arguments.output))?),
    }
}

async fn ask(arguments: RotationRequestArguments, request: RotationRequest) -> anyhow::Result<ExitCode> {
    let actor = common::actor(&arguments.order)?;
    let settings = common::checked(arguments.flags)?;
    let ledger = common::ledger(&settings).await?;
    let statement = Statement { actor: &actor, reason: &arguments.order.reason, now: Timestamp::now() };
    ledger.ask(&arguments.name, request, &statement).await?;
    print(&settings, &ledger, &arguments.name, arguments.output).await
}

/// Prints a rotation with its progress.
async fn print(
    settings: &Checked,
    ledger: &Ledger,
    name: &RotationName,
    format: OutputFormat,
) -> anyhow::Result<ExitCode> {
    let rotation: Rotation = ledger.rotation(name).await?;
    let registry = settings.registries.iter().find(|configured| configured.name == rotation.registry);
    let counts = ledger.rotation_counts(&rotation).await?;
    let failed = ledger.rotation_members(name, ClusterProgress::Failed, SHOWN).await?;
    let soak = Duration::try_from(rotation.plan.min_success_time).unwrap_or_default();
    let each = ledger.rotation_pace(name).await?.unwrap_or(soak);
    let per_minute = registry.map(|configured| configured.client.calls_per_minute());
    let progress =
        Progress { rotation: &rotation, counts: &counts, failed: &failed, per_minute, each, now: Timestamp::now() };
    Ok(output::print(page::progress(&progress, format))?)
}

fn configured<'a>(settings: &'a Checked, arguments: &RotationRules) -> anyhow::Result<&'a CheckedRegistry> {
    let registry = &arguments.registry;
    let found = settings.registries.iter().find(|configured| configured.name == *registry);
    found.with_context(|| format!("registry {registry} is not configured: add it to `registries`"))
}

fn plan(arguments: &RotationRules) -> anyhow::Result<RotationPlan> {
    let signed = |flag: &str, time| SignedDuration::try_from(time).with_context(|| format!("{flag}: is too long"));
    let rest = "the rest".to_owned();
    Ok(RotationPlan {
        groups: arguments.first.iter().cloned().chain([rest]).collect(),
        max_concurrency: arguments.max_concurrency.get(),
        max_failures: arguments.max_failures,
        min_success_time: signed("--min-success-time", arguments.min_success_time)?,
        progress_deadline: signed("--progress-deadline", arguments.progress_deadline)?,
        window: arguments.window,
        max_calls_per_minute: arguments.max_calls_per_minute,
        from_ams: false,
    })
}

/// Returns the clusters of each group; a cluster is in the first one that has it.
async fn groups(
    settings: &Checked,
    ledger: &Ledger,
    arguments: &RotationRules,
    from_ams: bool,
) -> anyhow::Result<Vec<Vec<Candidate>>> {
    let registry = &arguments.registry;
    let mut rest = if from_ams { ledger.held(registry).await? } else { ledger.candidates(registry).await? };
    let client = Client::new(settings.client.clone())?;
    if let Some(search) = &arguments.search {
        let found = clusters(&client, search).await.context("--search")?;
        rest.retain(|candidate| found.contains(&candidate.cluster));
    }
    let mut groups = Vec::new();
    for search in &arguments.first {
        let found = clusters(&client, search).await.context("--first")?;
        let (group, others) = rest.into_iter().partition(|candidate| found.contains(&candidate.cluster));
        groups.push(group);
        rest = others;
    }
    groups.push(rest);
    Ok(groups)
}

/// Returns the ids of the clusters of a search.
async fn clusters(client: &Client, search: &str) -> anyhow::Result<BTreeSet<String>> {
    let budget = Budget::new(LIST_TIMEOUT, CancellationToken::new());
    let fields = vec!["id".to_owned()];
    let query = ListQuery { search: Some(search.to_owned()), fields, ..ListQuery::default() };
    let calls = client.within(&budget);
    let mut pages = calls.list_all("clusters", query);
    let mut found = BTreeSet::new();
    while let Some(page) = pages.next().await? {
        found.extend(page.into_iter().map(|cluster| cluster.id));
    }
    Ok(found)
}

fn waiting(number: usize) -> GroupCounts {
    let mut counts = GroupCounts::default();
    counts.add(ClusterProgress::Waiting, u64::try_from(number).unwrap_or(u64::MAX));
    counts
}
