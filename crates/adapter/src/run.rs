//! The loop: what wakes the adapter up, and one look at a resource at a time.

pub(crate) mod desk;
pub(crate) mod evaluate;
mod jobs;
pub(crate) mod occasion;

use std::collections::{BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use daemon::retry::Budget;
use futures_util::{FutureExt as _, StreamExt as _};
use hyperfleet_client::Client;
use kubernetes::Cluster;
use kubernetes::JobWatch;
use message_broker::{Deliveries, Delivery};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::config::Plan as Config;
use crate::limits::Limits;
use crate::manifest::Occasion;
use crate::metrics::{Handled, Metrics};
use desk::{Desk, Errand};
use evaluate::{Look, Stuck};
use jobs::KnownJobs;

/// One look at a resource, whatever it takes, ends after this time (HyperFleet's deadline of an event).
const PATIENCE: Duration = Duration::from_mins(2);
/// At the end, looks that have begun may take so long.
const FAREWELL: Duration = Duration::from_secs(20);
/// The loop looks up at least this often.
const BREATH: Duration = Duration::from_secs(5);

/// What all looks share.
#[derive(Debug)]
pub(crate) struct Office {
    pub(crate) config: Config,
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Mutex<Limits>,
    pub(crate) counted: Mutex<Counted>,
}

/// The Jobs whose ends were counted lately, by their uids.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    known: BTreeSet<String>,
    order: VecDeque<String>,
}

/// So many are remembered; Jobs are kept for a while and then removed.
const MOST_COUNTED: usize = 100_000;

impl Counted {
    /// Whether it is the first time.
    pub(crate) fn insert(&mut self, uid: &str) -> bool {
        let is_first = self.known.insert(uid.to_owned());
        if is_first {
            self.order.push_back(uid.to_owned());
        }
        if self.order.len() > MOST_COUNTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        is_first
    }
}

/// The loop's state.
pub(crate) struct Run {
    office: Arc<Office>,
    desk: Desk,
    jobs: KnownJobs,
    looks: JoinSet<Finished>,
    leads: watch::Receiver<bool>,
    /// Whether it led when it last looked.
    led: bool,
    stop: CancellationToken,
}

/// A look that is over, its deliveries settled.
struct Finished {
    id: String,
    next: Option<Duration>,
}

impl Run {
    pub(crate) fn new(office: Arc<Office>, leads: watch::Receiver<bool>, stop: CancellationToken) -> Self {
        let concurrency = usize::from(office.config.config.spec.limits.concurrency);
        Self {
            office,
            desk: Desk::new(concurrency),
            jobs: KnownJobs::default(),
            looks: JoinSet::new(),
            leads,
            led: false,
            stop,
        }
    }

