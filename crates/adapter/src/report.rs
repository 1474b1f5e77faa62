//! From a plan to what the API is told.

use hyperfleet_client::{NewCondition, NewReport, ReportMetadata, Resource};
use jiff::Timestamp;
use kubernetes::ObservedJob;

use crate::config::Plan as Config;
use crate::decide::Plan;

/// HyperFleet's bound of a message, in bytes.
const LONGEST_MESSAGE: usize = 2_048;

/// The report about what was seen at `observed`.
pub fn report(config: &Config, resource: &Resource, plan: &Plan, observed: Timestamp) -> NewReport {
    let conditions = plan.findings.iter().map(|finding| NewCondition {
        kind: finding.kind.to_owned(),
        status: finding.status,
        reason: Some(finding.reason.clone()),
        message: Some(cut(&finding.message).to_owned()),
        last_transition_time: None,
    });
    NewReport {
        adapter: config.adapter.clone(),
        observed_generation: resource.generation,
        conditions: conditions.collect(),
        data: plan.data.clone(),
        observed_time: Some(observed),
        metadata: plan.job.as_ref().map(|job| metadata(config, job)),
    }
}

fn metadata(config: &Config, job: &ObservedJob) -> ReportMetadata {
    let took = job.created.zip(job.ended).map(|(created, ended)| ended.duration_since(created));
    ReportMetadata {
        job_name: Some(job.name.clone()),
        job_namespace: Some(config.namespace.clone()),
        attempt: job.annotations.get(fleet_model::names::ANNOTATION_ATTEMPT).and_then(|attempt| attempt.parse().ok()),
        started_time: job.created,
        completed_time: job.ended,
        duration: took.map(|took| format!("{}s", took.as_secs().max(0))),
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LONGEST_MESSAGE)).unwrap_or(text)
}
