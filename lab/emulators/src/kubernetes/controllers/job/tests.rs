//! Tables: a Job, its Pods, an instant, and what is decided.

#![expect(clippy::needless_pass_by_value, reason = "rows read as data")]

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::super::action::Action;
use super::super::model::{Pod, view};
use super::{Settings, decide};

/// All instants here are seconds after this one.
const START: i64 = 1_700_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).unwrap()
}

fn job(spec: Value, status: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "store", "namespace": "fleet", "uid": "j" },
        "spec": { "template": { "metadata": { "labels": { "app": "x" } }, "spec": { "restartPolicy": "Never", "containers": [] } } },
        "status": status,
    });
    for (name, value) in spec.as_object().unwrap() {
        job["spec"][name] = value.clone();
    }
    job
}

/// A Pod in one word: `NAME:PHASE`, with `!` if it is being deleted, `-` if its finalizer is gone, `@END` and `=CODE`.
fn pod(text: &str) -> Pod {
    let (name, rest) = text.split_once(':').unwrap();
    let phase: String = rest.chars().take_while(|letter| letter.is_alphabetic()).collect();
    let number = |mark: char| -> Option<i64> {
        let tail = rest.split_once(mark)?.1;
        let digits: String = tail.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let finalizers = if rest.contains('-') { json!([]) } else { json!([super::TRACKING]) };
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "fleet", "uid": name, "finalizers": finalizers, "creationTimestamp": at(0).to_string(),
        },
        "status": { "phase": phase, "containerStatuses": [] },
    });
    if rest.contains('!') {
        pod["metadata"]["deletionTimestamp"] = json!(at(30).to_string());
    }
    if let Some(restarts) = number('r') {
        pod["status"]["containerStatuses"] = json!([{ "name": "main", "restartCount": restarts, "state": {} }]);
    }
    if number('@').is_some() || number('=').is_some() {
        let terminated =
            json!({ "exitCode": number('=').unwrap_or(1), "finishedAt": at(number('@').unwrap_or(0)).to_string() });
        pod["status"]["containerStatuses"] = json!([{ "name": "main", "state": { "terminated": terminated } }]);
    }
    if rest.contains('~') {
        pod["status"]["conditions"] = json!([{ "type": "DisruptionTarget", "status": "True" }]);
    }
    if rest.contains('*') {
        pod["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    }
    view(&pod).unwrap()
}

fn render(action: &Action) -> String {
    match action {
        Action::CreatePod(_) => "create".to_owned(),
        Action::DeletePod { name, .. } => format!("delete {name}"),
        Action::ReleasePod { name, .. } => format!("release {name}"),
        Action::DeleteOwner => "delete job".to_owned(),
        Action::RecordEvent { reason, message, .. } => format!("event {reason}: {message}"),
        Action::Wake(instant) => format!("wake {}", instant.as_second() - START),
        Action::UpdateStatus(status) => format!("status {}", render_status(status)),
    }
}

fn render_status(status: &Value) -> String {
    let mut words = Vec::new();
    for name in ["active", "ready", "terminating", "succeeded", "failed"] {
        if let Some(number) = status[name].as_u64().filter(|number| *number > 0) {
            words.push(format!("{name}={number}"));
        }
    }
    for name in ["succeeded", "failed"] {
        if let Some(uids) = status["uncountedTerminatedPods"][name].as_array() {
            let uids: Vec<_> = uids.iter().map(|uid| uid.as_str().unwrap()).collect();
            words.push(format!("uncounted-{name}={}", uids.join("+")));
        }
    }
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let (kind, reason) = (condition["type"].as_str().unwrap(), condition["reason"].as_str().unwrap());
        let mark = if condition["status"] == "True" { "" } else { "!" };
        words.push(format!("{mark}{kind}({reason})"));
    }
    words.join(" ")
}

fn decided(spec: Value, status: Value, pods: &str, now: i64) -> String {
    let pods: Vec<_> = pods.split_whitespace().map(pod).collect();
    let settings = Settings { back_off: Duration::from_secs(10) };
    let actions = decide(&job(spec, status), &pods, at(now), settings);
    actions.iter().map(render).collect::<Vec<_>>().join("; ")
}

/// The status of a running Job, without the members that would be written again.
fn going(more: Value) -> Value {
    let mut status = json!({
        "startTime": at(0).to_string(), "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
    });
    for (name, value) in more.as_object().unwrap() {
        status[name] = value.clone();
    }
    status
}

