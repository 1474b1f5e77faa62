//! Runs the leader's loop: applies the API's change stream to the fleet, and publishes the events that are due.

mod breaker;
mod dry_run;
mod in_flight;
mod observing;
mod succession;
mod sweep;

use std::time::Duration;

use hyperfleet_client::{Client, Health, Watch, WatchQuery};
use jiff::Timestamp;
use message_broker::ErrorKind;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::fleet::Fleet;
use crate::metrics::Metrics;
use crate::moment::Moment;
use crate::observation::Projector;
use crate::position::{Position, Records};
use crate::publisher::Publisher;
use crate::settings::Checked;
use in_flight::{InFlight, PublishResult};
use succession::Succession;
use sweep::Sweeps;

pub use dry_run::{Explained, dry_run};

/// Maximum time that events in flight get at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(6);
/// Maximum time until the loop checks its state without an event.
const MAX_IDLE: Duration = Duration::from_secs(1);

/// The state of a Sentinel, for its readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// True if it leads; a standby is ready as well.
    pub leads: bool,
    /// True once the whole fleet was read.
    pub is_complete: bool,
    /// Number of completed sweeps.
    pub sweeps: u32,
    /// The error of the API, while it cannot be read.
    pub api: Option<String>,
    /// The error of the broker, while it refuses events.
    pub broker: Option<String>,
    /// Number of events that the broker has refused.
    pub failures: u32,
}

/// The state of a leading Sentinel.
pub(crate) struct Leader<'a, P> {
    checked: &'a Checked,
    client: Client,
    projector: Projector,
    metrics: Metrics,
    progress: &'a watch::Sender<Progress>,
    fleet: Fleet,
    in_flight: InFlight<P>,
    /// True while the change stream delivers the initial state.
    is_listing: bool,
    /// Time of its beginning.
    listing_since: Instant,
    /// True while the pages of a sweep are applied.
    is_sweeping: bool,
    succession: Succession,
    clock: Clock,
}

/// A monotonic clock: the time at the beginning of the term plus the time that has passed since. A change of the machine's clock
/// must not extend waits.
#[derive(Clone, Copy, Debug)]
struct Clock {
    started: Moment,
    at: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { started: now(), at: Instant::now() }
    }

    fn now(self) -> Moment {
        self.started.after(self.at.elapsed())
    }
}

impl<'a, P: Publisher> Leader<'a, P> {
    pub(crate) fn new(
        checked: &'a Checked,
        client: Client,
        publisher: P,
        metrics: Metrics,
        progress: &'a watch::Sender<Progress>,
    ) -> Self {
        Self {
            client,
            projector: Projector::new(&checked.publish_when, checked.template.clone()),
            fleet: Fleet::new(checked.policy),
            in_flight: InFlight::new(publisher, checked.settings.publish.concurrency),
            is_listing: true,
            succession: Succession::default(),
            listing_since: Instant::now(),
            is_sweeping: false,
            clock: Clock::start(),
            checked,
            metrics,
            progress,
        }
    }

    /// Goes on from the position of a predecessor, if there is one; returns the positions for a successor.
    pub(crate) fn inherit(&mut self, position: Option<Position>) -> Records {
        if position.is_some() {
            self.is_listing = false;
            self.fleet.begin_inheritance();
        }
        self.succession.begin(position)
    }

