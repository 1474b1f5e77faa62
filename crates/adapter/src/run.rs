//! Runs the adapter's loop: it queues resources upon events, Job events and timers, and reconciles them.

pub(crate) mod context;
pub(crate) mod failure;
pub(crate) mod failures;
mod fetch;
mod job_end;
mod jobs;
pub(crate) mod reconcile;
mod span;
pub(crate) mod trigger;
pub(crate) mod work_queue;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use daemon::retry::Budget;
use daemon::traces;
use futures_util::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use kubernetes::JobWatch;
use message_broker::{Deliveries, Delivery};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::manifest::Trigger;
use crate::metrics::Handled;
use context::Context;
use failure::ReconcileError;
use failures::Retry;
use jobs::{JobUpdate, KnownJobs};
use reconcile::Reconciled;
use work_queue::{WorkItem, WorkQueue};

/// Maximum time of one reconcile pass (HyperFleet's deadline for an event).
const RECONCILE_TIMEOUT: Duration = Duration::from_mins(2);
/// Maximum time that passes in progress get to finish at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);
/// Maximum time until the loop checks its state without an event.
const MAX_IDLE: Duration = Duration::from_secs(5);
/// Time limit for acking or nacking the remaining deliveries at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The loop's state.
pub(crate) struct Run {
    context: Arc<Context>,
    queue: WorkQueue,
    jobs: KnownJobs,
    passes: JoinSet<Finished>,
    leads: watch::Receiver<bool>,
    /// True if this replica led when the loop last checked.
    led: bool,
    /// The resources whose stored pull secret is to be repaired.
    repairs: mpsc::Receiver<String>,
    stop: CancellationToken,
}

/// A pass that is over, with its deliveries acked or nacked.
struct Finished {
    id: String,
    /// The deliveries that are held for the next pass.
    held: Vec<Delivery>,
    /// The event that the pass was attributed to.
    trigger: Trigger,
    requeue_after: Option<Duration>,
}

impl Run {
    pub(crate) fn new(
        context: Arc<Context>,
        leads: watch::Receiver<bool>,
        repairs: mpsc::Receiver<String>,
        stop: CancellationToken,
    ) -> Self {
        let concurrency = usize::from(context.config.given.spec.limits.concurrency);
        Self {
            context,
            queue: WorkQueue::new(concurrency),
            jobs: KnownJobs::default(),
            passes: JoinSet::new(),
            leads,
            led: false,
            repairs,
            stop,
        }
    }

    /// Runs until the stop token is cancelled, then finishes the passes in progress.
    pub(crate) async fn run(mut self, mut deliveries: Deliveries, mut job_events: JobWatch) {
        while !self.stop.is_cancelled() {
            self.start_due_items();
            self.check_leadership();
            let idle = Instant::now() + MAX_IDLE;
            let wake = self.queue.next_timer().map_or(idle, |timer| timer.min(idle));
            tokio::select! {
                () = self.stop.cancelled() => {}
                Some(delivery) = deliveries.next() => self.receive(delivery).await,
                Some(event) = job_events.next() => self.on_job_event(event),
                Some(id) = self.repairs.recv() => self.queue.enqueue(&id, None, Trigger::default()),
                Some(finished) = self.passes.join_next() => self.finish(finished),
                Ok(()) = self.leads.changed() => {}
                () = sleep_until(wake) => {}
            }
            self.context.metrics.show_dead_lettered(deliveries.dead_lettered());
        }
        self.shut_down(deliveries).await;
    }

