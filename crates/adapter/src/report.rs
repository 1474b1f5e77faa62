//! Converts a plan into the report for the API.

use hyperfleet_client::{NewCondition, NewReport, ReportMetadata, Resource};
use jiff::Timestamp;
use kubernetes::ObservedJob;

use crate::config::Checked;
use crate::decide::Plan;

/// HyperFleet's maximum length of a message, in bytes.
const MAX_MESSAGE_LENGTH: usize = 2_048;

/// Creates the report about the state that was observed at this time.
pub fn report(config: &Checked, resource: &Resource, plan: &Plan, observed: Timestamp) -> NewReport {
    let conditions = plan.conditions.iter().map(|condition| NewCondition {
        kind: condition.kind.to_owned(),
        status: condition.status,
        reason: Some(condition.reason.clone()),
        message: Some(cut(&condition.message).to_owned()),
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

fn metadata(config: &Checked, job: &ObservedJob) -> ReportMetadata {
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
    text.get(..text.floor_char_boundary(MAX_MESSAGE_LENGTH)).unwrap_or(text)
}
