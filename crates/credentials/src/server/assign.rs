//! Gives each cluster that a registry's search finds its first credential.

use std::collections::BTreeSet;
use std::time::Duration;

use daemon::passes::ticks;
use daemon::retry::Budget;
use hyperfleet_client::{Client, Health, ListQuery, Resource, WatchKind, WatchQuery};
use registry_account::contract::Registry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::credential::{ClusterRef, RegistryName};
use crate::metrics::Metrics;
use crate::run::{Clusters, Worker};

/// The plural of clusters in the API's paths.
const CLUSTERS: &str = "clusters";
/// Members of a cluster that the assignment reads.
const FIELDS: [&str; 6] = ["id", "kind", "name", "generation", "created_time", "deleted_time"];
/// Maximum time of a complete list.
const LIST_TIMEOUT: Duration = Duration::from_mins(10);

/// Delay after a list that failed.
const RETRY: Duration = Duration::from_secs(10);

/// The assignment of one registry's credentials.
pub(super) struct Assignment<'a, R, C> {
    pub(super) worker: &'a Worker<R, C>,
    pub(super) registry: &'a RegistryName,
    /// Search that finds the clusters; all without it.
    pub(super) search: Option<String>,
    pub(super) client: &'a Client,
    pub(super) metrics: &'a Metrics,
    /// Interval of complete lists.
    pub(super) resync: Duration,
    /// The failure to read the API; `None` while it is read.
    pub(super) problem: &'a watch::Sender<Option<String>>,
}

// === impl Assignment ===

impl<R: Registry, C: Clusters> Assignment<'_, R, C> {
    /// Assigns until `stop`: from the change stream at once, and from complete lists what was missed.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        let (mut known, mut is_listed) = (BTreeSet::new(), false);
        let query = WatchQuery { search: self.search.clone(), ..WatchQuery::default() };
        let mut changes = self.client.watch(CLUSTERS, query, stop.clone());
        let mut health = changes.health();
        let mut ticks = ticks(self.resync);
        loop {
            tokio::select! {
                event = changes.next() => {
                    let Some(event) = event else { return };
                    let is_there = matches!(event.kind, WatchKind::Added | WatchKind::Modified);
                    if let Some(cluster) = event.object.filter(|_| is_there) {
                        self.assign(&cluster, &mut known).await;
                    }
                }
                Ok(()) = health.changed() => self.show(&health.borrow_and_update(), is_listed),
                _now = ticks.tick() => {
                    is_listed = self.resync(&mut known, stop).await;
                    if !is_listed {
                        ticks.reset_after(RETRY);
                    }
                }
            }
        }
    }

    /// Shows the failure of the change stream. That it works shows nothing, as long as the last complete list has failed.
    fn show(&self, health: &Health, is_listed: bool) {
        let problem = match health {
            Health::Failing(error) => Some(error.to_string()),
            Health::Connecting | Health::Streaming | Health::Polling if is_listed => None,
            Health::Connecting | Health::Streaming | Health::Polling => return,
        };
        self.problem.send_if_modified(|known| {
            let changes = *known != problem;
            *known = problem;
            changes
        });
    }

    /// Assigns to every cluster of a complete list. Returns false if it could not be read.
    async fn resync(&self, known: &mut BTreeSet<ClusterRef>, stop: &CancellationToken) -> bool {
        let budget = Budget::new(LIST_TIMEOUT, stop.clone());
        let fields = FIELDS.map(str::to_owned).to_vec();
        let query = ListQuery { search: self.search.clone(), fields, ..ListQuery::default() };
        let calls = self.client.within(&budget);
        let mut pages = calls.list_all(CLUSTERS, query);
        let mut present = BTreeSet::new();
        loop {
            match pages.next().await {
                Ok(Some(clusters)) => {
                    for cluster in clusters {
                        present.extend(self.assign(&cluster, known).await);
                    }
                }
                Ok(None) => break,
                Err(_stopped) if stop.is_cancelled() => return true,
                Err(error) => {
                    tracing::warn!(operation = "resync", registry = %self.registry, "clusters cannot be listed: {error}");
                    self.problem.send_replace(Some(error.to_string()));
                    return false;
                }
            }
        }
        // What is gone takes no memory.
        *known = present;
        self.problem.send_replace(None);
        self.metrics.resynced(self.registry, self.worker.sources.now());
        true
    }

    /// Assigns to a cluster, unless it is terminating. The next complete list repeats what failed. Returns the cluster, if it
    /// has a credential.
    async fn assign(&self, resource: &Resource, known: &mut BTreeSet<ClusterRef>) -> Option<ClusterRef> {
        let created = resource.created_time.filter(|_| !resource.is_deleting())?;
        let cluster = ClusterRef { id: resource.id.clone(), incarnation: created.as_microsecond() };
        if known.contains(&cluster) {
            return Some(cluster);
        }
        let hosts: Vec<&str> = self.worker.registries.values().map(|served| served.registry.host()).collect();
        match self.worker.ledger.is_of_ams(&cluster, &hosts).await {
            Ok(false) => {}
            // It gets its first one when it leaves AMS.
            Ok(true) => return None,
            Err(error) => {
                tracing::warn!(operation = "assign", registry = %self.registry, %cluster, "{error}; retrying");
                return None;
            }
        }
        match self.worker.assign(self.registry, cluster.clone(), None, &self.worker.name).await {
            Ok(credential) => {
                let credential = credential.id;
                tracing::debug!(operation = "assign", registry = %self.registry, %cluster, %credential, "has a credential");
                known.insert(cluster.clone());
                Some(cluster)
            }
            Err(error) => {
                let registry = self.registry;
                tracing::warn!(operation = "assign", %registry, %cluster, "no credential can be assigned: {error}; retrying");
                None
            }
        }
    }
}
