//! Reports that are late, and what keeps the adapter from working.

use jiff::SignedDuration;
use kubernetes::{JobSummary, LeaseSummary};

use super::*;
use crate::facts::{Heartbeat, State};

/// A cluster whose preconditions were met at that time, and whose adapter says this.
fn met_at(time: &str, report: Value) -> Facts {
    let mut facts = facts("True", report);
    let placement = Heartbeat {
        adapter: "placement".to_owned(),
        available: Some(Status::True),
        reason: None,
        message: None,
        changed: Some(time.parse().unwrap()),
        reported: Some(time.parse().unwrap()),
        reported_any: None,
    };
    facts.heartbeats = vec![placement];
    facts
}

fn waiting() -> Value {
    report(2, "False", "PreconditionsNotMet", "waiting for placement")
}

fn job(end: Option<JobEnd>, ended: Option<&str>) -> Observation<Option<JobSummary>> {
    let ended = ended.map(|ended| ended.parse().unwrap());
    Observation::Found(Some(JobSummary { name: "j".to_owned(), created: None, started: None, failed: 0, end, ended }))
}

fn lease(holder: Option<&str>, renewed: &str) -> Observation<Option<LeaseSummary>> {
    let (name, holder) = ("l".to_owned(), holder.map(str::to_owned));
    let renewed = Some(renewed.parse().unwrap());
    Observation::Found(Some(LeaseSummary { name, holder, renewed, duration: SignedDuration::from_secs(15) }))
}

#[rstest]
#[case::before_the_change("2026-01-01T00:18:00Z", State::Stalled, "but the adapter has not reported for 10 min")]
#[case::just_before_the_change("2026-01-01T00:19:50Z", State::Running, "the adapter is about to report")]
// A precondition of the fleet's own configuration, which is not known here.
#[case::after_the_change("2026-01-01T00:09:00Z", State::Waiting, "PreconditionsNotMet: waiting for placement")]
fn a_report_from_before_the_last_change_does_not_decide(
    #[case] met: &str,
    #[case] state: State,
    #[case] because: &str,
) {
    let verdict = page(&met_at(met, waiting())).verdict;
    assert_eq!(verdict.state, state, "{verdict:?}");
    assert!(verdict.because[0].contains(because), "{verdict:?}");
}

#[rstest]
#[case::runs(job(None, None), State::Running)]
#[case::has_ended(job(Some(JobEnd::Complete), Some("2026-01-01T00:15:00Z")), State::Stalled)]
#[case::has_just_ended(job(Some(JobEnd::Complete), Some("2026-01-01T00:19:55Z")), State::Running)]
#[case::is_gone(Observation::Found(None), State::Stalled)]
#[case::is_not_observed(Observation::NotObserved, State::Running)]
fn a_job_whose_end_is_not_reported_shows_that_the_adapter_stands_still(
    #[case] job: Observation<Option<JobSummary>>,
    #[case] state: State,
) {
    let mut facts = met_at(CREATED, report(2, "False", "WorkloadInProgress", "runs"));
    facts.observed.job = job;
    assert_eq!(page(&facts).verdict.state, state);
}

#[test]
fn without_a_cause_the_log_is_the_next_step_and_the_work_on_other_clusters_is_named() {
    let mut facts = met_at("2026-01-01T00:18:00Z", waiting());
    let own = |any: &str| Heartbeat {
        adapter: "pullsecret".to_owned(),
        available: Some(Status::False),
        reason: None,
        message: None,
        changed: None,
        reported: Some(REPORTED.parse().unwrap()),
        reported_any: Some(any.parse().unwrap()),
    };
    for (any, words) in [
        (REPORTED, "it has not reported about other clusters either"),
        ("2026-01-01T00:19:57Z", "its last report about another cluster is 3 s old"),
    ] {
        facts.heartbeats.truncate(1);
        facts.heartbeats.push(own(any));
        let verdict = page(&facts).verdict;
        assert_eq!(verdict.because[1], words);
        assert_eq!(verdict.next, ["kubectl --namespace hyperfleet-system logs deployment/pullsecret-adapter"]);
    }
}

