//! `pull-secret prune`: destroys superseded versions of the fleet's stored secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::output;
use daemon::passes::ticks;
use daemon::retry::Budget;
use hyperfleet_client::Client;
use pull_secret_job::prune::{self, Decision, Options, Pruned, Refused};
use pull_secret_job::sweep::{self, Clusters, Listed, State};
use secret_store::{AnyStore, Metadata, SecretId, StoreSettings};
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, Interval};

use crate::cli::{OutputFormat, PruneArguments};
use crate::context::Chosen;
use crate::sweep::clusters;
use crate::{client, store};

/// Maximum time of the whole command: ten thousand secrets with three versions each at the default rate.
const TIMEOUT: Duration = Duration::from_hours(3);

/// Writes of the record for a secret that is pruned.
const RECORD_WRITES: usize = 2;

/// Prunes the selected clusters' secrets, or prints what would be destroyed.
pub(crate) fn prune(arguments: &PruneArguments) -> anyhow::Result<ExitCode> {
    let context = Chosen::of_fleet(&arguments.api)?;
    let client = client::client_in(&arguments.api, &context)?;
    let place = store::required(&arguments.store, &context)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let budget = Budget::new(TIMEOUT, stop);
        let store = AnyStore::connect(&place, None).await?;
        // The secrets first: one that is listed belongs to a cluster of the list, or to one that was deleted meanwhile.
        let listed = store::managed(&store).await?;
        let clusters = match selected(arguments, &client, &budget).await {
            Ok(clusters) => clusters?,
            Err(error) => return Ok(client::refused(&error)),
        };
        let targets = targets(listed, &clusters, &place);
        let pace = pace(arguments);
        Pruning { arguments, store: &store, budget: &budget, pace, counts: Counts::default() }.run(targets).await
    })
}

/// A secret to be pruned.
struct Target {
    cluster: String,
    secret: SecretId,
    metadata: Metadata,
}

/// The selected clusters; an error of the inner result is one of the selection.
async fn selected(
    arguments: &PruneArguments,
    client: &Client,
    budget: &Budget,
) -> Result<anyhow::Result<Clusters>, hyperfleet_client::Error> {
    let mut ids = BTreeSet::new();
    for text in &arguments.clusters {
        match client::id_of(&client.within(budget), text).await? {
            Ok(Some(id)) => drop(ids.insert(id)),
            Ok(None) => {
                let text = output::plain(text);
                return Ok(Err(anyhow::anyhow!("{text}: there is no such cluster, by id or by name")));
            }
            Err(several) => return Ok(Err(several)),
        }
    }
    let mut clusters = clusters(client, budget, arguments.search.clone()).await?;
    clusters.retain(|id, _living| ids.is_empty() || ids.contains(id.as_str()));
    Ok(Ok(clusters))
}

/// The secrets that are in use by one of the clusters.
fn targets(listed: BTreeMap<SecretId, Metadata>, clusters: &Clusters, place: &StoreSettings) -> Vec<Target> {
    let mut targets = Vec::new();
    for (secret, metadata) in listed {
        let copy = store::copy(place, &secret);
        let Metadata { labels, annotations, etag } = metadata.clone();
        let findings = sweep::compare([Listed { copy, labels, annotations, revision: etag }], clusters, &[]);
        let in_use = findings.into_iter().find(|finding| finding.state == State::InUse);
        if let Some(cluster) = in_use.and_then(|finding| finding.cluster) {
            targets.push(Target { cluster, secret, metadata });
        }
    }
    targets
}

fn pace(arguments: &PruneArguments) -> Interval {
    let mut pace = ticks(Duration::from_mins(1) / u32::from(arguments.rate.get()));
    pace.reset_at(Instant::now());
    pace
}

/// The means of a pruning.
struct Pruning<'a> {
    arguments: &'a PruneArguments,
    store: &'a AnyStore,
    budget: &'a Budget,
    pace: Interval,
    counts: Counts,
}

