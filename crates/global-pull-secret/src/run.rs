//! The loop: watch, decide, act, tell; for ever, through every outage.

mod act;
mod desk;
mod views;

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::backoff::Backoff;
use jiff::Timestamp;
use kubernetes::Cluster;
use kubernetes::event::Severity;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::decide::{Policy, decide};
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::probe::Asker;
use crate::reason::Reason;
use crate::status::Condition;

use act::Hand;
use desk::Desk;
pub use views::{Follow, Views};

/// Back-off of a reconcile pass whose writes fail.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_mins(1)).with_factor(4);
/// Changes that come together are decided about together.
const GATHER: Duration = Duration::from_millis(20);
/// Looked at so often though nothing has changed, for what nobody has told.
const RESYNC: Duration = Duration::from_mins(10);

/// How the controller is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// How many decisions there were.
    pub rounds: u64,
    /// What was decided last.
    pub conditions: Vec<Condition>,
    /// Whether all was read.
    pub is_complete: bool,
    /// What does not work at present.
    pub trouble: Option<String>,
}

/// The controller.
#[derive(Debug)]
pub struct Controller {
    /// The hosted cluster.
    pub hosted: Cluster,
    /// The rules.
    pub policy: Policy,
    /// Asks registries about new credentials; `None` where nobody is asked.
    pub asker: Option<Asker>,
    /// What is counted.
    pub metrics: Metrics,
    /// How it is doing.
    pub progress: watch::Sender<Progress>,
}

impl Controller {
    /// Looks after the hosted cluster until `stop`. No outage ends it; what is being done when `stop` comes is left where
    /// it is, for every step may be the last one.
    pub async fn run(mut self, views: Views, follow: Follow<'_>, stop: CancellationToken) {
        let asker = self.asker.take();
        tokio::select! {
            () = stop.cancelled() => {}
            () = follow.run(&views) => {}
            () = self.work(asker, &views) => {}
        }
    }

    async fn work(&self, asker: Option<Asker>, views: &Views) {
        let changed = views.changed();
        let mut hand = Hand::new(&self.hosted);
        let mut desk = Desk::new(asker);
        let mut failures = 0_u32;
        let mut refused = None;
        loop {
            views.wait_until_complete(&self.progress).await;
            let facts = Facts { refused: refused.take(), answers: desk.answers(), ..views.facts(hand.written()) };
            let began = Instant::now();
            let mut plan = decide(&facts, &self.policy, Timestamp::now());
            self.metrics.decided(&plan);
            desk.ask(std::mem::take(&mut plan.ask));
            let acted = hand.act(std::mem::take(&mut plan.actions), views, &self.metrics).await;
            if acted.is_told && !acted.is_overtaken {
                self.tell(&plan, &facts).await;
            }
            if acted.refused.is_none() && !acted.is_overtaken {
                failures = 0;
                if acted.changed {
                    self.metrics.reconciled(began.elapsed());
                }
            }
            let next = plan.next;
            refused = acted.refused;
            let trouble = refused.clone().or_else(|| views.trouble());
            self.show(plan, trouble.clone());
            let is_again = refused.is_some() || acted.is_overtaken;
            if is_again {
                // Changes that this controller has written itself must not cut the back-off short.
                failures = failures.saturating_add(1);
                sleep(RETRY.nominal(failures)).await;
                continue;
            }
            tokio::select! {
                () = changed.notified() => sleep(GATHER).await,
                () = desk.wait(&self.metrics) => {}
                () = sleep(RESYNC) => {}
                () = until(next) => {}
            }
        }
    }

    async fn tell(&self, plan: &Plan, facts: &Facts) {
        for news in &plan.news {
            let severity = if news.reason.is_warning() { Severity::Warning } else { Severity::Normal };
            let (reason, secret) = (news.reason, &news.about);
            if severity == Severity::Warning {
                tracing::warn!(operation = "tell", secret, reason = reason.as_str(), "{}", news.note);
            } else {
                tracing::info!(operation = "tell", secret, reason = reason.as_str(), "{}", news.note);
            }
            self.metrics.emitted(reason);
            if let Err(error) = act::publish(&self.hosted, news, facts).await {
                tracing::warn!(operation = "publish_event", reason = reason.as_str(), "{error}");
            }
        }
        for decision in plan.because.iter().filter(|_| !plan.news.is_empty()) {
            tracing::debug!(operation = "merge", registry = decision.registry, "{decision}");
        }
    }

    fn show(&self, plan: Plan, trouble: Option<String>) {
        self.metrics.set_degraded(trouble.is_some());
        self.progress.send_modify(|progress| {
            if let Some(words) = trouble.as_ref().filter(|_| progress.trouble != trouble) {
                tracing::warn!(operation = "act", reason = Reason::ServerRefuses.as_str(), "{words}");
            }
            progress.rounds = progress.rounds.saturating_add(1);
            progress.conditions = plan.conditions;
            progress.is_complete = true;
            progress.trouble = trouble;
        });
    }
}

async fn until(next: Option<Timestamp>) {
    match next {
        Some(next) => {
            let wait = Duration::try_from(next.duration_since(Timestamp::now())).unwrap_or_default();
            // Never without a pause, whatever the clock says.
            sleep_until(Instant::now() + wait.max(GATHER)).await;
        }
        None => std::future::pending().await,
    }
}

/// What our writes have made of objects, by kind.
pub(crate) type Writes = BTreeMap<&'static str, crate::facts::Written>;