#[rstest]
#[case::namespace_missing(
    |facts: &mut Facts| {
        facts.observed.namespace = "hyperfleet-system".to_owned();
        facts.observed.has_namespace = Observation::Found(Some(false));
    },
    "namespace hyperfleet-system, in which Jobs run, does not exist",
    Some("kubectl create namespace hyperfleet-system")
)]
#[case::kubernetes_away(
    |facts: &mut Facts| facts.observed.job = Observation::Failed("it cannot be reached".to_owned()),
    "Kubernetes cannot be read: it cannot be reached",
    None
)]
#[case::dead(
    |facts: &mut Facts| facts.observed.lease = lease(Some("a-1"), "2026-01-01T00:15:00Z"),
    "no replica of the adapter runs: a-1 has renewed Lease l for the last time 5 min ago",
    Some("describe pods")
)]
#[case::stopped(
    |facts: &mut Facts| facts.observed.lease = lease(None, "2026-01-01T00:19:59Z"),
    "no replica of the adapter runs: Lease l was released",
    Some("describe pods")
)]
fn a_cause_that_was_observed_is_named_in_every_state(
    #[case] broken: fn(&mut Facts),
    #[case] line: &str,
    #[case] next: Option<&str>,
) {
    for (dns, report, state) in [
        ("True", waiting(), State::Stalled),
        ("Unknown", waiting(), State::Waiting),
        ("True", report(2, "False", "JobFailed", "crash"), State::Failed),
        ("True", report(2, "True", "SecretStored", "v3"), State::Available),
    ] {
        let mut facts = Facts { unmet: facts(dns, Value::Null).unmet, ..met_at("2026-01-01T00:18:00Z", report) };
        broken(&mut facts);
        let verdict = page(&facts).verdict;
        assert_eq!(verdict.state, state, "{verdict:?}");
        assert_eq!(verdict.because.iter().filter(|because| *because == line).count(), 1, "{verdict:?}");
        if let Some(next) = next {
            assert!(verdict.hint.is_some() && verdict.next.len() == 1 && verdict.next[0].contains(next), "{verdict:?}");
        }
    }
}

#[test]
fn a_held_lease_is_no_cause() {
    let mut facts = met_at("2026-01-01T00:18:00Z", waiting());
    facts.observed.lease = lease(Some("a-1"), "2026-01-01T00:19:35Z");
    let page = page(&facts);
    assert!(!page.verdict.because.iter().any(|line| line.contains("Lease")), "{page:?}");
    assert_eq!(page.lease.unwrap().holder.as_deref(), Some("a-1"));
}

/// Three failed passes are reported as `Health` False, with the conditions of the last pass that succeeded.
#[test]
fn a_report_that_the_adapter_cannot_work_comes_before_its_older_conditions() {
    let mut said = waiting();
    let health =
        json!({"type": "Health", "status": "False", "reason": "KubernetesApiFailure", "message": "no namespace"});
    said["conditions"].as_array_mut().unwrap().push(health);
    let words = "the adapter reports that it cannot work: KubernetesApiFailure: no namespace";
    let verdict = page(&met_at("2026-01-01T00:09:00Z", said)).verdict;
    assert_eq!((verdict.state, verdict.because), (State::Failed, vec![words.to_owned()]));
}

#[test]
fn a_deletion_that_the_adapter_does_not_report_on_says_so() {
    let mut facts = met_at(CREATED, report(1, "True", "SecretStored", ""));
    facts.cluster.as_mut().unwrap().deleted_time = Some("2026-01-01T00:12:00Z".parse().unwrap());
    let verdict = page(&facts).verdict;
    let words = "the cluster is terminating, but the adapter has not reported for 10 min";
    assert_eq!((verdict.state, verdict.because[0].as_str()), (State::Deleting, words));
    facts.report.as_mut().unwrap().observed_generation = 2_u32.into();
    facts.report.as_mut().unwrap().last_report_time = NOW.parse().unwrap();
    assert!(!page(&facts).verdict.because[0].contains("not reported for"));
}
