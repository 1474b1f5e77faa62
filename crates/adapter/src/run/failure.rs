//! The failure of a reconcile pass, and its report.

use std::time::Duration;

use daemon::retry::{Budget, Transient as _};
use fleet_model::names;
use hyperfleet_client::{Error, Report, Resource};
use kubernetes::{ErrorKind, KubernetesError};

use super::context::Context;
use super::fetch::last_report;
use crate::decide::{Plan, PlannedCondition};
use crate::report;

/// The failure of a reconcile pass.
#[derive(Debug)]
pub(crate) struct ReconcileError {
    /// True if another pass may succeed.
    pub(crate) is_transient: bool,
    /// The component that failed, as logs and metrics name it.
    pub(crate) component: &'static str,
    pub(crate) message: String,
    /// Minimum time until the next pass, if the component asked for one.
    pub(crate) retry_after: Option<Duration>,
}

/// Reports that passes over a resource fail, and why. A failure to report is logged only: the pass is repeated anyway.
pub(crate) async fn report_failure(context: &Context, id: &str, failure: &ReconcileError, budget: &Budget) {
    let observed_at = context.client.observe();
    let calls = context.client.within(budget);
    let reported = async {
        let plural = &context.config.resource_type;
        let Some(resource) = calls.get(plural, id).await? else { return Ok::<_, Error>(()) };
        let resource = calls.with_adapters(plural, resource).await?;
        let last_report = last_report(context, &resource);
        let plan = failing(&resource, last_report.as_ref(), &failure.message);
        let report = report::report(&context.config, &resource, &plan, observed_at);
        calls.report(plural, id, &report).await.map(drop)
    };
    if let Err(error) = reported.await {
        tracing::warn!(operation = "report", resource_id = id, %error, "could not report that passes fail");
    }
}

/// Returns the plan of a resource whose passes fail: `Health` is false; what was reported for this generation stays, as it was
/// not observed to have changed.
fn failing(resource: &Resource, last_report: Option<&Report>, message: &str) -> Plan {
    let data = last_report.map(|report| report.data.clone()).unwrap_or_default();
    let mut plan = Plan::of_failure(message, data, resource.is_deleting());
    let kept =
        last_report.filter(|report| report.observed_generation == resource.generation && !resource.is_deleting());
    for reported in kept.into_iter().flat_map(|report| &report.conditions) {
        let kinds = [names::condition::APPLIED, names::condition::AVAILABLE];
        let Some(kind) = kinds.into_iter().find(|kind| *kind == reported.kind) else { continue };
        plan.conditions.retain(|condition| condition.kind != kind);
        let (reason, message) = (reported.reason.clone(), reported.message.clone());
        let (reason, message) = (reason.unwrap_or_default(), message.unwrap_or_default());
        plan.conditions.push(PlannedCondition { kind, status: reported.status, reason, message });
    }
    plan
}

// === impl ReconcileError ===

impl ReconcileError {
    /// The error of a pass whose copies could not be recorded before its run.
    pub(super) fn not_recorded(retry_after: Duration) -> Self {
        let message = "the API has not stored where the pull secret will be, so no Job was started: another replica has \
            reported meanwhile, or the resource is gone";
        Self {
            is_transient: true,
            component: "hyperfleet_api",
            message: message.to_owned(),
            retry_after: Some(retry_after),
        }
    }

    /// The error of a pass whose resource was deleted before its run was started.
    pub(super) fn deleted_meanwhile() -> Self {
        let message = "the resource was deleted after it was observed, so no Job was started".to_owned();
        Self { is_transient: true, component: "hyperfleet_api", message, retry_after: None }
    }

    /// The error of a pass that has panicked. The pass is repeated with the Sentinel's next event.
    pub(crate) fn panicked() -> Self {
        let message = "the reconcile pass has panicked; report this defect with the log".to_owned();
        Self { is_transient: false, component: "panic", message, retry_after: None }
    }
}

impl From<Error> for ReconcileError {
    fn from(error: Error) -> Self {
        Self {
            is_transient: error.transient(),
            component: "hyperfleet_api",
            retry_after: error.retry_after(),
            message: error.to_string(),
        }
    }
}

impl From<KubernetesError> for ReconcileError {
    fn from(error: KubernetesError) -> Self {
        let may_pass = matches!(
            error.kind,
            ErrorKind::Changed
                | ErrorKind::NotFound
                | ErrorKind::NamespaceMissing
                | ErrorKind::NamespaceTerminating
                | ErrorKind::QuotaExceeded
        );
        Self {
            is_transient: error.is_transient() || may_pass,
            component: "kubernetes",
            retry_after: error.retry_after(),
            message: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hyperfleet_client::Status;
    use kubernetes::Verb;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn failing_passes_change_health_only() {
        let resource: Resource = serde_json::from_value(json!({"id": "cls-1", "generation": 2})).unwrap();
        let report = |generation: i64| -> Report {
            serde_json::from_value(json!({
                "adapter": "pullsecret", "observed_generation": generation, "data": {"secretVersion": 1},
                "conditions": [{"type": "Available", "status": "True", "reason": "SecretStored", "message": "stored"}],
            }))
            .unwrap()
        };
        let statuses = |report: Option<&Report>| {
            let plan = failing(&resource, report, "kubernetes is unavailable");
            let status = |kind: &str| plan.condition(kind).unwrap().status;
            (status("Available"), status("Health"), plan.data.len())
        };
        assert_eq!(statuses(Some(&report(2))), (Status::True, Status::False, 1));
        assert_eq!(statuses(Some(&report(1))), (Status::False, Status::False, 1));
        assert_eq!(statuses(None), (Status::False, Status::False, 0));
    }

    /// HyperFleet's classification: transient errors are nacked for a retry, terminal ones are reported and acked.
    #[rstest]
    #[case(ErrorKind::TimedOut, true)]
    #[case(ErrorKind::TooManyRequests, true)]
    #[case(ErrorKind::Unavailable, true)]
    #[case(ErrorKind::Internal, true)]
    #[case(ErrorKind::Changed, true)]
    #[case(ErrorKind::NotFound, true)]
    #[case(ErrorKind::NamespaceMissing, true)]
    #[case(ErrorKind::NamespaceTerminating, true)]
    #[case(ErrorKind::QuotaExceeded, true)]
    #[case(ErrorKind::Unauthenticated, false)]
    #[case(ErrorKind::Forbidden, false)]
    #[case(ErrorKind::Invalid, false)]
    #[case(ErrorKind::AdmissionDenied, false)]
    #[case(ErrorKind::Unusable, false)]
    fn transient_errors_are_retried(#[case] kind: ErrorKind, #[case] is_transient: bool) {
        let error = ReconcileError::from(KubernetesError::new(Verb::Get, "job a/b", kind));
        assert_eq!((error.is_transient, error.component), (is_transient, "kubernetes"));
    }
}