fn exit_policy() -> Value {
    json!({ "podFailurePolicy": { "rules": [
        { "action": "FailJob", "onExitCodes": { "containerName": "main", "operator": "In", "values": [2, 3, 4, 5] } },
        { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
        { "action": "Count", "onExitCodes": { "operator": "NotIn", "values": [42] } },
        { "action": "Ignore", "onExitCodes": { "operator": "In", "values": [42] } },
    ] } })
}

#[rstest]
#[case::begins(json!({}), json!({}), "", "create; status active=1")]
#[case::begins_with_as_many_as_may_run_at_once(
    json!({ "parallelism": 2, "completions": 5 }), json!({}), "", "create; create; status active=2")]
#[case::never_more_than_are_left_to_complete(
    json!({ "parallelism": 3, "completions": 2 }), json!({}), "", "create; create; status active=2")]
#[case::says_nothing_while_nothing_changes(json!({}), going(json!({ "active": 1 })), "a:Running", "")]
#[case::counts_ready_pods(json!({}), going(json!({ "active": 1 })), "a:Running*", "status active=1 ready=1")]
#[case::lists_a_success_before_it_lets_go(
    json!({}), going(json!({ "active": 1 })), "a:Succeeded@5=0",
    "status uncounted-succeeded=a SuccessCriteriaMet(CompletionsReached); release a")]
#[case::counts_what_was_let_go(
    json!({}), going(json!({ "uncountedTerminatedPods": { "succeeded": ["a"] } })), "a:Succeeded-",
    "status succeeded=1 SuccessCriteriaMet(CompletionsReached) Complete(CompletionsReached); event Completed: Job completed")]
#[case::a_crash_before_letting_go_counts_once(
    json!({}), going(json!({ "uncountedTerminatedPods": { "succeeded": ["a"] } })), "a:Succeeded",
    "status uncounted-succeeded=a SuccessCriteriaMet(CompletionsReached); release a")]
#[case::counts_a_pod_that_is_gone(
    json!({ "completions": 2 }), going(json!({ "uncountedTerminatedPods": { "succeeded": ["a"] } })), "",
    "create; status active=1 succeeded=1")]
#[case::needs_more_successes(
    json!({ "completions": 2 }), going(json!({ "succeeded": 1 })), "a:Succeeded-", "create; status active=1 succeeded=1")]
#[case::any_success_will_do_without_completions(
    json!({ "parallelism": 2 }), going(json!({ "active": 2 })), "a:Succeeded b:Running",
    "status active=1 uncounted-succeeded=a; release a")]
#[case::ends_when_the_last_worker_has(
    json!({ "parallelism": 2 }), going(json!({ "succeeded": 1, "active": 1 })), "b:Succeeded-",
    "status succeeded=1 SuccessCriteriaMet(CompletionsReached) Complete(CompletionsReached); event Completed: Job completed")]
#[case::fewer_at_once(
    json!({ "parallelism": 1, "completions": 3 }), going(json!({ "active": 2 })), "a:Running* b:Pending",
    "delete b; status active=1 ready=1 terminating=1")]
#[case::a_deleted_pod_is_a_failure_and_replaced(
    json!({}), going(json!({ "active": 1 })), "a:Running!",
    "wake 40; status terminating=1 uncounted-failed=a; release a")]
#[case::an_indexed_one_is_left_alone(
    json!({ "completionMode": "Indexed" }), json!({}), "a:Running", "")]
fn a_job_works(#[case] spec: Value, #[case] status: Value, #[case] pods: &str, #[case] expected: &str) {
    assert_eq!(decided(spec, status, pods, 20), expected);
}

#[rstest]
#[case::waits_after_the_first_failure("a:Failed-@0", 1, 9, "wake 10")]
#[case::then_tries_again("a:Failed-@0", 1, 10, "create; status active=1 failed=1")]
#[case::twice_as_long_after_the_second("a:Failed-@0 b:Failed-@20", 2, 39, "wake 40")]
#[case::then_again("a:Failed-@0 b:Failed-@20", 2, 40, "create; status active=1 failed=2")]
#[case::four_times_after_the_third("a:Failed-@0 b:Failed-@20 c:Failed-@50", 3, 89, "wake 90")]
#[case::never_longer_than_six_minutes(
    "a:Failed-@0 b:Failed-@0 c:Failed-@0 d:Failed-@0 e:Failed-@0 f:Failed-@0 g:Failed-@0",
    7,
    359,
    "wake 360"
)]
#[case::a_success_forgives("a:Failed-@0 b:Succeeded-@5=0", 1, 6, "create; status active=1 failed=1")]
fn failures_wait_longer_and_longer(#[case] pods: &str, #[case] failed: u32, #[case] now: i64, #[case] expected: &str) {
    let spec = json!({ "backoffLimit": 9 });
    assert_eq!(decided(spec, going(json!({ "failed": failed })), pods, now), expected);
}

