//! The pool of running probes, and their results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use docker_config::Digest;
use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::finding::{Finding, ProbeRequest, ProbeResult};
use crate::metrics::Metrics;
use crate::probe::Prober;

/// Maximum number of results; beyond it the oldest are dropped and probed again.
const KEPT: usize = 4096;

/// Runs probes. Dropping it cancels those that are running.
pub(super) struct ProbePool {
    prober: Option<Arc<Prober>>,
    results: BTreeMap<Digest, ProbeResult>,
    running: JoinSet<(Digest, Finding)>,
    open: BTreeSet<Digest>,
}

impl ProbePool {
    pub(super) fn new(prober: Option<Prober>) -> Self {
        Self { prober: prober.map(Arc::new), results: BTreeMap::new(), running: JoinSet::new(), open: BTreeSet::new() }
    }

    pub(super) fn results(&self) -> BTreeMap<Digest, ProbeResult> {
        self.results.clone()
    }

    /// Starts the probes that are not running already.
    pub(super) fn start(&mut self, requests: Vec<ProbeRequest>) {
        let Some(prober) = &self.prober else { return };
        for request in requests {
            if self.open.insert(request.digest) {
                let prober = Arc::clone(prober);
                self.running.spawn(async move { (request.digest, prober.probe(&request).await) });
            }
        }
    }

    /// Waits for the next result; forever if no probe is running.
    pub(super) async fn wait(&mut self, metrics: &Metrics) {
        match self.running.join_next().await {
            Some(Ok((digest, finding))) => {
                self.open.remove(&digest);
                metrics.probed(finding.verdict);
                tracing::info!(operation = "probe", verdict = finding.verdict.as_str(), "a registry was probed");
                let result = ProbeResult::of(finding, self.results.get(&digest), Timestamp::now());
                self.results.insert(digest, result);
                self.forget();
            }
            // The probe that was aborted is started again.
            Some(Err(_aborted)) => self.open.clear(),
            None => std::future::pending().await,
        }
    }

    fn forget(&mut self) {
        while self.results.len() > KEPT {
            let oldest = self.results.iter().min_by_key(|(_, result)| result.at).map(|(digest, _)| *digest);
            drop(oldest.and_then(|digest| self.results.remove(&digest)));
        }
    }
}
