//! One look at one resource: observe, decide, act, tell.

use std::sync::PoisonError;
use std::time::Duration;

use daemon::retry::{Budget, Transient as _};
use hyperfleet_client::{Calls, Error, Report, Reported, Resource, TraceContext, View, WithPullSecret};
use jiff::Timestamp;
use kubernetes::job::JobEnd;
use kubernetes::{Fault, KubernetesError};
use serde_json::Value;
use tokio::time::Instant;

use super::Office;
use crate::act::{self, Scene, Step};
use crate::decide::{self, Facts, Plan, Purpose};
use crate::manifest::{self, Occasion};
use crate::metrics::Handled;
use crate::observe::{self, Observed};
use crate::reason::Reason;
use crate::report;

/// A look that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) handled: Handled,
    /// When to look again if nothing happens.
    pub(crate) next: Option<Duration>,
}

/// A look that did not.
#[derive(Debug)]
pub(crate) struct Stuck {
    /// Whether another one may.
    pub(crate) is_transient: bool,
    /// Who failed.
    pub(crate) source: &'static str,
    pub(crate) words: String,
    pub(crate) retry_after: Option<Duration>,
}

/// A report that the API has dropped was made by a clock that runs behind another replica's.
const BEHIND: Duration = Duration::from_secs(5);

/// Looks at a resource, does what is due, and tells.
pub(crate) async fn evaluate(office: &Office, id: &str, occasion: &Occasion, budget: &Budget) -> Result<Look, Stuck> {
    let began = office.client.observe();
    let calls = office.client.within(budget).traced(occasion.trace.as_ref());
    let Some(seen) = fetch(office, &calls, id).await? else { return gone(office, id).await };
    let told = told(office, &calls, &seen.resource).await?;
    let resource = seen.resource.clone();
    let (plan, reported) = match observe::observe(&office.config, &office.cluster, told.clone(), seen).await {
        Ok(observed) => {
            let plan = decide_and_act(office, &observed, occasion).await?;
            count_end(office, &observed, &plan);
            take_back(office, &calls, &plan, id).await?;
            (plan, observed.resource)
        }
        Err(error) if matches!(error.fault, Fault::Forbidden | Fault::Unauthenticated | Fault::Invalid) => {
            office.metrics.failed(false, "kubernetes");
            let data = told.as_ref().map(|told| told.data.clone()).unwrap_or_default();
            (Plan::of_failure(&error.to_string(), data, resource.is_deleting()), resource)
        }
        Err(error) => return Err(error.into()),
    };
    office.metrics.decided(plan.reason);
    tell(&plan, id, occasion);
    let report = report::report(&office.config, &reported, &plan, began);
    let answer = calls.report(&office.config.resource_type, id, &report).await;
    let handled = if plan.actions.is_empty() { Handled::Skipped } else { Handled::Success };
    match answer {
        Ok(Reported::Stored(_)) => {
            office.metrics.reported("success");
            Ok(Look { handled, next: plan.next })
        }
        Ok(Reported::Discarded) => {
            office.metrics.reported("discarded");
            let next = says_something_else(told.as_ref(), &plan).then_some(BEHIND);
            Ok(Look { handled, next: plan.next.into_iter().chain(next).min() })
        }
        Ok(Reported::Gone) => {
            office.metrics.reported("gone");
            gone(office, id).await
        }
        Err(error) => {
            office.metrics.reported("error");
            Err(error.into())
        }
    }
}

/// The resource, with its pull secret where the API shows it to us.
async fn fetch(office: &Office, calls: &Calls<'_>, id: &str) -> Result<Option<WithPullSecret>, Error> {
    let plural = &office.config.resource_type;
    let plain = async || {
        let found = calls.get(plural, id).await?;
        Ok(found.map(|resource| WithPullSecret { resource, pull_secret: None }))
    };
    if office.config.input.is_none() {
        return plain().await;
    }
    match calls.get_with_pull_secret(plural, id).await {
        Err(error) if error.status() == Some(403) => plain().await,
        other => other,
    }
}

/// This adapter's last report: as the resource has it, or, where the API has no such view, asked for.
async fn told(office: &Office, calls: &Calls<'_>, resource: &Resource) -> Result<Option<Report>, Error> {
    let name = &office.config.adapter;
    let view = View::of(resource);
    if resource.status.adapters.is_empty() && !resource.status.conditions.is_empty() {
        let all = calls.statuses(&office.config.resource_type, &resource.id).await?;
        return Ok(all.into_iter().find(|item| item.adapter == *name));
    }
    Ok(view.adapter(name).and_then(|report| {
        let mut item = report.clone();
        item.as_object_mut()?.insert("adapter".to_owned(), Value::from(name.as_str()));
        serde_json::from_value(item).ok()
    }))
}

async fn decide_and_act(office: &Office, observed: &Observed, occasion: &Occasion) -> Result<Plan, KubernetesError> {
    let facts = observed.facts(Timestamp::now());
    let mut plan = decide::decide(&office.config, &facts);
    let run = manifest::job_name(&office.config, &facts);
    let project = manifest::project(&office.config, &facts);
    let begins = plan.begins().is_some();
    if let Some(project) = project.as_ref().filter(|_| begins) {
        let mut limits = office.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = limits.begin(project, &run, &observed.resource.id, Instant::now());
        drop(limits);
        if let Err(wait) = begun {
            plan = plan.delayed(project, wait);
        }
    }
    let scene = Scene { config: &office.config, cluster: &office.cluster, observed, occasion };
    let done = perform(office, &scene, plan, &facts).await;
    let has_begun = done.as_ref().is_ok_and(|plan| plan.job.is_some() && begins);
    if let Some(project) = project.filter(|_| begins && !has_begun) {
        office.limits.lock().unwrap_or_else(PoisonError::into_inner).give_back(&project, &run);
    }
    done
}

