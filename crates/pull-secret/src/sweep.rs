//! `pull-secret sweep`: deletes secrets whose cluster is gone.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::output;
use daemon::retry::Budget;
use fleet_model::{Incarnation, StoredCopy, copy, names};
use hyperfleet_client::{Client, ListQuery, Resource};
use jiff::Timestamp;
use kubernetes::{Cluster, SecretKey};
use pull_secret_job::sweep::{self, Clusters, Covered, Finding, Listed, Living, Requested, State, Tombstone};
use secret_store::{AnyStore, Metadata, SecretId, SecretStore as _, StoreSettings};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cli::{OutputFormat, SweepArguments};
use crate::context::Chosen;
use crate::{client, store};

/// Maximum time of the whole sweep.
const TIMEOUT: Duration = Duration::from_hours(1);

/// Maximum time of a call to Kubernetes.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Compares the place's secrets with the API's clusters, and deletes those that are left behind.
pub(crate) fn sweep(arguments: &SweepArguments) -> anyhow::Result<ExitCode> {
    let context = Chosen::of_fleet(&arguments.api)?;
    let client = client::client_in(&arguments.api, &context)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(run(arguments, &client, &context))
}

async fn run(arguments: &SweepArguments, client: &Client, context: &Chosen) -> anyhow::Result<ExitCode> {
    let budget = Budget::new(TIMEOUT, CancellationToken::new());
    let cluster = match &arguments.cluster {
        None => None,
        Some(text) => match client::id_of(&client.within(&budget), text).await {
            // The cluster is mostly gone: what is no cluster's name is an id.
            Ok(found) => Some(found?.unwrap_or_else(|| text.clone())),
            Err(error) => return Ok(client::refused(&error)),
        },
    };
    let places = Places::connect(arguments, context).await?;
    // The secrets first: a cluster that is created meanwhile is in the list of clusters.
    let listed = places.list().await?;
    let (clusters, tombstones) = match known(client, &budget).await {
        Ok(known) => known,
        Err(error) => return Ok(client::refused(&error)),
    };
    let findings = sweep::compare(listed, &clusters, &tombstones);
    let is_asked = |finding: &&Finding| cluster.is_none() || finding.cluster == cluster;
    let requested = Requested { unknown: arguments.unknown || cluster.is_some(), not_listed: arguments.not_listed };
    let findings: Vec<Finding> = findings.iter().filter(is_asked).cloned().collect();
    let left: Vec<&Finding> = findings.iter().filter(|finding| finding.state.is_swept(requested)).collect();
    if left.len() > arguments.max && !arguments.dry_run {
        anyhow::bail!(
            "{} of {} secrets would be deleted, more than --max {}: check that --api names the fleet of these secrets, then \
             raise --max",
            left.len(),
            findings.len(),
            arguments.max
        );
    }
    let mut summary = Summary { listed: findings.len(), left_behind: left.len(), deleted: 0, kept: 0 };
    let mut covered = places.covered(&findings);
    for finding in &findings {
        let is_swept = finding.state.is_swept(requested);
        let action = match (is_swept, arguments.dry_run) {
            (false, _) => Action::None,
            (true, true) => Action::WouldDelete,
            (true, false) => match delete(client, &places, finding, &budget).await {
                Ok(action) => action,
                Err(error) => return Ok(client::refused(&error)),
            },
        };
        summary.count(action);
        if finding.state != State::InUse && action != Action::Deleted {
            covered.left.insert(finding.copy.clone());
        }
        if finding.state != State::InUse {
            print(arguments.output, finding, action)?;
        }
    }
    summary.print(arguments.output)?;
    let asked = |tombstone: &&Tombstone| cluster.as_ref().is_none_or(|id| *id == tombstone.cluster);
    for tombstone in tombstones.iter().filter(asked) {
        name_not_covered(tombstone, &covered);
        let covered = Some(&covered).filter(|_| !arguments.dry_run);
        if let Err(error) = report_swept(client, tombstone, covered, &budget).await {
            return Ok(client::refused(&error));
        }
    }
    Ok(if summary.kept == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the clusters of a search, or all.
pub(crate) async fn clusters(
    client: &Client,
    budget: &Budget,
    search: Option<String>,
) -> Result<Clusters, hyperfleet_client::Error> {
    let fields = ["id", "created_time", "status"].map(str::to_owned).to_vec();
    let calls = client.within(budget);
    let mut pages = calls.list_all("clusters", ListQuery { search, fields, ..ListQuery::default() });
    let mut clusters = Clusters::new();
    while let Some(page) = pages.next().await? {
        let page = calls.all_with_adapters("clusters", page).await?;
        clusters.extend(page.iter().filter_map(|cluster| Some((cluster.id.parse().ok()?, living(cluster)))));
    }
    Ok(clusters)
}

/// Reads the clusters and the tombstones. An API without tombstones has none.
async fn known(client: &Client, budget: &Budget) -> Result<(Clusters, Vec<Tombstone>), hyperfleet_client::Error> {
    // Tombstones first: a cluster that is deleted by force meanwhile is unknown instead of in use.
    let tombstones = match client.within(budget).tombstones("clusters").await {
        Ok(tombstones) => tombstones,
        Err(error) if error.is_absent() || error.status() == Some(403) => {
            output::note(format_args!("warning: no tombstones are read: {error}"));
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    Ok((clusters(client, budget, None).await?, tombstones.into_iter().map(tombstone).collect()))
}

fn tombstone(read: hyperfleet_client::Tombstone) -> Tombstone {
    Tombstone {
        id: read.id,
        cluster: read.resource_id,
        incarnation: read.incarnation.to_string().parse().ok(),
        copies: read.copies.into_iter().filter_map(|copy| serde_json::from_value(copy).ok()).collect(),
        removed: read.removed_time,
    }
}

/// Names the stored copies of a tombstone that this sweep has not looked for: the tombstone stays until another one has.
fn name_not_covered(tombstone: &Tombstone, covered: &Covered) {
    let id = output::plain(&tombstone.cluster);
    let is_stored = |copy: &&StoredCopy| !matches!(copy, StoredCopy::KubernetesSecret { .. });
    for copy in tombstone.copies.iter().filter(is_stored).filter(|copy| !covered.has_place_of(copy)) {
        let copy = output::plain(&copy.to_string());
        output::note(format_args!(
            "warning: cluster {id} was deleted by force, and this sweep did not look for its {copy}: sweep there too"
        ));
    }
}

/// Reports the copies of a tombstone that are gone; without what was covered, none.
async fn report_swept(
    client: &Client,
    tombstone: &Tombstone,
    covered: Option<&Covered>,
    budget: &Budget,
) -> Result<(), hyperfleet_client::Error> {
    let gone = covered.map(|covered| tombstone.gone(covered, Timestamp::now())).unwrap_or_default();
    if gone.is_empty() {
        return Ok(());
    }
    client.within(budget).swept("clusters", &tombstone.id, &gone).await
}

fn incarnation(cluster: &Resource) -> Option<Incarnation> {
    cluster.created_time.and_then(|time| time.to_string().parse().ok())
}

fn living(cluster: &Resource) -> Living {
    let report = cluster.status.adapters.as_ref().and_then(|adapters| adapters.get(names::ADAPTER));
    let listed = report.and_then(|report| report.pointer("/data")?.get(copy::MEMBER)?.as_array());
    // A copy that cannot be read could be the one that is compared.
    let copies =
        listed.and_then(|listed| listed.iter().map(|copy| serde_json::from_value(copy.clone()).ok()).collect());
    Living { incarnation: incarnation(cluster), copies }
}

/// Deletes a secret, if the API still says that it is left behind, and the secret has not changed.
async fn delete(
    client: &Client,
    places: &Places,
    finding: &Finding,
    budget: &Budget,
) -> Result<Action, hyperfleet_client::Error> {
    let id = finding.cluster.as_deref().unwrap_or_default();
    let calls = client.within(budget);
    let current = match calls.get("clusters", id).await? {
        Some(current) => Some(calls.with_adapters("clusters", current).await?),
        None => None,
    };
    let recorded = finding.incarnation.as_deref().and_then(|text| text.parse().ok());
    let state = current.map(|current| living(&current).state(recorded.as_ref(), &finding.copy));
    if state.is_some_and(|state| state != finding.state) {
        return Ok(Action::Kept);
    }
    Ok(places.delete(finding).await.unwrap_or_else(|error| {
        output::note(format_args!("error: {}", output::plain(&format!("{error:#}"))));
        Action::Kept
    }))
}

/// The secrets of one place in the store, and the management cluster's.
struct Places {
    place: StoreSettings,
    store: AnyStore,
    cluster: Option<Cluster>,
}

impl Places {
    async fn connect(arguments: &SweepArguments, context: &Chosen) -> anyhow::Result<Self> {
        let place = store::required(&arguments.store, context)?;
        let store = AnyStore::connect(&place, None).await?;
        // KUBECONFIG does not count: what is deleted must be named, here or in the context.
        let access = context.kubernetes_of_context(arguments.kubeconfig.as_ref());
        let cluster = match access.kubeconfig {
            None => None,
            Some(_) => Some(Cluster::connect(&access.settings(CALL_TIMEOUT)).await?),
        };
        Ok(Self { place, store, cluster })
    }

    /// Returns the scope of the sweep, with no secret left.
    fn covered(&self, findings: &[Finding]) -> Covered {
        let stored = store::place(&self.place);
        let applied = StoredCopy::KubernetesSecret { namespace: String::new(), name: String::new() };
        // A copy at AWS does not name its account: only a secret in use shows that this is the fleet's.
        let is_in_use = |finding: &Finding| finding.state == State::InUse && finding.copy.is_beside(&stored);
        let is_the_fleets = !matches!(self.place, StoreSettings::Aws(_)) || findings.iter().any(is_in_use);
        let places = [(stored, is_the_fleets), (applied, self.cluster.is_some())];
        let places = places.into_iter().filter_map(|(place, is_covered)| is_covered.then_some(place)).collect();
        Covered { places, ..Covered::default() }
    }

    async fn list(&self) -> anyhow::Result<Vec<Listed>> {
        let stored = store::managed(&self.store).await?.into_iter();
        let mut listed: Vec<Listed> = stored.map(|(id, metadata)| self.listed(&id, metadata)).collect();
        let Some(cluster) = &self.cluster else { return Ok(listed) };
        let labels = sweep::LABELS.map(|(name, value)| format!("{name}={value}")).join(",");
        let applied = cluster.secrets_with(&labels).await?.into_iter().filter(|found| {
            // The inputs of runs have these labels too; the adapter deletes them.
            !found.labels.contains_key(names::LABEL_RUN_ADAPTER)
        });
        listed.extend(applied.map(|found| Listed {
            copy: StoredCopy::KubernetesSecret { namespace: found.key.namespace, name: found.key.name },
            labels: found.labels,
            annotations: found.annotations,
            revision: found.uid,
        }));
        Ok(listed)
    }

    fn listed(&self, id: &SecretId, metadata: Metadata) -> Listed {
        let Metadata { labels, annotations, etag: revision } = metadata;
        Listed { copy: store::copy(&self.place, id), labels, annotations, revision }
    }

    async fn delete(&self, finding: &Finding) -> anyhow::Result<Action> {
        match (&finding.copy, &self.cluster) {
            (
                StoredCopy::Secret { name, .. }
                | StoredCopy::VaultSecret { name, .. }
                | StoredCopy::AwsSecret { name, .. }
                | StoredCopy::AzureSecret { name, .. },
                _,
            ) => {
                self.store.delete(&name.parse()?, &finding.revision).await?;
            }
            (StoredCopy::KubernetesSecret { namespace, name }, Some(cluster)) => {
                let key = SecretKey { namespace: namespace.clone(), name: name.clone() };
                match cluster.find_secret(&key).await? {
                    Some(found) if found.uid == finding.revision => {
                        let _is_gone = cluster.delete_secret(&key, &found, false).await?;
                    }
                    Some(_) => return Ok(Action::Kept),
                    None => {}
                }
            }
            (StoredCopy::KubernetesSecret { .. }, None) => return Ok(Action::Kept),
        }
        Ok(Action::Deleted)
    }
}

/// The action on a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    None,
    WouldDelete,
    Deleted,
    /// It should have been deleted, but has changed meanwhile, or its deletion has failed.
    Kept,
}

impl Action {
    fn text(self) -> &'static str {
        match self {
            Self::None => "kept",
            Self::WouldDelete => "would be deleted",
            Self::Deleted => "deleted",
            Self::Kept => "not deleted",
        }
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    listed: usize,
    left_behind: usize,
    deleted: usize,
    #[serde(rename = "notDeleted")]
    kept: usize,
}

impl Summary {
    fn count(&mut self, action: Action) {
        match action {
            Action::Deleted => self.deleted += 1,
            Action::Kept => self.kept += 1,
            Action::None | Action::WouldDelete => {}
        }
    }

    fn print(&self, format: OutputFormat) -> anyhow::Result<()> {
        let text = match format {
            OutputFormat::Json => format!("{}\n", json!({ "summary": self })),
            OutputFormat::Table => format!(
                "{} secrets, {} left behind, {} deleted, {} not deleted\n",
                self.listed, self.left_behind, self.deleted, self.kept
            ),
        };
        output::print(text)?;
        Ok(())
    }
}

fn print(format: OutputFormat, finding: &Finding, action: Action) -> anyhow::Result<()> {
    let text = match format {
        OutputFormat::Json => {
            let mut line = serde_json::to_value(finding)?;
            line.as_object_mut().map(|line| line.insert("action".to_owned(), json!(action.text())));
            format!("{line}\n")
        }
        OutputFormat::Table => {
            let cluster = finding.cluster.as_deref().unwrap_or("-");
            output::plain(&format!("{}  {cluster}  {}  {}", finding.copy, finding.state, action.text())) + "\n"
        }
    };
    output::print(text)?;
    Ok(())
}
