//! Counts the end of a Job once, whatever restarts and however many replicas observe it.

use fleet_model::names;
use hyperfleet_client::Report;
use kubernetes::job::JobEnd;
use serde_json::Value;

use crate::decide::Plan;
use crate::observe::Observed;
use crate::outcome::Outcome;

/// The member of a report's data that names the last Job whose end the metrics count.
const COUNTED_JOB: &str = "countedJob";

/// The end of a Job that no stored report names.
pub(super) struct JobEnded {
    pub(super) is_success: bool,
    pub(super) attempt: u32,
    pub(super) outcome: Option<Outcome>,
}

impl JobEnded {
    /// Names the plan's Job in the report if it has ended; returns its end unless the last report names it already.
    pub(super) fn of(plan: &mut Plan, observed: &Observed, last_report: Option<&Report>) -> Option<Self> {
        let job = plan.job.as_ref().filter(|job| job.end.is_some())?;
        let counted = last_report.and_then(|report| report.data.get(COUNTED_JOB)).and_then(Value::as_str);
        let is_counted = counted == Some(&*job.uid);
        let (is_success, outcome) = (job.end == Some(JobEnd::Complete), observed.outcome(&job.uid).cloned());
        plan.data.insert(COUNTED_JOB.to_owned(), Value::from(job.uid.as_str()));
        let attempt = job.annotations.get(names::ANNOTATION_ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(1);
        (!is_counted).then_some(Self { is_success, attempt, outcome })
    }
}
