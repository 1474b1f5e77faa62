//! Reconciles one resource: observes it, decides, acts, and reports.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use daemon::retry::Budget;
use fleet_model::names;
use hyperfleet_client::{Calls, Report, Reported, Resource, TraceContext};
use jiff::Timestamp;
use kubernetes::ErrorKind;
use tokio::time::Instant;

use super::context::Context;
use super::failure::ReconcileError;
use super::failures::Failures;
use super::fetch::{fetch, last_report};
use super::job_end::JobEnded;
use super::span;
use crate::act::{Executor, Leftovers, Step};
use crate::decide::{self, Action, Facts, Plan, Purpose, StartRun};
use crate::limits::Delay;
use crate::manifest::{self, Trigger};
use crate::metrics::Handled;
use crate::observe::{self, JobSource, Observed};
use crate::reason::Reason;
use crate::report;

/// The result of a reconcile pass that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reconciled {
    pub(crate) handled: Handled,
    /// Time until the next pass if no event arrives; `None` if only an event causes one.
    pub(crate) requeue_after: Option<Duration>,
}

/// Reconciles a resource and reports its conditions to the API.
pub(crate) async fn reconcile(
    context: &Context,
    id: &str,
    trigger: &Trigger,
    budget: &Budget,
) -> Result<Reconciled, ReconcileError> {
    let mut observed_at = context.client.observe();
    let calls = context.client.within(budget).traced(trigger.trace.as_ref());
    let Some(fetched) = fetch(context, &calls, id).await? else { return clean_up(context, &calls, id).await };
    let last_report = last_report(context, &fetched.resource);
    let resource = fetched.resource.clone();
    let source = JobSource { cluster: &context.cluster, cache: &context.job_cache };
    let observed = observe::observe(&context.config, source, last_report.clone(), fetched).await;
    let mut ended = None;
    let (plan, reported) = match observed {
        Ok(mut observed) => {
            observed.stored = context.findings.lock().unwrap_or_else(PoisonError::into_inner).get(id);
            let pass = Pass { context, calls: &calls, observed: &observed, trigger };
            let acted = pass.decide_and_act().await?;
            let mut plan = acted.plan;
            observed_at = acted.recorded.unwrap_or(observed_at);
            withdraw_run(context, &calls, &plan, id).await?;
            ended = JobEnded::of(&mut plan, &observed, last_report.as_ref());
            (plan, observed.resource)
        }
        Err(error) if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unauthenticated | ErrorKind::Invalid) => {
            context.metrics.failed(false, "kubernetes");
            let data = last_report.as_ref().map(|report| report.data.clone()).unwrap_or_default();
            (Plan::of_failure(&error.to_string(), data, resource.is_deleting()), resource)
        }
        Err(error) => return Err(error.into()),
    };
    context.metrics.decided(plan.reason);
    log_pass(&plan, &reported, trigger);
    let report = report::report(&context.config, &reported, &plan, observed_at);
    let answer = calls.report(&context.config.resource_type, id, &report).await;
    let handled = if plan.actions.is_empty() { Handled::Skipped } else { Handled::Success };
    match answer {
        Ok(Reported::Stored(_)) => {
            context.metrics.reported("success");
            failures(context).stored(id);
            if let Some(ended) = &ended {
                ended.publish(context, id).await;
            }
            Ok(Reconciled { handled, requeue_after: plan.requeue_after })
        }
        Ok(Reported::Discarded) => {
            context.metrics.reported("discarded");
            let retry = after_discarded(context, id, differs_from_reported(last_report.as_ref(), &plan));
            Ok(Reconciled { handled, requeue_after: plan.requeue_after.into_iter().chain(retry).min() })
        }
        Ok(Reported::Gone) => {
            context.metrics.reported("gone");
            clean_up(context, &calls, id).await
        }
        Err(error) => {
            context.metrics.reported("error");
            Err(error.into())
        }
    }
}

/// One pass over a resource that was observed.
struct Pass<'a> {
    context: &'a Context,
    calls: &'a Calls<'a>,
    observed: &'a Observed,
    trigger: &'a Trigger,
}