#[rstest]
#[case::lists_a_failure(
    json!({}), json!({ "active": 1 }), "a:Failed@15", "wake 25; status uncounted-failed=a; release a")]
#[case::too_many_failures_are_announced(
    json!({ "backoffLimit": 0 }), json!({ "active": 1 }), "a:Failed@5",
    "status uncounted-failed=a FailureTarget(BackoffLimitExceeded); release a")]
#[case::and_then_it_has_failed(
    json!({ "backoffLimit": 0 }), json!({ "uncountedTerminatedPods": { "failed": ["a"] } }), "a:Failed-@5",
    "status failed=1 FailureTarget(BackoffLimitExceeded) Failed(BackoffLimitExceeded); \
     event BackoffLimitExceeded: Job has reached the specified backoff limit")]
#[case::those_still_running_are_deleted(
    json!({ "backoffLimit": 0, "parallelism": 2, "completions": 2 }), json!({ "active": 2 }), "a:Failed@5 b:Running",
    "delete b; status terminating=1 uncounted-failed=a+b FailureTarget(BackoffLimitExceeded); release a; release b")]
#[case::restarts_in_place_count(
    json!({ "backoffLimit": 3, "template": { "spec": { "restartPolicy": "OnFailure" } } }), json!({ "active": 1 }), "a:Runningr3",
    "delete a; status terminating=1 uncounted-failed=a FailureTarget(BackoffLimitExceeded); release a")]
#[case::up_to_the_limit(
    json!({ "backoffLimit": 3, "template": { "spec": { "restartPolicy": "OnFailure" } } }), json!({ "active": 1 }), "a:Runningr2", "")]
#[case::one_restart_is_too_many_for_none(
    json!({ "backoffLimit": 0, "template": { "spec": { "restartPolicy": "OnFailure" } } }), json!({ "active": 1 }), "a:Runningr1",
    "delete a; status terminating=1 uncounted-failed=a FailureTarget(BackoffLimitExceeded); release a")]
#[case::restarts_of_never_do_not_count(json!({ "backoffLimit": 1 }), json!({ "active": 1 }), "a:Runningr9", "")]
#[case::the_deadline_is_waited_for(
    json!({ "activeDeadlineSeconds": 21 }), json!({ "active": 1 }), "a:Running", "wake 21")]
#[case::the_deadline_ends_it(
    json!({ "activeDeadlineSeconds": 20 }), json!({ "active": 1 }), "a:Running",
    "delete a; status terminating=1 uncounted-failed=a FailureTarget(DeadlineExceeded); release a")]
#[case::but_only_when_its_pods_are_gone(
    json!({}), json!({ "failed": 1, "terminating": 1, "conditions": [
        { "type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded", "message": "m" }] }),
    "a:Running-!", "")]
#[case::then_it_has_failed(
    json!({}), json!({ "failed": 1, "terminating": 1, "conditions": [
        { "type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded", "message": "m" }] }),
    "", "status failed=1 FailureTarget(DeadlineExceeded) Failed(DeadlineExceeded); event DeadlineExceeded: m")]
fn a_job_fails(#[case] spec: Value, #[case] status: Value, #[case] pods: &str, #[case] expected: &str) {
    assert_eq!(decided(spec, going(status), pods, 20), expected);
}

#[rstest]
#[case::a_permanent_failure_ends_it(
    "a:Failed@5=3",
    "status uncounted-failed=a FailureTarget(PodFailurePolicy); release a"
)]
#[case::a_transient_one_counts("a:Failed@5=75", "wake 15; status uncounted-failed=a; release a")]
#[case::a_disruption_does_not_count("a:Failed~", "create; release a")]
#[case::a_later_rule_ignores("a:Failed@5=42", "wake 15; status; release a")]
#[case::no_replacement_before_it_has_ended("a:Running!", "status terminating=1")]
fn a_policy_judges_failures(#[case] pods: &str, #[case] expected: &str) {
    assert_eq!(
        decided(exit_policy(), going(json!({ "active": 1 })), pods, 14).replace("status ;", "status;"),
        expected
    );
}

