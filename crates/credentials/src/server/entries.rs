//! Reads the pull secrets of all clusters, so that the age and the expiry of every entry are known.

use std::collections::BTreeSet;
use std::time::Duration;

use daemon::passes::repeat;
use daemon::retry::Budget;
use hyperfleet_client::{Client, ListQuery, Resource};
use tokio_util::sync::CancellationToken;

use crate::entries::EntryDigests;
use crate::ledger::{LastRead, Ledger, LedgerError, PassKind};
use crate::metrics::Metrics;
use crate::publish::ApiClusters;
use crate::run::{ClusterError, ClusterErrorKind, Sources};

/// Attempts of each replica to take the next pass, in the time between two.
const ATTEMPTS: u32 = 4;
/// Maximum time of the list of all clusters.
const LIST_TIMEOUT: Duration = Duration::from_mins(10);
/// Members of a cluster that a pass reads of all; the pull secret is read where the generation has changed.
const FIELDS: [&str; 6] = ["id", "kind", "name", "generation", "created_time", "deleted_time"];

/// The passes over the pull secrets of all clusters.
pub(super) struct EntryPasses<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) clusters: &'a ApiClusters,
    pub(super) client: &'a Client,
    pub(super) digests: EntryDigests,
    /// Time between two passes, of which one replica makes each.
    pub(super) resync: Duration,
    pub(super) sources: &'a Sources,
    pub(super) metrics: &'a Metrics,
}

/// A pass that was not completed.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Api(#[from] hyperfleet_client::Error),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

// === impl EntryPasses ===

impl EntryPasses<'_> {
    /// Makes passes until `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        repeat("read-entries", self.resync / ATTEMPTS, stop, || self.pass_if_due(stop)).await;
    }

    async fn pass_if_due(&self, stop: &CancellationToken) -> Result<(), PassError> {
        if self.ledger.take_pass(PassKind::Entries, self.resync, self.sources.now()).await? {
            self.pass(stop).await?;
        }
        self.metrics.show_entries(&self.ledger.entry_counts(self.sources.now()).await?, self.sources.now());
        Ok(())
    }

    async fn pass(&self, stop: &CancellationToken) -> Result<(), PassError> {
        let mut last_reads = self.ledger.last_reads(&self.digests).await?;
        let budget = Budget::new(LIST_TIMEOUT, stop.clone());
        let query = ListQuery { fields: FIELDS.map(str::to_owned).to_vec(), ..ListQuery::default() };
        let calls = self.client.within(&budget);
        let (mut pages, mut changed) = (calls.list_all("clusters", query), BTreeSet::new());
        while let Some(clusters) = pages.next().await? {
            for cluster in clusters.into_iter().filter(|cluster| !cluster.is_deleting()) {
                let before = last_reads.remove(&cluster.id).flatten();
                if before.is_none() || before != read_of(&cluster) {
                    changed.insert(cluster.id);
                }
            }
        }
        // The list was complete: these clusters are gone.
        self.ledger.forget_pull_secrets(&last_reads.into_keys().collect::<Vec<_>>()).await?;
        for cluster in changed {
            if stop.is_cancelled() {
                break;
            }
            self.read_entries(&cluster).await?;
        }
        Ok(())
    }

    /// Reads one pull secret; the next pass reads one that is refused again. While the API is not available the pass ends.
    async fn read_entries(&self, cluster: &str) -> Result<(), PassError> {
        match self.clusters.entries(cluster, &self.digests).await {
            Ok(Some(observed)) => Ok(self.ledger.record_pull_secret(&observed, self.sources.now()).await?),
            Ok(None) => Ok(()),
            Err(error) if error.kind == ClusterErrorKind::Transient => Err(error.into()),
            Err(error) => {
                tracing::warn!(operation = "read-entries", cluster, "cannot read a pull secret: {error}");
                Ok(())
            }
        }
    }
}

/// Returns the read that a cluster needs as it is listed.
fn read_of(cluster: &Resource) -> Option<LastRead> {
    let created = cluster.created_time?;
    Some(LastRead { incarnation: created.as_microsecond(), generation: cluster.generation })
}
