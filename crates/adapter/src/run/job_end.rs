//! Counts the end of a Job once, and publishes it as an Event, whatever restarts and however many replicas observe it.

use fleet_model::names;
use hyperfleet_client::Report;
use kubernetes::ObservedJob;
use kubernetes::event::Severity;
use kubernetes::job::JobEnd;
use serde_json::Value;

use super::context::Context;
use crate::decide::{Plan, PlannedCondition};
use crate::metrics::Ended;
use crate::observe::Observed;
use crate::outcome::Outcome;

/// The member of a report's data that names the last Job whose end was counted.
const COUNTED_JOB: &str = "countedJob";

/// The action of the Events.
const ACTION: &str = "RunJob";

/// The end of a Job that no stored report names.
pub(super) struct JobEnded {
    job: ObservedJob,
    outcome: Option<Outcome>,
    /// The condition that is reported for it.
    available: Option<PlannedCondition>,
}

impl JobEnded {
    /// Names the plan's Job in the report if it has ended; returns its end unless the last report names it already.
    pub(super) fn of(plan: &mut Plan, observed: &Observed, last_report: Option<&Report>) -> Option<Self> {
        let job = plan.job.as_ref().filter(|job| job.end.is_some())?;
        let counted = last_report.and_then(|report| report.data.get(COUNTED_JOB)).and_then(Value::as_str);
        let is_counted = counted == Some(&*job.uid);
        let (job, outcome) = (job.clone(), observed.outcome(&job.uid).cloned());
        let available = plan.condition(names::condition::AVAILABLE).cloned();
        plan.data.insert(COUNTED_JOB.to_owned(), Value::from(job.uid.as_str()));
        (!is_counted).then_some(Self { job, outcome, available })
    }

    /// Counts it in the metrics, and publishes an Event about the Job with the reported reason and message. The Event is for
    /// people: a failure to publish it is logged and changes nothing.
    pub(super) async fn publish(&self, context: &Context, id: &str) {
        let attempt = self.job.annotations.get(names::ANNOTATION_ATTEMPT).and_then(|text| text.parse().ok());
        let is_success = self.job.end == Some(JobEnd::Complete);
        let (attempt, outcome) = (attempt.unwrap_or(1), self.outcome.as_ref());
        context.metrics.ended(&Ended { cluster: id, is_success, attempt, outcome });
        let Some(available) = &self.available else { return };
        let severity = if is_success { Severity::Normal } else { Severity::Warning };
        let about = self.job.reference(&context.config.namespace);
        let events = context.cluster.events(&context.config.name);
        if let Err(error) = events.publish_once(&about, severity, ACTION, &available.reason, &available.message).await {
            tracing::warn!(operation = "publish_event", resource_id = id, job = self.job.name, %error, "no Event about the Job");
        }
    }
}
