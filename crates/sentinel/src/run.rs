//! The loop: what the API tells goes into the fleet, what the fleet says is due goes to the broker.

mod breaker;
mod dry_run;
mod flights;
mod sweep;

use std::time::Duration;

use hyperfleet_client::{Client, Health, Resource, Watch, WatchEvent, WatchKind, WatchQuery};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::decide::Decision;
use crate::fleet::{Fleet, Source};
use crate::metrics::Metrics;
use crate::moment::Moment;
use crate::publisher::Publisher;
use crate::reason::Reason;
use crate::settings::Plan;
use crate::sighting::Lens;
use flights::{Flights, Landing};
use sweep::{Part, Sweeps};

pub use dry_run::{Explained, dry_run};

/// At the end, events that are on the way may take so long.
const FAREWELL: Duration = Duration::from_secs(6);
/// The loop looks up at least this often.
const BREATH: Duration = Duration::from_secs(1);

/// How a Sentinel is doing, for readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether it leads; one that does not is ready to.
    pub leads: bool,
    /// Whether the whole fleet has been read.
    pub is_complete: bool,
    /// How often it was read again.
    pub sweeps: u32,
    /// Why the API cannot be read, if it cannot.
    pub api: Option<String>,
    /// Why the broker takes no events, if it does not.
    pub broker: Option<String>,
    /// How many events the broker did not take.
    pub refusals: u32,
}

/// A Sentinel that leads.
pub(crate) struct Lead<'a, P> {
    plan: &'a Plan,
    client: Client,
    lens: Lens,
    metrics: Metrics,
    progress: &'a watch::Sender<Progress>,
    fleet: Fleet,
    flights: Flights<P>,
    /// Whether the present state is being told from its beginning.
    is_listing: bool,
    /// Since when it is told.
    listing_since: Instant,
    /// Whether a sweep's pages count.
    is_sweeping: bool,
    clock: Clock,
}

/// The time, as it was when the term began, and as it has passed since: what waits must not wait longer because somebody
/// sets the machine's clock back.
#[derive(Clone, Copy, Debug)]
struct Clock {
    began: Moment,
    at: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { began: now(), at: Instant::now() }
    }

    fn now(self) -> Moment {
        self.began.after(self.at.elapsed())
    }
}

impl<'a, P: Publisher> Lead<'a, P> {
    pub(crate) fn new(
        plan: &'a Plan,
        client: Client,
        publisher: P,
        metrics: Metrics,
        progress: &'a watch::Sender<Progress>,
    ) -> Self {
        Self {
            client,
            lens: Lens::new(&plan.publish_when, plan.template.clone()),
            fleet: Fleet::new(plan.policy),
            flights: Flights::new(publisher, plan.settings.publish.concurrency),
            is_listing: true,
            listing_since: Instant::now(),
            is_sweeping: false,
            clock: Clock::start(),
            plan,
            metrics,
            progress,
        }
    }

