//! The reconcile loop: observe, decide, act, publish; through every outage.

mod act;
mod caches;
mod image_reader;
mod probe_pool;
mod progress;
mod roll_out;

use std::time::Duration;

use daemon::backoff::Backoff;
use jiff::Timestamp;
use kubernetes::Cluster;
use kubernetes::event::Severity;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::decide::decide;
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::probe::Prober;
use crate::reason::Reason;

pub use caches::{Caches, WatchTargets};
use image_reader::ImageReader;
pub use image_reader::read as read_images;
use probe_pool::ProbePool;
pub use progress::Progress;
use roll_out::RollOuts;
pub use roll_out::Source;

/// Back-off of a reconcile pass whose writes fail.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_mins(1)).with_factor(4);
/// Time for which changes are gathered into one reconcile.
const GATHER: Duration = Duration::from_millis(20);
/// Time between reconciles if nothing changes, for events that a watch has missed.
const RESYNC: Duration = Duration::from_mins(10);

/// The controller.
#[derive(Debug)]
pub struct Controller {
    /// The hosted cluster.
    pub hosted: Cluster,
    /// The rules.
    pub policy: Policy,
    /// Probes registries about new credentials; `None` if no registry is probed.
    pub prober: Option<Prober>,
    /// The Secret that the original is copied from, if it is named.
    pub source: Option<Source>,
    /// The metrics.
    pub metrics: Metrics,
    /// The progress.
    pub progress: watch::Sender<Progress>,
}

impl Controller {
    /// Reconciles the hosted cluster until `stop`. No outage ends it; work in progress at `stop` is dropped, since every step may
    /// be the last one.
    pub async fn run(mut self, caches: Caches, targets: WatchTargets<'_>, stop: CancellationToken) {
        let prober = self.prober.take();
        tokio::select! {
            () = stop.cancelled() => {}
            () = targets.run(&caches) => {}
            () = self.work(prober, &caches) => {}
        }
    }

    async fn work(&self, prober: Option<Prober>, caches: &Caches) {
        let changed = caches.changed();
        let mut pool = ProbePool::new(prober);
        let mut images = ImageReader::new(self.hosted.clone());
        let mut failures = 0_u32;
        let mut refused = None;
        let mut roll_outs = RollOuts::new(self.source.clone());
        loop {
            caches.wait_until_synced(&self.progress).await;
            let facts =
                Facts { refused: refused.take(), results: pool.results(), images: images.observed(), ..caches.facts() };
            let began = Instant::now();
            let mut plan = decide(&facts, &self.policy, Timestamp::now());
            self.metrics.decided(&plan);
            roll_outs.follow(&plan, facts.original.as_deref());
            pool.start(std::mem::take(&mut plan.requests));
            images.start(plan.images_for.take());
            let applied = act::act(std::mem::take(&mut plan.actions), &self.hosted, caches, &self.metrics).await;
            if applied.is_status_current && !applied.is_stale {
                self.publish(&plan, &facts).await;
            }
            if applied.refused.is_none() && !applied.is_stale {
                failures = 0;
                if applied.changed {
                    self.metrics.reconciled(began.elapsed());
                }
            }
            let next = plan.next;
            refused = applied.refused;
            let failure = refused.clone().or_else(|| caches.failure());
            self.report(plan, failure.clone());
            let is_again = refused.is_some() || applied.is_stale;
            if is_again {
                // Events of the controller's own writes do not end the delay.
                failures = failures.saturating_add(1);
                sleep(RETRY.nominal(failures)).await;
                continue;
            }
            tokio::select! {
                () = changed.notified() => sleep(GATHER).await,
                () = pool.wait(&self.metrics) => {}
                () = images.wait() => {}
                () = sleep(RESYNC) => {}
                () = until(next) => {}
            }
        }
    }

    async fn publish(&self, plan: &Plan, facts: &Facts) {
        for event in &plan.events {
            let severity = if event.reason.is_warning() { Severity::Warning } else { Severity::Normal };
            let (reason, secret) = (event.reason, &event.about);
            if severity == Severity::Warning {
                tracing::warn!(operation = "publish", secret, reason = reason.as_str(), "{}", event.note);
            } else {
                tracing::info!(operation = "publish", secret, reason = reason.as_str(), "{}", event.note);
            }
            self.metrics.published(reason);
            if let Err(error) = act::publish(&self.hosted, event, facts).await {
                tracing::warn!(operation = "publish_event", reason = reason.as_str(), "{error}");
            }
        }
        for decision in plan.decisions.iter().filter(|_| !plan.events.is_empty()) {
            tracing::debug!(operation = "merge", registry = decision.registry, "{decision}");
        }
    }

    fn report(&self, plan: Plan, failure: Option<String>) {
        self.metrics.set_degraded(failure.is_some());
        self.progress.send_modify(|progress| {
            if let Some(message) = failure.as_ref().filter(|_| progress.failure != failure) {
                tracing::warn!(operation = "act", reason = Reason::ApiServerError.as_str(), "{message}");
            }
            progress.reconciles = progress.reconciles.saturating_add(1);
            progress.conditions = plan.conditions;
            progress.has_synced = true;
            progress.failure = failure;
        });
    }
}

async fn until(next: Option<Timestamp>) {
    match next {
        Some(next) => {
            let wait = Duration::try_from(next.duration_since(Timestamp::now())).unwrap_or_default();
            // Never without a pause, also if the clock jumps.
            sleep_until(Instant::now() + wait.max(GATHER)).await;
        }
        None => std::future::pending().await,
    }
}