    /// Works until told to stop; what has begun is finished.
    pub(crate) async fn run(mut self, mut deliveries: Deliveries, mut news: JobWatch) {
        while !self.stop.is_cancelled() {
            self.begin_what_is_due();
            self.take_over();
            let wake = self.desk.next_timer().unwrap_or_else(|| Instant::now() + BREATH).min(Instant::now() + BREATH);
            tokio::select! {
                () = self.stop.cancelled() => {}
                Some(delivery) = deliveries.next() => self.receive(delivery).await,
                Some(news) = news.next() => self.hear(news),
                Some(finished) = self.looks.join_next() => self.finish(finished),
                Ok(()) = self.leads.changed() => {}
                () = sleep_until(wake) => {}
            }
        }
        // What was not begun is delivered to another, or to us again.
        self.desk.clear();
        let ended = tokio::time::timeout(FAREWELL, async { while self.looks.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!(
                left = self.looks.len(),
                "looks were not finished in time; their events are delivered again"
            );
            self.looks.shutdown().await;
        }
        if let Err(undrained) = deliveries.drain(Duration::from_secs(5)).await {
            tracing::warn!(%undrained, "not every event could be settled");
        }
    }

    fn begin_what_is_due(&mut self) {
        let now = Instant::now();
        self.desk.ring(now);
        while let Some(errand) = self.desk.next() {
            let office = Arc::clone(&self.office);
            // A stop does not break it off: what it has done would be done again by another replica.
            let budget = Budget::new(PATIENCE, CancellationToken::new());
            self.looks.spawn(look(office, errand, budget));
        }
        self.office.metrics.show_in_progress(self.looks.len());
    }

    /// Whoever begins to lead looks at every Job that is over: its end may not have been told.
    fn take_over(&mut self) {
        let leads = *self.leads.borrow_and_update();
        if leads && !self.led {
            for (id, occasion) in self.jobs.ended() {
                self.desk.ask(&id, None, occasion);
            }
        }
        if leads != self.led {
            self.office.metrics.show_leading(leads);
            tracing::info!(operation = "lead", leads, "this replica's part in reporting the ends of Jobs has changed");
        }
        self.led = leads;
    }

    async fn receive(&mut self, delivery: Delivery) {
        let (id, occasion) = match delivery
            .event()
            .map_err(ToString::to_string)
            .and_then(|event| occasion::of(event, &self.office.config.resource_type).map_err(str::to_owned))
        {
            Ok(Some(found)) => found,
            Ok(None) => {
                // About another kind: nothing to do with us.
                self.office.metrics.settled(Handled::Skipped, Duration::ZERO);
                settle(delivery.ack().await);
                return;
            }
            Err(words) => {
                tracing::warn!(
                    operation = "receive",
                    problem = words,
                    "a message is no event; it goes among the dead letters"
                );
                self.office.metrics.rejected();
                settle(delivery.reject(&words).await);
                return;
            }
        };
        tracing::debug!(operation = "receive", resource_id = id, event_id = occasion.event, "received an event");
        self.desk.ask(&id, Some(delivery), occasion);
    }

    fn hear(&mut self, news: Result<kubernetes::JobEvent, kubernetes::KubernetesError>) {
        let news = match news {
            Ok(news) => news,
            Err(error) => {
                tracing::warn!(operation = "watch", %error, "Jobs cannot be watched for the moment; trying again");
                self.office.metrics.failed(true, "kubernetes");
                return;
            }
        };
        let mut limits = self.office.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Vec::new();
        let changed = self.jobs.hear(&news, (&mut limits, &mut next), Instant::now());
        drop(limits);
        for id in next {
            self.desk.ask(&id, None, Occasion::default());
        }
        if let Some((id, occasion)) = changed.filter(|_| self.led) {
            self.desk.ask(&id, None, occasion);
        }
    }

    fn finish(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(Finished { id, next }) => self.desk.done(&id, next, Instant::now()),
            // Looks do not panic: what they do is caught.
            Err(error) => tracing::error!(operation = "evaluate", %error, "a look at a resource was lost"),
        }
    }
}

/// One look at a resource, and its deliveries settled by how it went.
async fn look(office: Arc<Office>, errand: Errand, budget: Budget) -> Finished {
    let Errand { id, deliveries, occasion } = errand;
    let began = Instant::now();
    let looked = AssertUnwindSafe(evaluate::evaluate(&office, &id, &occasion, &budget)).catch_unwind().await;
    let looked = looked.unwrap_or_else(|_panic| Err(Stuck::broken()));
    let took = began.elapsed();
    match looked {
        Ok(Look { handled, next }) => {
            for delivery in deliveries {
                office.metrics.settled(handled, took);
                settle(delivery.ack().await);
            }
            Finished { id, next }
        }
        Err(Stuck { is_transient, source, words, retry_after }) => {
            office.metrics.failed(is_transient, source);
            let action = if is_transient { "nack_for_retry" } else { "ack" };
            let classification = if is_transient { "transient" } else { "terminal" };
            tracing::warn!(
                operation = "evaluate",
                resource_id = id,
                error_classification = classification,
                error_type = source,
                action,
                error = words,
                "a look at a resource has failed"
            );
            let had_deliveries = !deliveries.is_empty();
            for delivery in deliveries {
                office.metrics.settled(Handled::Failed, took);
                if is_transient {
                    office.metrics.nacked();
                    let handed_back = match retry_after {
                        Some(wait) => delivery.nack_for(wait).await,
                        None => delivery.nack().await,
                    };
                    settle(handed_back);
                } else {
                    settle(delivery.ack().await);
                }
            }
            // The end of a Job is no delivery that would come again.
            let next = (is_transient && !had_deliveries).then(|| retry_after.unwrap_or(BREATH));
            Finished { id, next }
        }
    }
}

fn settle(settled: Result<(), message_broker::BrokerError>) {
    if let Err(error) = settled {
        tracing::warn!(operation = "settle", %error, "an event could not be settled; it is delivered again");
    }
}