    /// Finishes the passes in progress. Deliveries that wait in the queue are delivered again, here or to another replica, and have spent
    /// no attempt: restarts during an outage dead-letter nothing.
    async fn shut_down(mut self, deliveries: Deliveries) {
        for delivery in self.queue.clear() {
            log_settlement(delivery.postpone(Duration::ZERO).await);
        }
        let finished = async {
            while let Some(finished) = self.passes.join_next().await {
                for delivery in finished.map(|finished| finished.held).unwrap_or_default() {
                    log_settlement(delivery.postpone(Duration::ZERO).await);
                }
            }
        };
        if tokio::time::timeout(SHUTDOWN_GRACE, finished).await.is_err() {
            tracing::warn!(
                operation = "shutdown",
                unfinished = self.passes.len(),
                "reconcile passes did not finish in time; their events are delivered again"
            );
            self.passes.shutdown().await;
        }
        if let Err(error) = deliveries.drain(DRAIN_TIMEOUT).await {
            tracing::warn!(operation = "shutdown", %error, "not every event could be acked or nacked");
        }
    }

    fn start_due_items(&mut self) {
        self.queue.enqueue_due(Instant::now());
        while let Some(mut item) = self.queue.next() {
            let span = span::begin(&self.context.config.resource_type, &item.id, &mut item.trigger);
            let context = Arc::clone(&self.context);
            // A stop does not interrupt a pass: another replica would repeat what it has done.
            let budget = Budget::new(RECONCILE_TIMEOUT, CancellationToken::new());
            self.passes.spawn(reconcile_item(context, item, budget).instrument(span));
        }
        self.context.metrics.show_in_progress(self.passes.len());
        let drifted = self.context.findings.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.context.metrics.show_store_drifted(drifted);
        let mut limits = self.context.limits.lock().unwrap_or_else(PoisonError::into_inner);
        self.context.metrics.show_quota_used(limits.used(Instant::now()));
    }

    /// Queues the resources of all finished Jobs when this replica begins to lead: their ends may not be reported yet.
    fn check_leadership(&mut self) {
        let leads = *self.leads.borrow_and_update();
        if leads && !self.led {
            for id in self.jobs.ended() {
                self.queue.enqueue(&id, None, Trigger::default());
            }
        }
        if leads != self.led {
            self.context.metrics.show_leading(leads);
            tracing::info!(operation = "lead", leads, "leadership in reporting the ends of Jobs has changed");
        }
        self.led = leads;
    }

    async fn receive(&mut self, delivery: Delivery) {
        let (id, trigger) = match delivery
            .event()
            .map_err(ToString::to_string)
            .and_then(|event| trigger::of(event, &self.context.config.resource_type).map_err(str::to_owned))
        {
            Ok(Some(found)) => found,
            Ok(None) => {
                // The event is about another kind of resource.
                self.context.metrics.event_handled(Handled::Skipped, Duration::ZERO);
                log_settlement(delivery.ack().await);
                return;
            }
            Err(problem) => {
                tracing::warn!(operation = "receive", problem, "malformed message, dead-lettered");
                log_settlement(delivery.reject(&problem).await);
                return;
            }
        };
        tracing::debug!(operation = "receive", resource_id = id, event_id = trigger.event, "received an event");
        self.queue.enqueue(&id, Some(delivery), trigger);
    }

    fn on_job_event(&mut self, event: Result<kubernetes::JobEvent, kubernetes::KubernetesError>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(operation = "watch", %error, "the watch of Jobs has failed; retrying");
                self.context.metrics.failed(true, "kubernetes");
                return;
            }
        };
        let mut limits = self.context.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let JobUpdate { changed, unblocked } = self.jobs.apply(&event, &mut limits, Instant::now());
        drop(limits);
        for id in unblocked {
            self.queue.enqueue(&id, None, Trigger::default());
        }
        if let Some((id, trigger)) = changed.filter(|_| self.led) {
            self.queue.enqueue(&id, None, trigger);
        }
    }

    fn finish(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(Finished { id, held, trigger, requeue_after }) => {
                self.queue.hold(&id, held, trigger);
                self.queue.finish(&id, requeue_after, Instant::now());
            }
            // A panic in a pass is caught within it.
            Err(error) => tracing::error!(operation = "reconcile", %error, "a reconcile pass was lost"),
        }
    }
}