    /// Leads until the stop token is cancelled, then waits for the events in flight.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let query = WatchQuery {
            search: self.checked.search.clone(),
            reads_reports: !self.checked.publish_when.is_empty(),
            from_version: self.succession.inherited.as_ref().map(Position::version),
        };
        let mut watch = self.client.watch(self.checked.resource_type.clone(), query, stop.child_token());
        let mut health = watch.health();
        let is_resumed = self.succession.inherited.is_some();
        let mut sweeps =
            Sweeps::begin(self.client.clone(), self.checked, is_resumed, watch.health(), stop.child_token());
        while !stop.is_cancelled() {
            self.publish_due();
            if self.is_current() {
                self.metrics.synced(None, now());
            }
            self.step(&mut watch, &mut health, &mut sweeps, &stop).await;
            self.succession.show();
        }
        let results = self.in_flight.drain(SHUTDOWN_GRACE).await;
        for result in results {
            self.on_published(result);
        }
        self.succession.show();
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
            Some(result) = self.in_flight.next() => self.on_published(result),
            Some(event) = watch.next() => self.on_watch_event(event),
            Ok(()) = health.changed() => {
                let now = health.borrow_and_update().clone();
                self.on_health(&now);
            }
            Some(event) = sweeps.next() => self.on_sweep_event(event),
            () = self.succession.recorded() => {}
            () = sleep_until(wake) => {}
        }
    }

    /// Returns the time of the next iteration if no event arrives.
    fn wake(&self) -> Instant {
        let idle = Instant::now() + MAX_IDLE;
        let Some(due) = self.fleet.next_due() else { return idle };
        if !self.succession.has_room(self.checked.settings.publish.concurrency) {
            return idle;
        }
        // Without a free slot, the next result ends the wait.
        self.in_flight
            .next_slot_at()
            .map_or(idle, |slot| slot.max(Instant::now() + due.since(self.clock.now())).min(idle))
    }

    fn publish_due(&mut self) {
        let limit = self.checked.settings.publish.concurrency;
        while self.in_flight.has_free_slot() && self.succession.has_room(limit) {
            let Some(due) = self.fleet.take(self.clock.now()) else { break };
            let mut event =
                crate::event::event(&due, self.checked.settings.event_type, &self.projector, Timestamp::now());
            let (kind, topic) = (&self.checked.resource_type, self.checked.topic.as_str());
            let span = crate::event::traced(&mut event, &due, kind, topic);
            self.in_flight.publish(due, event, span);
        }
        self.metrics.show_fleet(self.fleet.len(), self.fleet.pending());
    }

    /// Returns true while the fleet is in sync with the API; HyperFleet's alert uses the time of the last sync.
    fn is_current(&self) -> bool {
        let progress = self.progress.borrow();
        progress.is_complete && progress.api.is_none()
    }

    fn on_published(&mut self, published: PublishResult) {
        let PublishResult { due, event_id, result, span } = published;
        let _entered = span.enter();
        let (id, reason) = (&*due.id, due.reason.as_str());
        match result {
            Ok(()) => {
                let generation = i64::from(due.state.generation);
                tracing::info!(
                    operation = "publish",
                    resource_id = id,
                    decision_reason = reason,
                    generation,
                    event_id,
                    topic = self.checked.topic.as_str(),
                    "published an event"
                );
                // A change from before this term is not counted as lag.
                let changed = due.changed.filter(|changed| *changed >= self.clock.started);
                self.metrics.published(due.reason, changed.map(|changed| now().since(changed)));
                self.fleet.published(id, due.state, self.clock.now());
                self.succession.published(id, !self.fleet.is_unpublished(id));
                self.progress(|progress| progress.broker = None);
            }
            Err(error) => {
                daemon::traces::fail(&span, "refused");
                let is_known = self.progress.borrow().broker.as_deref() == Some(&*error.to_string());
                if !error.kind.is_refusal() {
                    tracing::warn!(
                        operation = "publish",
                        resource_id = id,
                        decision_reason = reason,
                        %error,
                        "the broker has refused an event; retrying after a back-off"
                    );
                } else if !is_known {
                    let hint = error.hint();
                    tracing::error!(operation = "publish", %error, hint, "the broker refuses this identity; no event is published");
                }
                self.metrics.refused();
                self.fleet.publish_failed(id, self.clock.now());
                if error.kind == ErrorKind::Incompatible {
                    // No broker accepts it: it must not hold up the position.
                    self.succession.tracker.done(id);
                }
                self.progress(|progress| {
                    progress.broker = Some(error.to_string());
                    progress.failures = progress.failures.wrapping_add(1);
                });
            }
        }
    }

    fn on_health(&self, health: &Health) {
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

/// Returns the time of the machine's clock.
fn now() -> Moment {
    Moment::at(Timestamp::now())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_a_term_is_monotonic() {
        let clock = Clock::start();
        advance(Duration::from_hours(1)).await;
        // The machine's clock has not advanced.
        assert_eq!(clock.now().since(clock.started), Duration::from_hours(1));
    }
}
