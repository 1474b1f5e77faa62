//! The next step: its commands, and the causes that are observed beside the report.

use kubernetes::JobSummary;

use super::*;
use crate::facts::Heartbeat;

/// A cluster in a project, whose report names the places of its pull secret.
fn failed(reason: &str, message: &str) -> Facts {
    let mut report = report(2, "False", reason, message);
    report["data"] = json!({"copies": [
        {"kind": "secret", "project": "customer-1", "name": "hyperfleet-cls-1-pull-secret"},
        {"kind": "kubernetesSecret", "namespace": "clusters-cls-1", "name": "cls-1-pull-secret"},
    ]});
    let mut facts = facts("True", report);
    facts.observed.job_key = Some(("jobs".to_owned(), "job-1".to_owned()));
    facts
}

const STORE: &str = "Failed to create/update secret: no; hint: its own; retrying with another Job in 30 min";
const KUBERNETES: &str =
    "Failed to create/update Kubernetes secret: no; hint: its own; retrying with another Job in 2 min";
const RETRY: &str = "pull-secret retry cls-1 --yes";
const GRANT: &str = "gcloud projects add-iam-policy-binding customer-1 --role roles/secretmanager.admin --member \
                     serviceAccount:ACCOUNT";
const ENABLE: &str = "gcloud services enable secretmanager.googleapis.com --project customer-1";
const QUOTA: &str =
    "gcloud alpha services quota list --service secretmanager.googleapis.com --consumer projects/customer-1";
const CAN_I: &str = "kubectl --namespace clusters-cls-1 auth can-i create secrets --as \
                     system:serviceaccount:jobs:pullsecret-adapter-job";

#[rstest]
#[case("PermissionDenied", STORE, &[GRANT, RETRY])]
#[case("ApiDisabled", STORE, &[ENABLE, RETRY])]
#[case("QuotaExceeded", STORE, &[QUOTA])]
#[case("NameConflict", STORE, &["gcloud secrets describe hyperfleet-cls-1-pull-secret --project customer-1", RETRY])]
#[case("NameConflict", KUBERNETES, &["kubectl --namespace clusters-cls-1 describe secret cls-1-pull-secret", RETRY])]
#[case("SecretImmutable", KUBERNETES, &["kubectl --namespace clusters-cls-1 delete secret cls-1-pull-secret", RETRY])]
#[case("PermissionDenied", KUBERNETES, &[CAN_I, RETRY])]
#[case("NamespaceQuotaExceeded", KUBERNETES, &["kubectl --namespace clusters-cls-1 describe resourcequotas"])]
#[case("NamespaceMissing", KUBERNETES, &["kubectl create namespace clusters-cls-1"])]
#[case("NamespaceTerminating", KUBERNETES, &["kubectl get namespace clusters-cls-1 --output yaml"])]
#[case("InvalidPullSecret", "Invalid pull secret format: no", &["pull-secret validate FILE"])]
#[case("Unauthenticated", STORE, &["kubectl --namespace jobs describe serviceaccount pullsecret-adapter-job", RETRY])]
#[case("InvalidConfiguration", "GCP_PROJECT_ID: no", &[])]
fn a_failure_has_its_commands(#[case] reason: &str, #[case] message: &str, #[case] commands: &[&str]) {
    let verdict = page(&failed(reason, message)).verdict;
    assert_eq!((verdict.state, verdict.next.iter().map(String::as_str).collect()), (State::Failed, commands.to_vec()));
    assert!(!verdict.because[0].contains("hint") && verdict.hint.is_some(), "{verdict:?}");
}

#[test]
fn a_name_that_a_shell_would_run_is_quoted() {
    let mut facts = failed("PreconditionsNotMet", "waiting for secret a/b: it does not exist");
    facts.cluster.as_mut().unwrap().spec =
        json!({"pullSecret": {"secretRef": {"namespace": "a", "name": "b; rm -rf '~'", "key": "k"}}});
    let verdict = page(&facts).verdict;
    let expect = r"kubectl --namespace a create secret generic 'b; rm -rf '\''~'\''' --from-file=k=FILE";
    assert_eq!((verdict.state, verdict.next[0].as_str()), (State::Waiting, expect));
}