/// The plan as it was carried out.
struct Acted {
    plan: Plan,
    /// True if its run has started.
    has_started: bool,
    /// The time of the pass's next report, if it has reported its copies.
    recorded: Option<Timestamp>,
}

impl Pass<'_> {
    async fn decide_and_act(&self) -> Result<Acted, ReconcileError> {
        let context = self.context;
        let limits = || context.limits.lock().unwrap_or_else(PoisonError::into_inner);
        for (job, outcome) in self.observed.outcomes() {
            let spent =
                [(names::ANNOTATION_QUOTA, outcome.spent), (names::ANNOTATION_QUOTA_MIRROR, outcome.mirror_spent)];
            for (name, spent) in spent {
                job.annotations.get(name).inspect(|project| limits().charge(project, &job.name, spent));
            }
        }
        let facts = self.observed.facts(Timestamp::now());
        let plan = decide::decide(&context.config, &facts);
        let Some(run) = plan.starts_run() else { return self.perform(plan, &facts).await };
        let name = manifest::job_name(&context.config, &facts, run);
        let first = manifest::quota(&context.config, &facts, run);
        let projects: Vec<_> = first.into_iter().chain(manifest::mirror_quota(&context.config, &facts, run)).collect();
        let started = limits().try_start(&projects, &name, &self.observed.resource.id, Instant::now());
        if let Err(Delay { project, wait }) = started {
            return self.perform(plan.delayed(&project, wait), &facts).await;
        }
        let acted = self.perform(plan, &facts).await;
        if acted.as_ref().is_ok_and(|acted| acted.has_started) {
            // Whatever a check has found, this run or its retries repair it.
            context.findings.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.observed.resource.id);
        } else {
            for project in &projects {
                limits().release(project, &name);
            }
        }
        acted
    }

    async fn perform(&self, plan: Plan, facts: &Facts<'_>) -> Result<Acted, ReconcileError> {
        let Pass { context, observed, trigger, .. } = *self;
        let executor = Executor { config: &context.config, cluster: &context.cluster, observed, trigger };
        let actions = plan.actions.clone();
        let mut acted = Acted { plan, has_started: false, recorded: None };
        for action in actions {
            if action == Action::RecordCopies {
                acted.recorded = Some(self.record_copies(&acted.plan).await?);
            }
            let step = match &action {
                Action::StartRun(run) => self.start(&executor, run, &action, facts).await?,
                _ => executor.perform(&action, facts).await?,
            };
            match step {
                Step::Done => {}
                Step::Started(job) => {
                    context.metrics.created(&facts.resource.id);
                    context.job_cache.record((*job).clone());
                    acted.has_started = true;
                    if !matches!(&action, Action::StartRun(run) if run.purpose == Purpose::CleanUp) {
                        acted.plan.job = Some(*job);
                    }
                }
                Step::Wait(wait) => {
                    acted.plan.requeue_after = Some(wait);
                    break;
                }
                Step::Refused(reason, message) => {
                    context.metrics.failed(false, "kubernetes");
                    acted.plan = acted.plan.refused(reason, &message);
                    break;
                }
            }
        }
        Ok(acted)
    }

    /// Starts a run. One that applies is started only if the resource was not deleted before its input was there: the clean-up
    /// removes the input first, so that a Job which is created later finds none, and its Pod does not start.
    async fn start(
        &self,
        executor: &Executor<'_>,
        run: &StartRun,
        action: &Action,
        facts: &Facts<'_>,
    ) -> Result<Step, ReconcileError> {
        match executor.prepare(run, facts).await? {
            Step::Done => {}
            other => return Ok(other),
        }
        let Pass { context, observed, calls, .. } = *self;
        let resource = &observed.resource;
        if run.purpose == Purpose::Apply {
            let now = calls.get(&context.config.resource_type, &resource.id).await?;
            if now.is_none_or(|now| now.is_deleting() || now.created_time != resource.created_time) {
                return Err(ReconcileError::deleted_meanwhile());
            }
        }
        Ok(executor.perform(action, facts).await?)
    }

    /// Reports the copies that the plan's run writes. Nothing is written unless the API has stored the report: a copy that is not
    /// recorded would not be deleted with the resource.
    ///
    /// Returns the time of the pass's next report, as one of an equal time is discarded. It precedes the run: another replica that
    /// sees the run's end observes later, and its report stays, even if this one arrives after it.
    async fn record_copies(&self, plan: &Plan) -> Result<Timestamp, ReconcileError> {
        let Pass { context, observed, calls, .. } = *self;
        let announced = plan.announced();
        let (recorded_at, next) = (context.client.observe(), context.client.observe());
        let report = report::report(&context.config, &observed.resource, &announced, recorded_at);
        match calls.report(&context.config.resource_type, &observed.resource.id, &report).await? {
            Reported::Stored(_) => Ok(next),
            Reported::Discarded | Reported::Gone => {
                Err(ReconcileError::not_recorded(failures(context).discarded(&observed.resource.id)))
            }
        }
    }
}