async fn perform(
    office: &Office,
    scene: &Scene<'_>,
    mut plan: Plan,
    facts: &Facts<'_>,
) -> Result<Plan, KubernetesError> {
    for action in plan.actions.clone() {
        match scene.perform(&action, facts).await? {
            Step::Done => {}
            Step::Begun(job) => {
                office.metrics.created(&facts.resource.id);
                plan.job = Some(*job);
            }
            Step::Wait(wait) => {
                plan.next = Some(wait);
                break;
            }
            Step::Refused(reason, words) => {
                office.metrics.failed(false, "kubernetes");
                return Ok(plan.refused(reason, &words));
            }
        }
    }
    Ok(plan)
}

/// A resource that is not there, any more: what its runs have left goes too.
async fn gone(office: &Office, id: &str) -> Result<Look, Stuck> {
    let had_jobs = act::remove_leftovers(&office.config, &office.cluster, id).await?;
    office.metrics.decided(Reason::ResourceGone);
    tracing::info!(operation = "evaluate", resource_id = id, had_jobs, decision_reason = %Reason::ResourceGone, "the resource is gone");
    Ok(Look { handled: Handled::Skipped, next: None })
}

/// Takes back a run that was begun for a cluster that has been deleted since the look: a replica that knows of the deletion
/// may have removed everything by now.
async fn take_back(office: &Office, calls: &Calls<'_>, plan: &Plan, id: &str) -> Result<(), Stuck> {
    let makes = plan.begins().is_some_and(|begin| begin.purpose == Purpose::Apply);
    let Some(job) = plan.job.as_ref().filter(|_| makes) else { return Ok(()) };
    if calls.get(&office.config.resource_type, id).await?.is_none_or(|now| now.is_deleting()) {
        tracing::info!(
            operation = "evaluate",
            resource_id = id,
            job = job.name,
            "the cluster was deleted meanwhile; its run is taken back"
        );
        office.cluster.delete_job(&office.config.namespace, job).await?;
    }
    Ok(())
}

/// Counts a run's end once, by whoever tells it first.
fn count_end(office: &Office, observed: &Observed, plan: &Plan) {
    let Some(job) = plan.job.as_ref().filter(|job| job.end.is_some()) else { return };
    let counted = office.counted.lock().unwrap_or_else(PoisonError::into_inner).insert(&job.uid);
    if counted {
        let outcome = observed.outcome(&job.uid);
        office.metrics.ended(&observed.resource.id, job.end == Some(JobEnd::Complete), outcome);
    }
}

fn tell(plan: &Plan, id: &str, occasion: &Occasion) {
    let available = plan.finding("Available");
    tracing::info!(
        operation = "evaluate",
        resource_id = id,
        event_id = occasion.event,
        trace_id = occasion.trace.as_ref().map(TraceContext::trace_id),
        decision_reason = %plan.reason,
        available = available.map(|finding| finding.status.as_str()),
        job = plan.job.as_ref().map(|job| job.name.as_str()),
        because = plan.because,
        "looked at a resource"
    );
}

fn says_something_else(told: Option<&Report>, plan: &Plan) -> bool {
    let (Some(told), Some(now)) = (told.and_then(|told| told.condition("Available")), plan.finding("Available")) else {
        return true;
    };
    told.status != now.status || told.reason.as_deref() != Some(&*now.reason)
}

// === impl Stuck ===

impl Stuck {
    /// A defect of ours: the Sentinel tells of the resource again.
    pub(crate) fn broken() -> Self {
        let words = "the adapter has a defect; please report it with the log".to_owned();
        Self { is_transient: false, source: "panic", words, retry_after: None }
    }
}

impl From<Error> for Stuck {
    fn from(error: Error) -> Self {
        Self {
            is_transient: error.transient(),
            source: "hyperfleet_api",
            retry_after: error.retry_after(),
            words: error.to_string(),
        }
    }
}

impl From<KubernetesError> for Stuck {
    fn from(error: KubernetesError) -> Self {
        let may_pass = matches!(
            error.fault,
            Fault::Changed
                | Fault::NotFound
                | Fault::NamespaceMissing
                | Fault::NamespaceTerminating
                | Fault::QuotaExceeded
        );
        Self {
            is_transient: error.is_transient() || may_pass,
            source: "kubernetes",
            retry_after: error.retry_after(),
            words: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use kubernetes::Verb;
    use rstest::rstest;

    use super::*;

    /// HyperFleet's table of errors: what is handed back to be tried again, and what is told and done with.
    #[rstest]
    #[case(Fault::TimedOut, true)]
    #[case(Fault::TooManyRequests, true)]
    #[case(Fault::Unavailable, true)]
    #[case(Fault::Internal, true)]
    #[case(Fault::Changed, true)]
    #[case(Fault::NotFound, true)]
    #[case(Fault::NamespaceMissing, true)]
    #[case(Fault::NamespaceTerminating, true)]
    #[case(Fault::QuotaExceeded, true)]
    #[case(Fault::Unauthenticated, false)]
    #[case(Fault::Forbidden, false)]
    #[case(Fault::Invalid, false)]
    #[case(Fault::AdmissionDenied, false)]
    #[case(Fault::Unusable, false)]
    fn what_may_pass_is_tried_again(#[case] fault: Fault, #[case] is_transient: bool) {
        let stuck = Stuck::from(KubernetesError::new(Verb::Get, "job a/b", fault));
        assert_eq!((stuck.is_transient, stuck.source), (is_transient, "kubernetes"));
    }
}