#[test]
fn a_policy_speaks_in_upstreams_words() {
    let message = "Container main for pod fleet/a failed with exit code 3 matching FailJob rule at index 0";
    let status = json!({ "uncountedTerminatedPods": { "failed": ["a"] } });
    let rendered = decided(exit_policy(), going(status), "a:Failed-@5=3", 6);
    assert!(rendered.ends_with(&format!("event PodFailurePolicy: {message}")), "{rendered}");
    let policy = json!({ "podFailurePolicy": { "rules": [
        { "action": "FailJob", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] }] } });
    let rendered = decided(policy, going(json!({})), "a:Failed-~", 6);
    assert!(
        rendered.ends_with("Pod fleet/a has condition DisruptionTarget matching FailJob rule at index 0"),
        "{rendered}"
    );
}

#[rstest]
#[case::begins_suspended(json!({}), "", "status Suspended(JobSuspended); event Suspended: Job suspended")]
#[case::releases_and_deletes_what_runs(going(json!({ "active": 1 })), "a:Running",
    "release a; delete a; event Suspended: Job suspended; status terminating=1 Suspended(JobSuspended)")]
fn a_job_is_suspended(#[case] status: Value, #[case] pods: &str, #[case] expected: &str) {
    let rendered = decided(json!({ "suspend": true, "activeDeadlineSeconds": 1 }), status, pods, 20);
    let mut rendered: Vec<_> = rendered.split("; ").collect();
    let mut expected: Vec<_> = expected.split("; ").collect();
    rendered.sort_unstable();
    expected.sort_unstable();
    assert_eq!(rendered, expected);
}

#[test]
fn a_resumed_job_starts_its_time_anew() {
    let suspended = json!([{ "type": "Suspended", "status": "True", "reason": "JobSuspended" }]);
    let rendered = decided(json!({ "suspend": false }), going(json!({ "conditions": suspended })), "", 20);
    assert_eq!(rendered, "create; event Resumed: Job resumed; status active=1 !Suspended(JobResumed)");
}

#[rstest]
#[case::stays_without_a_time_to_live(json!({}), "Complete", 9_999, "")]
#[case::stays_until_its_time(json!({ "ttlSecondsAfterFinished": 60 }), "Complete", 59, "wake 60")]
#[case::goes_when_its_time_has_come(json!({ "ttlSecondsAfterFinished": 60 }), "Complete", 60, "delete job")]
#[case::a_failed_one_too(json!({ "ttlSecondsAfterFinished": 0 }), "Failed", 0, "delete job")]
fn a_finished_job_is_cleaned_up(#[case] spec: Value, #[case] end: &str, #[case] now: i64, #[case] expected: &str) {
    let ended = json!([{ "type": end, "status": "True", "lastTransitionTime": at(0).to_string() }]);
    assert_eq!(decided(spec, going(json!({ "conditions": ended })), "a:Succeeded-", now), expected);
}

#[test]
fn pods_bear_the_jobs_name_and_belong_to_it() {
    let settings = Settings { back_off: Duration::ZERO };
    let actions = decide(&job(json!({}), json!({})), &[], at(0), settings);
    let Some(Action::CreatePod(pod)) = actions.first() else { panic!("{actions:?}") };
    let labels = json!({
        "app": "x", "batch.kubernetes.io/controller-uid": "j", "batch.kubernetes.io/job-name": "store",
        "controller-uid": "j", "job-name": "store",
    });
    assert_eq!(pod["metadata"]["labels"], labels);
    assert_eq!(pod["metadata"]["finalizers"], json!([super::TRACKING]));
    assert_eq!(pod["metadata"]["generateName"], "store-");
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": "store", "uid": "j", "controller": true, "blockOwnerDeletion": true,
    }]);
    assert_eq!(pod["metadata"]["ownerReferences"], owner);
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
}

#[test]
fn what_is_not_a_job_is_left_alone() {
    let settings = Settings { back_off: Duration::ZERO };
    assert_eq!(decide(&json!({ "spec": "nonsense" }), &[], at(0), settings), Vec::new());
}
