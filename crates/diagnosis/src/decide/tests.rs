//! The verdict about a cluster in each state, as a table.

mod next;
mod overdue;
mod parity;

use std::collections::BTreeMap;

use fleet_model::job::Reason;
use hyperfleet_client::Status;
use kubernetes::SecretMetadata;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::facts::State;

/// The times of the cluster's creation, of the report, and of the observation.
const CREATED: &str = "2026-01-01T00:00:00Z";
const REPORTED: &str = "2026-01-01T00:10:00Z";
const NOW: &str = "2026-01-01T00:20:00Z";

const READY: &str = r#"status.adapters[dns].available == "True""#;

fn facts(dns: &str, report: Value) -> Facts {
    let cluster = json!({
        "id": "cls-1", "generation": 2, "created_time": CREATED, "spec": {"pullSecret": {"data": {"redacted": true, "digest": "hmac-sha256:a"}}},
        "status": {"adapters": {"dns": {"available": dns, "observed_generation": 2}}},
    });
    Facts {
        id: "cls-1".to_owned(),
        preconditions: vec![READY.to_owned()],
        unmet: if dns == "True" { Vec::new() } else { vec![format!("waiting for dns: it says {dns}")] },
        cluster: serde_json::from_value(cluster).unwrap(),
        report: serde_json::from_value(report).unwrap(),
        now: NOW.parse().unwrap(),
        stale_after: jiff::SignedDuration::from_secs(30),
        ..Facts::default()
    }
}

fn report(generation: i64, available: &str, reason: &str, message: &str) -> Value {
    json!({
        "adapter": "pullsecret", "observed_generation": generation, "last_report_time": REPORTED,
        "conditions": [{"type": "Available", "status": available, "reason": reason, "message": message}],
        "data": {"digest": "hmac-sha256:a", "secretVersion": 3},
    })
}

#[rstest]
#[case::waiting(
    "False",
    report(2, "False", "PreconditionsNotMet", "x"),
    State::Waiting,
    "waiting for dns: it says False"
)]
#[case::waiting_unreported("Unknown", Value::Null, State::Waiting, "waiting for dns: it says Unknown")]
#[case::no_report(
    "True",
    Value::Null,
    State::Stalled,
    "all preconditions of generation 2 are met, but the adapter has never reported about this cluster, 20 min after"
)]
#[case::quota("True", report(2, "False", "WaitingForQuota", "later"), State::Waiting, "WaitingForQuota: later")]
#[case::behind(
    "True",
    report(1, "True", "SecretStored", ""),
    State::Stalled,
    "all preconditions of generation 2 are met, but the adapter has not reported for 10 min"
)]
#[case::running("True", report(2, "False", "WorkloadInProgress", "runs"), State::Running, "WorkloadInProgress: runs")]
#[case::failed("True", report(2, "False", "PermissionDenied", "no"), State::Failed, "PermissionDenied: no")]
#[case::crashed("True", report(2, "False", "JobFailed", "crash"), State::Failed, "JobFailed: crash")]
#[case::available("True", report(2, "True", "SecretStored", "v3"), State::Available, "SecretStored: v3")]
// A pull secret that is available stays so, whatever dns reports later.
#[case::available_still("False", report(2, "True", "SecretStored", "v3"), State::Available, "SecretStored: v3")]
fn a_state_follows_from_cluster_and_report(
    #[case] dns: &str,
    #[case] report: Value,
    #[case] state: State,
    #[case] because: &str,
) {
    let verdict = page(&facts(dns, report)).verdict;
    assert_eq!((verdict.state, verdict.agrees), (state, state == State::Available));
    assert!(verdict.because.iter().any(|line| line.contains(because)), "{verdict:?}");
}

