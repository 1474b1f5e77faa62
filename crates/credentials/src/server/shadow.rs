//! Compares the pull secrets of the clusters that leave AMS, so that the time without a difference goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::passes::repeat;
use hyperfleet_client::Client;
use tokio_util::sync::CancellationToken;

use crate::ams::{ImportError, Shadow, Shadowed, shadow, status};
use crate::decide::ams::Phase;
use crate::ledger::{Ledger, PassKind};
use crate::metrics::Metrics;
use crate::publish::ApiPullSecrets;
use crate::run::Sources;
use crate::settings::CheckedAms;

/// Time between two comparisons: a few may fail before [`LONGEST_GAP`](crate::decide::ams::LONGEST_GAP) is over.
const INTERVAL: Duration = Duration::from_hours(6);
/// Time between two attempts of a replica to take the next comparison, and between two counts of the phases.
const ATTEMPTS: Duration = Duration::from_mins(10);

/// The comparisons, of which one replica makes each.
pub(super) struct Shadows<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) client: &'a Client,
    pub(super) ams: &'a CheckedAms,
    pub(super) sources: &'a Sources,
    pub(super) metrics: &'a Metrics,
}

// === impl Shadows ===

impl Shadows<'_> {
    /// Compares until `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        repeat("compare-with-ams", ATTEMPTS, stop, || self.compare_if_due()).await;
    }

    async fn compare_if_due(&self) -> Result<(), ImportError> {
        let (ledger, ams, sources) = (self.ledger, self.ams, self.sources);
        // Before the first import there is nothing to compare with.
        let is_imported = ledger.ams_import().await?.is_some();
        if is_imported && ledger.take_pass(PassKind::Shadow, INTERVAL, sources.now()).await? {
            let secrets = ApiPullSecrets::new(self.client.clone(), ams.search.clone());
            let parts = Shadow { ledger, secrets: &secrets, targets: &ams.targets, sources };
            let Shadowed { clusters, different } = shadow(&parts).await?;
            tracing::info!(operation = "compare-with-ams", clusters, different = different.len(), "compared with AMS");
        }
        let mut phases: BTreeMap<Phase, u64> = BTreeMap::new();
        for cluster in status(ledger, &ams.targets, ams.compare_for, None, sources.now()).await? {
            *phases.entry(cluster.phase).or_default() += 1;
        }
        self.metrics.show_leaving(&phases);
        Ok(())
    }
}
