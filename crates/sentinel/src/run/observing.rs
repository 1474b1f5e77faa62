//! Applies the change stream's events and the pages of sweeps to the fleet.

use hyperfleet_client::{Resource, WatchEvent, WatchKind};
use tokio::time::Instant;

use super::sweep::SweepEvent;
use super::{Leader, now};
use crate::decide::Decision;
use crate::fleet::ObservedBy;
use crate::position::Version;
use crate::publisher::Publisher;
use crate::reason::Reason;

impl<P: Publisher> Leader<'_, P> {
    pub(super) fn on_watch_event(&mut self, event: WatchEvent) {
        let version = event.resource_version.as_deref().and_then(Version::parse);
        if let Some(version) = &version {
            self.succession.tracker.reached(version);
        }
        match (event.kind, event.object) {
            (WatchKind::Added | WatchKind::Modified, Some(resource)) => {
                let is_covered = version.as_ref().is_some_and(|version| self.succession.covers(version));
                let source = if is_covered { ObservedBy::Inherited } else { ObservedBy::Stream };
                if let Some(decision) = self.observe(&resource, source) {
                    self.log_decision(&resource, decision);
                }
                if self.fleet.is_unpublished(&resource.id) {
                    self.succession.tracker.changed(&resource.id, version.as_ref());
                }
            }
            (WatchKind::Deleted, Some(resource)) => {
                self.fleet.remove(&resource.id);
                self.succession.tracker.done(&resource.id);
            }
            (WatchKind::Restarted, _) => {
                self.succession.forget();
                self.fleet.disown();
                // The stream delivers the whole fleet again; a sweep in progress is abandoned.
                self.is_sweeping = false;
                self.is_listing = true;
                self.listing_since = Instant::now();
                self.fleet.begin_round();
            }
            (WatchKind::Bookmark, _) => {
                if self.succession.has_swept {
                    self.succession.inherited = None;
                    self.fleet.end_inheritance();
                }
                let took = self.is_listing.then(|| self.listing_since.elapsed());
                if std::mem::take(&mut self.is_listing) {
                    let removed = self.fleet.end_round(false);
                    tracing::info!(operation = "read", known = self.fleet.len(), removed, "read the whole fleet");
                    self.progress(|progress| progress.is_complete = true);
                }
                self.metrics.synced(took, now());
            }
            (WatchKind::Added | WatchKind::Modified | WatchKind::Deleted, None) => {}
        }
    }

    /// Records an observation of a resource if it belongs to this shard.
    fn observe(&mut self, resource: &Resource, source: ObservedBy) -> Option<Decision> {
        if !self.checked.shard.contains(&resource.id) {
            self.metrics.skipped(Reason::OtherShard);
            return None;
        }
        let observation = self.projector.project(resource);
        let decision = self.fleet.observe(&resource.id, observation, source, self.clock.now())?;
        if !decision.publishes() {
            self.metrics.skipped(decision.reason);
        }
        Some(decision)
    }

    /// Logs the decision about a resource that has changed.
    fn log_decision(&self, resource: &Resource, decision: Decision) {
        let (id, reason) = (resource.id.as_str(), decision.reason.as_str());
        if decision.reason == Reason::PublishWhenNotMet {
            for (adapter, evaluation) in self.projector.evaluations(resource) {
                let because = evaluation.explanation.to_string();
                tracing::info!(
                    operation = "decide",
                    resource_id = id,
                    decision_reason = reason,
                    adapter,
                    because,
                    "no event is published"
                );
            }
        } else if tracing::enabled!(tracing::Level::DEBUG) {
            let now = self.clock.now();
            let because = self
                .fleet
                .inspect(id, now)
                .map(|(decision, facts, last)| decision.explain(&facts, last.as_ref(), self.projector.adapters(), now));
            tracing::debug!(operation = "decide", resource_id = id, decision_reason = reason, because, "decided");
        }
    }

    pub(super) fn on_sweep_event(&mut self, event: SweepEvent) {
        match event {
            SweepEvent::Unreconciled(resources) => {
                for resource in &resources {
                    self.observe(resource, ObservedBy::Page);
                }
            }
            // While the stream delivers the initial state, a sweep finds nothing more.
            SweepEvent::Begin if self.is_listing => {}
            SweepEvent::Begin => {
                self.is_sweeping = true;
                self.fleet.begin_round();
            }
            SweepEvent::Page(resources) if self.is_sweeping => {
                let is_first = self.succession.inherited.is_some();
                let source = if is_first { ObservedBy::Inherited } else { ObservedBy::Page };
                for resource in &resources {
                    self.observe(resource, source);
                }
            }
            SweepEvent::End(took) if self.is_sweeping => {
                self.is_sweeping = false;
                self.succession.has_swept = true;
                let removed = self.fleet.end_round(true);
                let known = self.fleet.len();
                tracing::info!(
                    operation = "sweep",
                    known,
                    removed,
                    seconds = took.as_secs_f64(),
                    "read the whole fleet again"
                );
                self.metrics.synced(Some(took), now());
                self.progress(|progress| {
                    progress.is_complete = true;
                    progress.sweeps = progress.sweeps.wrapping_add(1);
                });
            }
            SweepEvent::Failed(error) => {
                if std::mem::take(&mut self.is_sweeping) {
                    self.fleet.abandon_round();
                }
                tracing::warn!(operation = "sweep", %error, "could not read the whole fleet; the change stream continues");
                self.metrics.api_failed(matches!(error.status(), Some(401 | 403)));
            }
            SweepEvent::Page(_) | SweepEvent::End(_) => {}
        }
    }
}