#[test]
fn a_failure_names_the_next_step_also_where_only_the_pod_has_the_reason() {
    let known = page(&facts("True", report(2, "False", "PermissionDenied", "no"))).verdict;
    assert_eq!(known.hint.as_deref(), Some(Reason::PermissionDenied.meaning()));
    let mut facts = facts("True", report(2, "False", "JobFailed", "the Job has failed"));
    let message = r#"{"status": "failure", "reason": "QuotaExceeded", "message": "no more writes"}"#.to_owned();
    let pod = PodSummary {
        name: "p".into(),
        phase: "Failed".into(),
        reason: "Error".into(),
        message,
        exit_code: Some(75),
        ..PodSummary::default()
    };
    facts.observed.pods = Observation::Found(vec![pod]);
    let verdict = page(&facts).verdict;
    assert_eq!(verdict.hint.as_deref(), Some(Reason::QuotaExceeded.meaning()));
    assert!(verdict.because.contains(&"QuotaExceeded: no more writes".to_owned()), "{verdict:?}");
}

fn secret(annotations: &[(&str, &str)]) -> SecretMetadata {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    SecretMetadata { created: None, labels: BTreeMap::new(), annotations: annotations.iter().map(text).collect() }
}

#[rstest]
#[case::gone(Observation::Found(None), "does not exist")]
#[case::unreadable(Observation::Failed("forbidden".to_owned()), "cannot be read: forbidden")]
#[case::older(Observation::Found(Some(secret(&[("hyperfleet.io/gcp-secret-version", "2")]))), "version 2, the report says 3")]
#[case::other(Observation::Found(Some(secret(&[("hyperfleet.io/digest", "hmac-sha256:b")]))), "of digest hmac-sha256:b")]
fn a_kubernetes_secret_that_disagrees_is_a_contradiction(
    #[case] observation: Observation<Option<SecretMetadata>>,
    #[case] because: &str,
) {
    let mut facts = facts("True", report(2, "True", "SecretStored", ""));
    facts.observed.secret = observation;
    let verdict = page(&facts).verdict;
    assert_eq!((verdict.state, verdict.agrees), (State::Contradicted, false));
    assert!(verdict.because[0].contains(because), "{verdict:?}");
}

#[test]
fn a_secret_that_agrees_is_no_contradiction() {
    let mut facts = facts("True", report(2, "True", "SecretStored", ""));
    let agreeing = [("hyperfleet.io/gcp-secret-version", "3"), ("hyperfleet.io/digest", "hmac-sha256:a")];
    facts.observed.secret = Observation::Found(Some(secret(&agreeing)));
    assert!(page(&facts).verdict.agrees);
}

/// The API hides digests from callers that may not read pull secrets.
#[test]
fn a_hidden_digest_is_no_contradiction() {
    let mut facts = facts("True", report(2, "True", "SecretStored", ""));
    facts.cluster.as_mut().unwrap().spec["pullSecret"]["data"]["digest"] = json!(null);
    facts.report.as_mut().unwrap().data.insert("digest".to_owned(), json!(null));
    facts.observed.secret = Observation::Found(Some(secret(&[("hyperfleet.io/digest", "hmac-sha256:a")])));
    assert!(page(&facts).verdict.agrees);
}

#[test]
fn a_digest_other_than_the_desired_one_is_a_contradiction() {
    let mut facts = facts("True", report(2, "True", "SecretStored", ""));
    facts.report.as_mut().unwrap().data.insert("digest".to_owned(), json!("hmac-sha256:b"));
    let verdict = page(&facts).verdict;
    assert_eq!(verdict.state, State::Contradicted);
    assert!(verdict.because[0].contains("hmac-sha256:b"), "{verdict:?}");
}

#[test]
fn a_cluster_that_is_terminating_or_absent_is_not_available() {
    let mut facts = facts("True", report(2, "True", "SecretStored", ""));
    facts.cluster.as_mut().unwrap().deleted_time = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(page(&facts).verdict.state, State::Deleting);
    facts.cluster = None;
    let page = page(&facts);
    assert_eq!((page.verdict.state, page.verdict.agrees), (State::Absent, false));
}

#[test]
fn each_precondition_is_shown_with_its_values() {
    let page = page(&facts("Unknown", Value::Null));
    assert_eq!(page.preconditions[0].verdict, "not met");
    assert_eq!(page.preconditions[0].values[1], "  `status.adapters[dns].available`: \"Unknown\"");
}