/// Reconciles a resource, and acks or nacks the deliveries of the work item by the result.
async fn reconcile_item(context: Arc<Context>, item: WorkItem, budget: Budget) -> Finished {
    let WorkItem { id, deliveries, trigger } = item;
    let started = Instant::now();
    let result = AssertUnwindSafe(reconcile::reconcile(&context, &id, &trigger, &budget)).catch_unwind().await;
    let took = started.elapsed();
    match result.unwrap_or_else(|_panic| Err(ReconcileError::panicked())) {
        Ok(Reconciled { handled, requeue_after }) => {
            context.failures.lock().unwrap_or_else(PoisonError::into_inner).clear(&id);
            context.metrics.passed(Timestamp::now());
            for delivery in deliveries {
                context.metrics.event_handled(handled, took);
                log_settlement(delivery.ack().await);
            }
            Finished { id, held: Vec::new(), trigger, requeue_after }
        }
        Err(error) => {
            traces::fail(&Span::current(), error.component);
            let failure = context.failures.lock().unwrap_or_else(PoisonError::into_inner).count(&id, Instant::now());
            log_failure(&context, &id, &error, failure.retry);
            if failure.is_reported {
                failure::report_failure(&context, &id, &error, &budget).await;
            }
            if let Retry::Hold(wait) = failure.retry
                && error.is_transient
            {
                let wait = error.retry_after.map_or(wait, |asked| asked.max(wait));
                return Finished { id, held: extended(deliveries).await, trigger, requeue_after: Some(wait) };
            }
            let had_deliveries = !deliveries.is_empty();
            for delivery in deliveries {
                context.metrics.event_handled(Handled::Failed, took);
                nack_or_ack(&context, delivery, &error, failure.retry).await;
            }
            // Without a delivery that comes again, a timer repeats the pass.
            let requeue_after = (error.is_transient && !had_deliveries).then(|| error.retry_after.unwrap_or(MAX_IDLE));
            Finished { id, held: Vec::new(), trigger, requeue_after }
        }
    }
}

/// Renews the leases of deliveries; one whose lease has ended is delivered again.
async fn extended(deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let mut held = Vec::new();
    for delivery in deliveries {
        match delivery.extend().await {
            Ok(()) => held.push(delivery),
            Err(error) => log_settlement(Err(error)),
        }
    }
    held
}

/// Nacks a delivery whose pass may succeed later; acks it otherwise.
async fn nack_or_ack(context: &Context, delivery: Delivery, error: &ReconcileError, retry: Retry) {
    let result = match (error.is_transient, retry, error.retry_after) {
        (false, ..) => delivery.ack().await,
        (true, Retry::Postpone(wait), _) => delivery.postpone(wait).await,
        (true, _, Some(wait)) => {
            context.metrics.nacked();
            delivery.nack_for(wait).await
        }
        (true, _, None) => {
            context.metrics.nacked();
            delivery.nack().await
        }
    };
    log_settlement(result);
}

fn log_failure(context: &Context, id: &str, error: &ReconcileError, retry: Retry) {
    context.metrics.failed(error.is_transient, error.component);
    let (classification, action) = match (error.is_transient, retry) {
        (false, _) => ("terminal", "ack"),
        (true, Retry::Hold(_)) => ("transient", "hold_for_retry"),
        (true, Retry::Postpone(_)) => ("transient", "postpone"),
        (true, Retry::Spend) => ("transient", "nack_for_retry"),
    };
    tracing::warn!(
        operation = "reconcile",
        resource_id = id,
        error_classification = classification,
        error_type = error.component,
        action,
        error = error.message,
        "could not reconcile a resource"
    );
}

fn log_settlement(result: Result<(), message_broker::BrokerError>) {
    if let Err(error) = result {
        tracing::warn!(operation = "settle", %error, "an event could not be acked or nacked; it is delivered again");
    }
}