#[rstest]
#[case("it does not exist", 2, "create secret generic b --from-file=k=FILE")]
#[case("it has no key `k`, only `x`", 1, "describe secret b")]
#[case("it does not allow this cluster: …", 1, "annotate secret b hyperfleet.io/allowed-clusters=cls-1")]
fn a_reference_that_cannot_be_used_has_its_commands(#[case] why: &str, #[case] count: usize, #[case] command: &str) {
    let mut facts = failed("PreconditionsNotMet", &format!("waiting for secret a/b: {why}"));
    facts.cluster.as_mut().unwrap().spec =
        json!({"pullSecret": {"secretRef": {"namespace": "a", "name": "b", "key": "k"}}});
    let verdict = page(&facts).verdict;
    assert_eq!((verdict.next.len(), verdict.next[0].as_str()), (count, &*format!("kubectl --namespace a {command}")));
}

fn running(started: &str, message: &str) -> Facts {
    let mut facts = failed("WorkloadInProgress", message);
    let started = Some(started.parse().unwrap());
    let job = JobSummary { name: "job-1".to_owned(), created: started, started, failed: 0, end: None, ended: None };
    facts.observed.job = Observation::Found(Some(job));
    facts
}

fn pod(phase: &str, reason: &str) -> Observation<Vec<PodSummary>> {
    let (phase, reason) = (phase.to_owned(), reason.to_owned());
    Observation::Found(vec![PodSummary {
        name: "p".into(),
        phase,
        reason,
        message: String::new(),
        exit_code: None,
        image: String::new(),
        image_pull_secrets: Vec::new(),
    }])
}

#[test]
fn a_job_that_does_not_end_is_stuck_and_its_last_line_is_shown() {
    let mut facts = running("2026-01-01T00:08:00Z", "Job job-1 is running");
    facts.observed.pods = pod("Running", "");
    facts.observed.last_line = Observation::Found(Some("Retry 1/3: no answer in time".to_owned()));
    let verdict = page(&facts).verdict;
    let expect = [
        "stuck: WorkloadInProgress: Job job-1 has been running for 12 min",
        "last log line: Retry 1/3: no answer in time",
    ];
    assert_eq!(verdict.state, State::Running);
    assert_eq!(verdict.because, expect);
    assert_eq!(verdict.next, ["kubectl --namespace jobs logs job/job-1 --follow"]);
    facts.now = "2026-01-01T00:09:00Z".parse().unwrap();
    assert_eq!(page(&facts).verdict.because[0], "WorkloadInProgress: Job job-1 has been running for 60 s");
}

#[test]
fn a_pod_that_does_not_start_is_shown_with_the_warnings_of_kubernetes() {
    let mut facts = running("2026-01-01T00:19:00Z", "Job job-1 is running");
    facts.observed.pods = pod("Pending", "ContainerCreating");
    facts.observed.warnings = Observation::Found(vec!["FailedMount: secret \"a\" not found (3 times)".to_owned()]);
    let verdict = page(&facts).verdict;
    assert_eq!(verdict.because[1], "Pod p is Pending: ContainerCreating");
    assert_eq!(verdict.because[2], "Kubernetes warns: FailedMount: secret \"a\" not found (3 times)");
    assert_eq!(verdict.next, ["kubectl --namespace jobs describe pods --selector job-name=job-1"]);
}