impl Pruning<'_> {
    async fn run(mut self, targets: Vec<Target>) -> anyhow::Result<ExitCode> {
        let all = targets.len();
        self.counts.secrets = all;
        for (index, target) in targets.into_iter().enumerate() {
            let Target { cluster, secret, metadata } = target;
            let outcome = self.one(&secret, metadata).await;
            self.counts.add(&outcome);
            let is_final = matches!(&outcome, Err(refused) if refused.is_final);
            let line = Line::of(cluster, &secret, outcome, self.arguments.yes);
            if line.action != Action::Kept || line.because.is_some() {
                line.print(self.arguments.output)?;
            }
            if self.arguments.yes && (index + 1) % PROGRESS == 0 {
                output::note(format_args!("{} of {all}, at most {} writes a minute", index + 1, self.arguments.rate));
            }
            if is_final {
                output::note(format_args!("stopped at secret {} of {all}; the same command continues", index + 1));
                break;
            }
        }
        self.counts.print(self.arguments)?;
        Ok(if self.counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Prunes one secret, or says what would be destroyed.
    async fn one(&mut self, secret: &SecretId, metadata: Metadata) -> Result<Pruned, Refused> {
        let options = Options { retain: self.arguments.retain_versions, budget: self.budget };
        let surplus = match prune::observe(self.store, secret, &metadata, options).await? {
            Decision::Keep(because) => return Ok(Pruned { versions: BTreeSet::new(), because: Some(because) }),
            Decision::Destroy { surplus, .. } => surplus,
        };
        if !self.arguments.yes || surplus.is_empty() {
            return Ok(Pruned { versions: surplus.iter().map(|number| number.get()).collect(), because: None });
        }
        // The whole wait comes before the first write, so that nothing is decided long before it is done.
        for _write in 0..surplus.len() + RECORD_WRITES {
            let Self { budget, pace, .. } = self;
            let waited = budget.run(pace.tick()).await;
            waited.map_err(|interrupted| Refused { message: interrupted.to_string(), is_final: true })?;
        }
        prune::prune(self.store, secret, metadata, options).await
    }
}

/// Number of secrets after which the progress is printed.
const PROGRESS: usize = 100;

/// The action on a secret's versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Action {
    Destroyed,
    WouldDestroy,
    Kept,
    Failed,
}

/// The result for one secret.
#[derive(Debug, Serialize)]
struct Line {
    cluster: String,
    secret: String,
    action: Action,
    versions: BTreeSet<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

impl Line {
    fn of(cluster: String, secret: &SecretId, outcome: Result<Pruned, Refused>, is_done: bool) -> Self {
        let secret = secret.to_string();
        match outcome {
            Ok(Pruned { versions, because }) => {
                let action = match (versions.is_empty(), is_done) {
                    (true, _) => Action::Kept,
                    (false, true) => Action::Destroyed,
                    (false, false) => Action::WouldDestroy,
                };
                Self { cluster, secret, action, versions, because }
            }
            Err(Refused { message, .. }) => {
                let (action, versions) = (Action::Failed, BTreeSet::new());
                Self { cluster, secret, action, versions, because: Some(message) }
            }
        }
    }

    fn print(&self, format: OutputFormat) -> anyhow::Result<()> {
        let text = match format {
            OutputFormat::Json => serde_json::to_string(self)?,
            OutputFormat::Table => {
                let word = match self.action {
                    Action::Destroyed => "destroyed",
                    Action::WouldDestroy => "would destroy",
                    Action::Kept => "kept",
                    Action::Failed => "failed",
                };
                let versions: Vec<String> = self.versions.iter().map(ToString::to_string).collect();
                let what = self.because.clone().unwrap_or_else(|| format!("versions {}", versions.join(", ")));
                output::plain(&format!("{word:<13}  {}  {}  {what}", self.cluster, self.secret))
            }
        };
        output::print(text + "\n")?;
        Ok(())
    }
}

/// Numbers of secrets and versions.
#[derive(Debug, Default, Serialize)]
struct Counts {
    secrets: usize,
    pruned: usize,
    versions: usize,
    failed: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Result<Pruned, Refused>) {
        match outcome {
            Ok(pruned) => {
                self.pruned += usize::from(!pruned.versions.is_empty());
                self.versions += pruned.versions.len();
            }
            Err(_) => self.failed += 1,
        }
    }

    fn print(&self, arguments: &PruneArguments) -> anyhow::Result<()> {
        let Self { secrets, pruned, versions, failed } = self;
        match arguments.output {
            OutputFormat::Json => {
                output::print(format_args!("{}\n", json!({ "summary": self, "dryRun": !arguments.yes })))?;
            }
            OutputFormat::Table if arguments.yes => output::note(format_args!(
                "{secrets} secrets, {versions} versions of {pruned} destroyed, {failed} failed"
            )),
            OutputFormat::Table => output::note(format_args!(
                "{secrets} secrets, {versions} versions of {pruned} would be destroyed, {failed} failed; nothing was \
                 changed: add --yes"
            )),
        }
        Ok(())
    }
}