    /// Leads until told to stop. Events that are on the way then may arrive.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let query = WatchQuery { search: self.plan.search.clone(), from_version: None };
        let mut watch = self.client.watch(self.plan.resource_type.clone(), query, stop.child_token());
        let mut health = watch.health();
        let mut sweeps = Sweeps::begin(self.client.clone(), self.plan, watch.health(), stop.child_token());
        while !stop.is_cancelled() {
            self.publish_what_is_due();
            if self.is_current() {
                self.metrics.swept(None, now());
            }
            self.step(&mut watch, &mut health, &mut sweeps, &stop).await;
        }
        let landed = self.flights.drain(FAREWELL).await;
        for landing in landed {
            self.land(landing);
        }
    }

    async fn step(
        &mut self,
        watch: &mut Watch,
        health: &mut watch::Receiver<Health>,
        sweeps: &mut Sweeps,
        stop: &CancellationToken,
    ) {
        let wake = self.wake();
        tokio::select! {
            () = stop.cancelled() => {}
            Some(landing) = self.flights.next() => self.land(landing),
            Some(event) = watch.next() => self.hear(event),
            Ok(()) = health.changed() => {
                let now = health.borrow_and_update().clone();
                self.show_health(&now);
            }
            Some(part) = sweeps.next() => self.sweep(part),
            () = sleep_until(wake) => {}
        }
    }

    /// When to look up next, if nothing happens.
    fn wake(&self) -> Instant {
        let breath = Instant::now() + BREATH;
        let Some(turn) = self.fleet.next_turn() else { return breath };
        // While nothing more may be sent, a landing wakes us.
        self.flights
            .room_at()
            .map_or(breath, |room| room.max(Instant::now() + turn.since(self.clock.now())).min(breath))
    }

    fn publish_what_is_due(&mut self) {
        while self.flights.have_room() {
            let Some(due) = self.fleet.take(self.clock.now()) else { break };
            let event = crate::event::event(&due, self.plan.settings.event_type, &self.lens, Timestamp::now());
            self.flights.begin(due, event);
        }
        self.metrics.show_fleet(self.fleet.len(), self.fleet.pending());
    }

    /// What the watch tells, or would tell, is all there is: HyperFleet's alert looks at when that was last so.
    fn is_current(&self) -> bool {
        let progress = self.progress.borrow();
        progress.is_complete && progress.api.is_none()
    }

    fn land(&mut self, landing: Landing) {
        let Landing { due, event_id, result } = landing;
        let (id, reason) = (&*due.id, due.reason.as_str());
        match result {
            Ok(()) => {
                let generation = due.state.generation;
                tracing::info!(
                    operation = "publish",
                    resource_id = id,
                    decision_reason = reason,
                    generation,
                    event_id,
                    topic = self.plan.topic.as_str(),
                    "published an event"
                );
                // What changed before the term began is no lag of ours.
                let changed = due.changed.filter(|changed| *changed >= self.clock.began);
                self.metrics.published(due.reason, changed.map(|changed| now().since(changed)));
                self.fleet.told(id, due.state, self.clock.now());
                self.progress(|progress| progress.broker = None);
            }
            Err(error) => {
                tracing::warn!(
                    operation = "publish",
                    resource_id = id,
                    decision_reason = reason,
                    %error,
                    "the broker did not take an event; it is tried again"
                );
                self.metrics.refused();
                self.fleet.refused(id, self.clock.now());
                self.progress(|progress| {
                    progress.broker = Some(error.to_string());
                    progress.refusals = progress.refusals.wrapping_add(1);
                });
            }
        }
    }

    fn hear(&mut self, event: WatchEvent) {
        match (event.kind, event.object) {
            (WatchKind::Added | WatchKind::Modified, Some(resource)) => {
                if let Some(decision) = self.observe(&resource, Source::Stream) {
                    self.tell(&resource, decision);
                }
            }
            (WatchKind::Deleted, Some(resource)) => self.fleet.gone(&resource.id),
            (WatchKind::Restarted, _) => {
                // Everything comes anew; the pages of a sweep would be counted to it.
                self.is_sweeping = false;
                self.is_listing = true;
                self.listing_since = Instant::now();
                self.fleet.begin_round();
            }
            (WatchKind::Bookmark, _) => {
                let took = self.is_listing.then(|| self.listing_since.elapsed());
                if std::mem::take(&mut self.is_listing) {
                    let gone = self.fleet.end_round(false);
                    tracing::info!(operation = "read", known = self.fleet.len(), gone, "the whole fleet is known");
                    self.progress(|progress| progress.is_complete = true);
                }
                self.metrics.swept(took, now());
            }
            (WatchKind::Added | WatchKind::Modified | WatchKind::Deleted, None) => {}
        }
    }

    /// Takes note of a resource, if it is ours.
    fn observe(&mut self, resource: &Resource, source: Source) -> Option<Decision> {
        if !self.plan.shard.has(&resource.id) {
            self.metrics.skipped(Reason::OtherShard);
            return None;
        }
        let sighting = self.lens.see(resource);
        let decision = self.fleet.observe(&resource.id, sighting, source, self.clock.now())?;
        if !decision.publishes() {
            self.metrics.skipped(decision.reason);
        }
        Some(decision)
    }

    /// Says why a resource that has changed gets an event or gets none.
    fn tell(&self, resource: &Resource, decision: Decision) {
        let (id, reason) = (resource.id.as_str(), decision.reason.as_str());
        if decision.reason == Reason::PublishWhenNotMet {
            for (adapter, verdict) in self.lens.verdicts(resource) {
                let because = verdict.explanation.to_string();
                tracing::info!(
                    operation = "decide",
                    resource_id = id,
                    decision_reason = reason,
                    adapter,
                    because,
                    "no event"
                );
            }
        } else if tracing::enabled!(tracing::Level::DEBUG) {
            let now = self.clock.now();
            let because = self
                .fleet
                .look(id, now)
                .map(|(decision, facts, told)| decision.explain(&facts, told.as_ref(), self.lens.adapters(), now));
            tracing::debug!(operation = "decide", resource_id = id, decision_reason = reason, because, "decided");
        }
    }

    fn sweep(&mut self, part: Part) {
        match part {
            // While the present state is told anyway, there is nothing to be found.
            Part::Begin if self.is_listing => {}
            Part::Begin => {
                self.is_sweeping = true;
                self.fleet.begin_round();
            }
            Part::Page(resources) if self.is_sweeping => {
                for resource in &resources {
                    self.observe(resource, Source::Page);
                }
            }
            Part::End(took) if self.is_sweeping => {
                self.is_sweeping = false;
                let gone = self.fleet.end_round(true);
                let known = self.fleet.len();
                tracing::info!(
                    operation = "sweep",
                    known,
                    gone,
                    seconds = took.as_secs_f64(),
                    "read the whole fleet again"
                );
                self.metrics.swept(Some(took), now());
                self.progress(|progress| progress.sweeps = progress.sweeps.wrapping_add(1));
            }
            Part::Failed(error) => {
                if std::mem::take(&mut self.is_sweeping) {
                    self.fleet.abandon_round();
                }
                tracing::warn!(operation = "sweep", %error, "the fleet could not be read again; the stream goes on");
                self.metrics.api_failed(matches!(error.status(), Some(401 | 403)));
            }
            Part::Page(_) | Part::End(_) => {}
        }
    }

    fn show_health(&self, health: &Health) {
        self.metrics.show_streaming(matches!(health, Health::Streaming));
        if let Health::Failing(error) = health {
            self.metrics.api_failed(matches!(error.status(), Some(401 | 403)));
        }
        let problem = match health {
            Health::Connecting | Health::Streaming | Health::Polling => None,
            Health::Failing(error) => Some(error.to_string()),
        };
        self.progress(|progress| progress.api = problem);
    }

    fn progress(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_if_modified(|progress| {
            let before = progress.clone();
            change(progress);
            *progress != before
        });
    }
}

/// The time, at the edge.
fn now() -> Moment {
    Moment::at(Timestamp::now())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_term_has_a_clock_of_its_own() {
        let clock = Clock::start();
        advance(Duration::from_hours(1)).await;
        // The machine's clock has not gone on.
        assert_eq!(clock.now().since(clock.began), Duration::from_hours(1));
    }
}