/// Returns the time until a discarded report is repeated; `None` if the API knows its content.
fn after_discarded(context: &Context, id: &str, differs: bool) -> Option<Duration> {
    let mut failures = failures(context);
    if differs {
        return Some(failures.discarded(id));
    }
    failures.stored(id);
    None
}

fn failures(context: &Context) -> MutexGuard<'_, Failures> {
    context.failures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is left of the runs of a resource that the API does not have.
async fn clean_up(context: &Context, calls: &Calls<'_>, id: &str) -> Result<Reconciled, ReconcileError> {
    let (config, cluster) = (&context.config, &context.cluster);
    let leftovers = Leftovers::find(config, cluster, id).await?;
    if !leftovers.is_empty() {
        // A resource that was created since with this id may have them.
        if calls.get(&config.resource_type, id).await?.is_some() {
            return Ok(Reconciled { handled: Handled::Skipped, requeue_after: Some(Duration::ZERO) });
        }
        leftovers.remove(config, cluster, id).await?;
    }
    failures(context).stored(id);
    context.metrics.decided(Reason::ResourceGone);
    tracing::info!(
        operation = "reconcile",
        resource_id = id,
        had_leftovers = !leftovers.is_empty(),
        decision_reason = %Reason::ResourceGone,
        "the API does not have the resource; what was left of its runs is removed"
    );
    Ok(Reconciled { handled: Handled::Skipped, requeue_after: None })
}

/// Deletes the Job that was just created if the resource was deleted since it was observed: another replica may have
/// finished the clean-up meanwhile.
async fn withdraw_run(context: &Context, calls: &Calls<'_>, plan: &Plan, id: &str) -> Result<(), ReconcileError> {
    let is_apply = plan.starts_run().is_some_and(|begin| begin.purpose == Purpose::Apply);
    let Some(job) = plan.job.as_ref().filter(|_| is_apply) else { return Ok(()) };
    if calls.get(&context.config.resource_type, id).await?.is_none_or(|now| now.is_deleting()) {
        tracing::info!(
            operation = "reconcile",
            resource_id = id,
            job = job.name,
            "the resource was deleted meanwhile; its new Job is deleted"
        );
        context.cluster.delete_job(&context.config.namespace, job).await?;
    }
    Ok(())
}

fn log_pass(plan: &Plan, resource: &Resource, trigger: &Trigger) {
    span::decided(plan, resource);
    let available = plan.condition(names::condition::AVAILABLE);
    tracing::info!(
        operation = "reconcile",
        resource_id = resource.id,
        event_id = trigger.event,
        trace_id = trigger.trace.as_ref().map(TraceContext::trace_id),
        decision_reason = %plan.reason,
        available = available.map(|condition| condition.status.as_str()),
        job = plan.job.as_ref().map(|job| job.name.as_str()),
        because = plan.because,
        "reconciled"
    );
}

/// Returns true if the plan's `Available` condition is not the one that was last reported.
fn differs_from_reported(last_report: Option<&Report>, plan: &Plan) -> bool {
    let reported = last_report.and_then(|report| report.condition(names::condition::AVAILABLE));
    let (Some(reported), Some(planned)) = (reported, plan.condition(names::condition::AVAILABLE)) else { return true };
    reported.status != planned.status || reported.reason.as_deref() != Some(&*planned.reason)
}
