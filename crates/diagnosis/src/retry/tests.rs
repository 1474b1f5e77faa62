//! Clusters that are retried, and clusters that are refused.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A cluster at generation 2.
fn cluster(deleted: bool) -> Resource {
    let mut cluster = json!({"id": "cls-1", "name": "prod", "generation": 2});
    if deleted {
        cluster["deleted_time"] = json!("2026-01-01T00:00:00Z");
    }
    serde_json::from_value(cluster).unwrap()
}

fn report(generation: i64, status: &str, reason: &str) -> Option<Report> {
    let available = json!({"type": "Available", "status": status, "reason": reason, "message": "first\nsecond"});
    let report = json!({"adapter": "pullsecret", "observed_generation": generation, "conditions": [available]});
    serde_json::from_value(report).ok()
}

fn job(generation: i64, end: Option<JobEnd>) -> ObservedJob {
    ObservedJob {
        name: format!("run-{generation}"),
        uid: "u".to_owned(),
        labels: [(names::LABEL_RUN_GENERATION.to_owned(), generation.to_string())].into(),
        annotations: std::collections::BTreeMap::new(),
        created: "2026-01-01T00:00:00Z".parse().ok(),
        end,
        ended: None,
        active: 0,
        failed: 0,
        is_terminating: false,
    }
}

fn failed(generation: i64) -> ObservedJob {
    let end = JobEnd::Failed { reason: "BackoffLimitExceeded".to_owned(), message: "too many".to_owned() };
    job(generation, Some(end))
}

#[rstest]
#[case::failed(report(2, "False", "PermissionDenied"), vec![failed(2)], "retry run-2: PermissionDenied: first")]
#[case::not_reported_yet(report(1, "True", "SecretStored"), vec![failed(2)], "retry run-2: BackoffLimitExceeded: too many")]
#[case::among_older(report(2, "False", "JobFailed"), vec![failed(1), failed(2)], "retry run-2: JobFailed: first")]
#[case::drifted(report(2, "False", "Drifted"), vec![job(2, Some(JobEnd::Complete))], "retry run-2: Drifted: first")]
#[case::running(report(2, "False", "WorkloadInProgress"), vec![job(2, None)], "Job run-2 is running")]
#[case::terminating(
    report(2, "False", "JobFailed"),
    vec![ObservedJob { is_terminating: true, ..failed(2) }],
    "Job run-2 is being deleted already"
)]
#[case::only_an_older_job(report(2, "False", "PreconditionsNotMet"), vec![failed(1)], "it has no failed Job: PreconditionsNotMet: first")]
#[case::available(report(2, "True", "SecretStored"), vec![job(2, Some(JobEnd::Complete))], "it is available: nothing has failed")]
#[case::without_a_job(report(2, "False", "PreconditionsNotMet"), vec![], "it has no failed Job: PreconditionsNotMet: first")]
#[case::without_a_report(None, vec![], "it has no failed Job, and the adapter has not reported on generation 2")]
fn only_what_has_failed_is_retried(
    #[case] report: Option<Report>,
    #[case] jobs: Vec<ObservedJob>,
    #[case] expected: &str,
) {
    let decision = match decide(&cluster(false), report.as_ref(), &jobs) {
        Decision::Retry { job, because } => format!("retry {}: {because}", job.name),
        Decision::Refuse(why) => why,
    };
    assert!(decision.starts_with(expected), "{decision}");
}

#[test]
fn a_clean_up_that_has_failed_is_retried() {
    let failed = failed(2);
    let decision =
        decide(&cluster(true), report(2, "False", "PermissionDenied").as_ref(), std::slice::from_ref(&failed));
    assert_eq!(decision, Decision::Retry { job: Box::new(failed), because: "PermissionDenied: first".to_owned() });
}

#[test]
fn an_outcome_is_one_object() {
    let outcome = Outcome::of(&cluster(false), ResultKind::WouldRetry, Some("run-2".to_owned()), "x".to_owned());
    let expected: Value =
        json!({"cluster": "cls-1", "name": "prod", "result": "would_retry", "job": "run-2", "because": "x"});
    assert_eq!(serde_json::to_value(outcome).unwrap(), expected);
}