#[test]
fn the_reason_of_failed_pods_comes_before_the_job_that_still_runs() {
    let about = "Job job-1 is running; 1 of its Pods failed (backoffLimit 3)";
    let mut facts = running("2026-01-01T00:19:00Z", &format!("{about}: QuotaExceeded: {STORE}"));
    facts.observed.pods = pod("Failed", "Error");
    facts.observed.last_line = Observation::Found(Some("Failed to create/update secret: no; hint: its own".to_owned()));
    facts.observed.warnings =
        Observation::Found(vec![format!("QuotaExceeded: {STORE}"), "FailedMount: none".to_owned()]);
    let verdict = page(&facts).verdict;
    let job = "Job job-1 has been running for 60 s; 1 of its Pods failed (backoffLimit 3)";
    let fact = "QuotaExceeded: Failed to create/update secret: no";
    assert_eq!(verdict.because, [fact, job, "Kubernetes warns: FailedMount: none"]);
    assert!(verdict.next[0].contains("quota list") && verdict.hint.as_deref() == Some("its own"), "{verdict:?}");
}

#[test]
fn a_namespace_that_does_not_exist_comes_first() {
    let mut facts = running("2026-01-01T00:19:00Z", "Job job-1 is running");
    let key = SecretKey { namespace: "clusters-cls-1".into(), name: "cls-1-pull-secret".into() };
    facts.observed.secret_key = Some(key);
    facts.observed.has_secret_namespace = Observation::Found(Some(false));
    let verdict = page(&facts).verdict;
    assert_eq!(verdict.because[0], "namespace clusters-cls-1 of the Kubernetes Secret does not exist");
    assert_eq!(verdict.next, ["kubectl create namespace clusters-cls-1"]);
}

#[test]
fn a_secret_that_another_process_deletes_is_a_failure() {
    let verdict = page(&failed("Drifted", "secret clusters-cls-1/cls-1-pull-secret was deleted repeatedly")).verdict;
    assert_eq!((verdict.state, verdict.next.len()), (State::Failed, 2));
    assert_eq!(verdict.next[0], "kubectl events --namespace clusters-cls-1 --for secret/cls-1-pull-secret");
}

#[test]
fn an_adapter_that_is_waited_for_is_quoted() {
    let mut facts = facts("False", Value::Null);
    let unmet = ["waiting for dns: it is not available (NoZone)", "waiting for placement: not reported yet"];
    facts.unmet = unmet.map(str::to_owned).to_vec();
    let reported = Some(REPORTED.parse().unwrap());
    let dns = Heartbeat {
        adapter: "dns".to_owned(),
        available: Some(Status::False),
        reason: Some("NoZone".to_owned()),
        message: Some("the zone is missing".to_owned()),
        changed: None,
        reported,
        reported_any: reported,
    };
    facts.heartbeats = vec![dns];
    let verdict = page(&facts).verdict;
    assert_eq!(verdict.because[2], "dns reports: the zone is missing");
    assert_eq!(verdict.because[3], "placement has reported about no other cluster either: see whether it runs");
    assert_eq!(verdict.next, ["pull-secret status --why"]);
}

#[test]
fn the_last_change_and_the_time_of_the_reason_are_on_the_page() {
    let mut facts = failed("PermissionDenied", STORE);
    let cluster = facts.cluster.as_mut().unwrap();
    cluster.updated_time = Some(REPORTED.parse().unwrap());
    cluster.updated_by = Some("ann@example.com".to_owned());
    let concluded = json!([{
        "type": "PullsecretSuccessful", "status": "False", "reason": "PermissionDenied", "reason_since_time": CREATED,
    }]);
    cluster.status.conditions = serde_json::from_value(concluded).unwrap();
    let shown = page(&facts);
    assert_eq!(shown.changed.unwrap().by.as_deref(), Some("ann@example.com"));
    assert_eq!(shown.reason_since, Some(CREATED.parse().unwrap()));
    facts.cluster.as_mut().unwrap().status.conditions[0].reason = Some("QuotaExceeded".to_owned());
    assert_eq!(page(&facts).reason_since, None, "the API has not concluded the report yet");
}
