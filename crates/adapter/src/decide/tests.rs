//! Tables of facts and the decisions about them.

use std::collections::BTreeMap;
use std::time::Duration;

use fleet_model::StoredCopy;
use hyperfleet_client::{Report, Resource, Status, View};
use jiff::Timestamp;
use kubernetes::ObservedJob;
use kubernetes::job::JobEnd;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::outcome::Outcome;
use crate::reason::Reason;

mod by_provider;
mod copies;
mod fleet;
mod mirror;
mod stores;

/// The state that a decision is made in. By default the cluster is ready and has no run.
struct World {
    resource: Resource,
    last_report: Option<Report>,
    jobs: Vec<(ObservedJob, Purpose, Option<Outcome>)>,
    clean_ups: Vec<(ObservedJob, StoredCopy, Option<Outcome>)>,
    source: PullSecretSource,
    output: OutputState,
    stored: Option<StoredDrift>,
    input: Option<InputState>,
}

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn config() -> Checked {
    let url = BTreeMap::from([("hyperfleet-api-base-url", "http://api:8000".to_owned())]);
    Config::read(None, url, &BTreeMap::<&str, &str>::new()).unwrap().check().unwrap()
}

fn available(generation: i64) -> Value {
    json!({"available": "True", "observed_generation": generation, "data": {"namespace": "clusters-cls-1"}, "conditions": []})
}

fn resource(adapters: &Value) -> Resource {
    serde_json::from_value(json!({
        "id": "cls-1", "kind": "Cluster", "name": "one", "generation": 3,
        "spec": {"provider": "gcp", "gcp": {"projectId": "proj-1"}, "pullSecret": {"data": {"redacted": true}}},
        "status": {"conditions": [], "adapters": adapters},
    }))
    .unwrap()
}

fn ready() -> Value {
    json!({"validation": available(3), "dns": available(3), "placement": available(3)})
}

fn world() -> World {
    World {
        resource: resource(&ready()),
        last_report: None,
        jobs: Vec::new(),
        clean_ups: Vec::new(),
        source: PullSecretSource::Inline,
        output: OutputState::NotChecked("a test"),
        stored: None,
        input: None,
    }
}

fn deleted() -> World {
    let mut world = world();
    world.resource.deleted_time = Some(now());
    world
}

fn report(generation: i64, available: &str, data: &Value) -> Option<Report> {
    serde_json::from_value(json!({
        "adapter": "pullsecret", "observed_generation": generation, "data": data,
        "conditions": [{"type": "Available", "status": available, "reason": "SecretStored", "message": "stored as 1"}],
    }))
    .unwrap()
}

fn outcome(exit_code: i32, reason: &str) -> Outcome {
    let status = if exit_code == 0 { "success" } else { "failure" };
    let details = json!({"secretVersion": 1, "gcpProject": "proj-1"});
    let message = json!({"status": status, "reason": reason, "message": "a detail", "details": details});
    Outcome::of(exit_code, &message.to_string())
}

/// Returns a Job of this generation that ended `seconds` ago.
fn job(generation: i64, end: Option<JobEnd>, seconds: i64, attempt: u32) -> ObservedJob {
    let text =
        |pairs: &[(&str, String)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    ObservedJob {
        name: format!("pullsecret-cls-1-gen{generation}"),
        uid: "u".to_owned(),
        labels: text(&[("hyperfleet.io/generation", generation.to_string())]),
        annotations: text(&[("hyperfleet.io/attempt", attempt.to_string())]),
        created: Some(now()),
        ended: end.as_ref().map(|_| now() - jiff::SignedDuration::from_secs(seconds)),
        end,
        active: 0,
        failed: 0,
        is_terminating: false,
    }
}

fn input(resource_version: &str, owner: Option<&str>) -> InputState {
    let owner = owner.map(str::to_owned);
    InputState { uid: "i".to_owned(), resource_version: resource_version.to_owned(), owner }
}

fn broken() -> JobEnd {
    JobEnd::Failed { reason: "BackoffLimitExceeded".to_owned(), message: "too often".to_owned() }
}

impl World {
    fn with(mut self, job: ObservedJob, purpose: Purpose, outcome: Option<Outcome>) -> Self {
        self.jobs.push((job, purpose, outcome));
        self
    }

    fn with_clean_up(mut self, job: ObservedJob, copy: StoredCopy, outcome: Option<Outcome>) -> Self {
        self.clean_ups.push((job, copy, outcome));
        self
    }

    fn decide(&self) -> Plan {
        self.decide_with(&config())
    }

    fn decide_with(&self, config: &Checked) -> Plan {
        self.with_facts(|facts| decide(config, facts))
    }

    fn with_facts<T>(&self, work: impl FnOnce(&Facts<'_>) -> T) -> T {
        let view = View::of(&self.resource);
        let run = |job: &ObservedJob, purpose, copy: Option<&StoredCopy>, outcome: &Option<Outcome>| Run {
            generation: job.labels["hyperfleet.io/generation"].parse().unwrap(),
            purpose,
            attempt: job.annotations["hyperfleet.io/attempt"].parse().unwrap(),
            source: job.annotations.get("hyperfleet.io/source").cloned(),
            copy: copy.cloned(),
            outcome: outcome.clone(),
            job: Box::leak(Box::new(job.clone())),
        };
        let runs = self.jobs.iter().map(|(job, purpose, outcome)| run(job, *purpose, None, outcome));
        let clean_ups = self.clean_ups.iter();
        let clean_ups = clean_ups.map(|(job, copy, outcome)| run(job, Purpose::CleanUp, Some(copy), outcome));
        let facts = Facts {
            resource: &self.resource,
            view: &view,
            last_report: self.last_report.as_ref(),
            runs: runs.chain(clean_ups).collect(),
            source: self.source.clone(),
            output: self.output.clone(),
            stored: self.stored.clone(),
            input: self.input.clone(),
            now: now(),
        };
        work(&facts)
    }
}

/// Renders a plan in one line: actions, conditions, time until the next pass.
fn render(plan: &Plan) -> String {
    let action = |action: &Action| match action {
        Action::RecordCopies => "record copies".to_owned(),
        Action::StartRun(run) => {
            let replaces = run.replaces.as_ref().map(|job| format!(" replacing {}", job.name)).unwrap_or_default();
            format!("start {:?} {}{replaces}", run.purpose, run.attempt)
        }
        Action::DeleteJob(job) => format!("delete {}", job.name),
        Action::SetInputOwner(job) => format!("set input owner {}", job.name),
        Action::RemoveInput(input) => format!("remove input {}/{}", input.uid, input.resource_version),
        Action::RevokeAccess => "revoke access".to_owned(),
    };
    let conditions = plan
        .conditions
        .iter()
        .map(|condition| format!("{}={}/{}", condition.kind, condition.status.as_str(), condition.reason));
    let next = plan.requeue_after.map(|after| format!("next in {} s", after.as_secs()));
    plan.actions.iter().map(action).chain(conditions).chain(next).collect::<Vec<_>>().join("; ")
}

const STARTED: &str = "record copies; start Apply 1; Applied=True/ResourcesCreated; Available=False/WorkloadInProgress; Health=True/NoErrors";
const WAITING: &str = "Applied=False/PreconditionsNotMet; Available=False/PreconditionsNotMet; Health=True/NoErrors";
const STORED: &str = "Applied=True/ResourcesExist; Available=True/SecretStored; Health=True/NoErrors";

fn check(world: &World, expect: &str) -> Plan {
    let plan = world.decide();
    assert_eq!(render(&plan), expect, "{}", plan.because);
    plan
}

#[test]
fn a_ready_cluster_gets_a_run() {
    let plan = check(&world(), STARTED);
    assert_eq!(plan.because, "it has no run yet");
}

#[rstest]
#[case::no_reports(json!({}), "waiting for validation: not reported yet at generation 3; waiting for dns: not reported yet at \
    generation 3; waiting for placement: not reported yet at generation 3")]
#[case::one(json!({"validation": available(3), "placement": available(3)}), "waiting for dns: not reported yet at generation 3")]
#[case::an_older_no(
    json!({"validation": available(3), "placement": available(3), "dns": {"available": "False", "observed_generation": 2}}),
    "waiting for dns: not reported yet at generation 3, and False at generation 2"
)]
#[case::with_a_reason(
    json!({"validation": available(3), "placement": available(3), "dns": {"available": "False", "observed_generation": 3,
        "conditions": [{"type": "Available", "status": "False", "reason": "ZoneMissing"}]}}),
    "waiting for dns: it is not available (ZoneMissing)"
)]
#[case::no_namespace(
    json!({"validation": available(3), "dns": available(3), "placement": {"available": "True", "observed_generation": 3}}),
    "waiting for `status.adapters[placement].data.namespace` or `status.adapters[pullsecret].data.namespace`: it has no value yet"
)]
fn a_cluster_that_is_not_ready_names_what_is_missing(#[case] adapters: Value, #[case] message: &str) {
    let plan = check(&World { resource: resource(&adapters), ..world() }, WAITING);
    assert_eq!(plan.condition("Available").unwrap().message, message);
}

#[rstest]
#[case("/provider", json!("aws"), "`spec.provider == \"gcp\"` is false: left side is \"aws\"")]
#[case("/gcp", json!({}), "`spec.gcp.projectId != nil` is false: left side is nil")]
fn a_precondition_that_is_not_met_is_explained(#[case] pointer: &str, #[case] value: Value, #[case] message: &str) {
    let mut world = world();
    *world.resource.spec.pointer_mut(pointer).unwrap() = value;
    let plan = check(&world, WAITING);
    assert!(plan.because.starts_with(message), "{}", plan.because);
}

#[test]
fn reports_about_older_generations_count_until_they_change() {
    let adapters = json!({"validation": available(1), "dns": available(2), "placement": available(1)});
    check(&World { resource: resource(&adapters), ..world() }, STARTED);
}

#[test]
fn a_running_job_is_reported_as_in_progress() {
    let running = "Applied=True/ResourcesExist; Available=False/WorkloadInProgress; Health=True/NoErrors";
    let owned = || World { input: Some(input("7", Some("u"))), ..world() };
    check(&owned().with(job(3, None, 0, 1), Purpose::Apply, None), running);
    let troubled = ObservedJob { failed: 2, ..job(3, None, 0, 1) };
    let plan = check(&owned().with(troubled, Purpose::Apply, Some(outcome(75, "QuotaExceeded"))), running);
    assert_eq!(
        plan.because,
        "Job pullsecret-cls-1-gen3 is running; 2 of its Pods failed (backoffLimit 3): QuotaExceeded: a detail"
    );
    // Of a repair, the report before has what is repaired, and each later one keeps it.
    for before in ["secret a/b was deleted; a Job repairs it", "Job j is running; repairing: secret a/b was deleted"] {
        let mut last = report(3, "False", &json!({})).unwrap();
        last.conditions[0].message = Some(before.to_owned());
        let plan = check(
            &World { last_report: Some(last), ..owned() }.with(job(3, None, 0, 1), Purpose::Apply, None),
            running,
        );
        assert_eq!(plan.because, "Job pullsecret-cls-1-gen3 is running; repairing: secret a/b was deleted");
    }
}

#[test]
fn a_succeeded_run_is_reported_with_its_own_reason() {
    let mut world =
        world().with(job(3, Some(JobEnd::Complete), 5, 1), Purpose::Apply, Some(outcome(0, "SecretStored")));
    let plan = check(&world, STORED);
    assert_eq!(
        Value::Object(plan.data),
        json!({
            "secretVersion": 1, "gcpProject": "proj-1",
            "copies": [
                {"kind": "secret", "project": "proj-1", "name": "hyperfleet-cls-1-pull-secret"},
                {"kind": "kubernetesSecret", "namespace": "clusters-cls-1", "name": "cls-1-pull-secret"},
            ],
        })
    );
    world.input = Some(input("7", Some("u")));
    check(&world, &format!("remove input i/7; {STORED}"));
}

/// Another replica may replace the input, for a newer run, while this one acts on what it has observed.
#[test]
fn an_input_is_removed_in_the_observed_version_only() {
    let with_input = |world: World| World { input: Some(input("7", Some("u"))), ..world };
    let failed = job(3, Some(broken()), 0, 1);
    let failed = world().with(failed, Purpose::Apply, Some(outcome(4, "PermissionDenied")));
    let removed = deleted().with(job(3, Some(JobEnd::Complete), 1, 1), Purpose::Delete, None);
    for world in [failed, removed] {
        let plan = with_input(world).decide();
        assert!(plan.actions.contains(&Action::RemoveInput(input("7", Some("u")))), "{}", render(&plan));
    }
    // It belongs to a run that was not observed, or has not ended: another replica has started it.
    let done = job(3, Some(JobEnd::Complete), 5, 1);
    let done = world().with(done, Purpose::Apply, Some(outcome(0, "SecretStored")));
    assert!(World { input: Some(input("7", Some("other"))), ..done }.decide().actions.is_empty());
}

#[test]
fn a_running_job_gets_an_input_of_its_own() {
    let running = |input| World { input, ..world().with(job(3, None, 0, 1), Purpose::Apply, None) }.decide().actions;
    for missing_or_unowned in [None, Some(input("7", None)), Some(input("7", Some("other")))] {
        assert_eq!(running(missing_or_unowned), [Action::SetInputOwner(job(3, None, 0, 1))]);
    }
    assert!(running(Some(input("7", Some("u")))).is_empty());
    let terminating = ObservedJob { is_terminating: true, ..job(3, None, 0, 1) };
    assert!(world().with(terminating, Purpose::Apply, None).decide().actions.is_empty());
}

#[test]
fn a_run_whose_result_is_lost_is_repeated_unless_it_was_reported() {
    let silent = |attempt| world().with(job(3, Some(JobEnd::Complete), 5, attempt), Purpose::Apply, None);
    check(&silent(1), &STARTED.replace("start Apply 1", "start Apply 2 replacing pullsecret-cls-1-gen3"));
    check(&silent(3), &STORED.replace("SecretStored", "JobSucceeded"));
    let reported = World { last_report: report(3, "True", &json!({"secretVersion": 1})), ..silent(1) };
    assert_eq!(check(&reported, STORED).data["secretVersion"], 1);
}

#[test]
fn a_success_whose_job_is_gone_is_not_repeated() {
    let data = json!({"secretVersion": 1});
    let plan = check(&World { last_report: report(3, "True", &data), ..world() }, STORED);
    assert_eq!(plan.data["secretVersion"], 1);
    // Also if a dependency fails later.
    let adapters = json!({"validation": {"available": "False", "observed_generation": 3}});
    check(&World { last_report: report(3, "True", &data), resource: resource(&adapters), ..world() }, STORED);
}

#[test]
fn a_newer_generation_gets_a_run_of_its_own() {
    let plan = check(&World { last_report: report(2, "True", &json!({"secretVersion": 1})), ..world() }, STARTED);
    assert_eq!(plan.because, "generation 3 is newer than 2, the last that was reported");
    assert_eq!(plan.data["secretVersion"], 1, "the data is kept");
    // The Job of an older generation has ended late.
    let late = world().with(job(2, Some(JobEnd::Complete), 1, 1), Purpose::Apply, Some(outcome(0, "SecretStored")));
    check(&late, STARTED);
}

#[test]
fn a_run_for_an_older_generation_is_stopped_once_the_current_one_has_its_own() {
    let older = |is_terminating| ObservedJob { is_terminating, ..job(2, None, 0, 1) };
    // Until then its result is better than none.
    check(&world().with(older(false), Purpose::Apply, None), STARTED);
    let done = || world().with(job(3, Some(JobEnd::Complete), 5, 1), Purpose::Apply, Some(outcome(0, "SecretStored")));
    check(&done().with(older(false), Purpose::Apply, None), &format!("delete pullsecret-cls-1-gen2; {STORED}"));
    check(&done().with(older(true), Purpose::Apply, None), STORED);
    let without_job = World { last_report: report(3, "True", &json!({})), ..world() };
    check(&without_job.with(older(false), Purpose::Apply, None), &format!("delete pullsecret-cls-1-gen2; {STORED}"));
}

#[test]
fn another_revision_of_a_referenced_secret_gets_a_run() {
    let revision = |revision: &str| PullSecretSource::Revision(revision.to_owned());
    let stored = |source| World { last_report: report(3, "True", &json!({"source": "a/1"})), source, ..world() };
    check(&stored(revision("a/1")), STORED);
    check(&stored(revision("a/2")), STARTED);
    check(&stored(PullSecretSource::Missing("gone".to_owned())), STORED);
    let missing =
        World { source: PullSecretSource::Missing("waiting for secret a/b: it does not exist".to_owned()), ..world() };
    assert_eq!(check(&missing, WAITING).because, "waiting for secret a/b: it does not exist");
}

#[rstest]
#[case::transient(75, "QuotaExceeded", 30, 1, Some("next in 30 s"))]
#[case::transient_again(75, "QuotaExceeded", 30, 2, Some("next in 90 s"))]
#[case::permanent(4, "PermissionDenied", 0, 1, Some("next in 1800 s"))]
#[case::of_the_pull_secret(3, "InvalidPullSecret", 0, 1, None)]
fn a_failed_run_is_repeated_after_a_back_off(
    #[case] code: i32,
    #[case] reason: &str,
    #[case] seconds: i64,
    #[case] attempt: u32,
    #[case] next: Option<&str>,
) {
    let failed = world().with(job(3, Some(broken()), seconds, attempt), Purpose::Apply, Some(outcome(code, reason)));
    let conditions = format!("Applied=True/ResourcesExist; Available=False/{reason}; Health=True/NoErrors");
    check(&failed, &[Some(&*conditions), next].into_iter().flatten().collect::<Vec<_>>().join("; "));
}

#[test]
fn a_run_starts_when_the_back_off_is_over() {
    let failed = world().with(job(3, Some(broken()), 61, 1), Purpose::Apply, Some(outcome(75, "StoreUnavailable")));
    check(&failed, &STARTED.replace("start Apply 1", "start Apply 2 replacing pullsecret-cls-1-gen3"));
    let silent = world().with(job(3, Some(broken()), 0, 1), Purpose::Apply, None);
    let plan =
        check(&silent, "Applied=True/ResourcesExist; Available=False/JobFailed; Health=True/NoErrors; next in 60 s");
    assert!(
        plan.because.contains("BackoffLimitExceeded: too often; retrying with another Job in 60 s"),
        "{}",
        plan.because
    );
}

#[test]
fn drift_is_repaired_at_once_and_repeated_drift_after_a_back_off() {
    let repaired =
        "record copies; start Apply 1; Applied=True/ResourcesCreated; Health=True/NoErrors; Available=False/Drifted";
    let missing = OutputState::Missing("secret clusters-cls-1/cls-1-pull-secret".to_owned());
    let without_job = World { last_report: report(3, "True", &json!({})), output: missing.clone(), ..world() };
    let plan = check(&without_job, repaired);
    assert_eq!(plan.because, "secret clusters-cls-1/cls-1-pull-secret was deleted");
    let done = |attempt| {
        let job = job(3, Some(JobEnd::Complete), 5, attempt);
        World { output: missing.clone(), ..world() }.with(job, Purpose::Apply, Some(outcome(0, "SecretStored")))
    };
    check(&done(1), &repaired.replace("Apply 1", "Apply 2 replacing pullsecret-cls-1-gen3"));
    check(&done(2), "Applied=True/ResourcesExist; Available=False/Drifted; Health=True/NoErrors; next in 115 s");
}

/// A Job that is replaced is gone before the next one exists, and later its time to live is over.
#[test]
fn the_number_of_an_attempt_outlives_its_job() {
    let missing = OutputState::Missing("secret clusters-cls-1/cls-1-pull-secret".to_owned());
    let done = |attempt| {
        let job = job(3, Some(JobEnd::Complete), 3_000, attempt);
        World { output: missing.clone(), ..world() }.with(job, Purpose::Apply, Some(outcome(0, "SecretStored")))
    };
    let attempt = |plan: &Plan| plan.starts_run().map(|run| (run.attempt, run.replaces.is_some()));
    let replacing = done(4).decide();
    assert_eq!(attempt(&replacing), Some((5, true)));
    // The Job was deleted, and the next one not created yet.
    let reported = |data: &Value| World { last_report: report(3, "True", data), output: missing.clone(), ..world() };
    let gone = |seconds: i64| {
        let mut data = replacing.data.clone();
        data["attempt"]["ended"] = json!(now() - jiff::SignedDuration::from_secs(seconds));
        reported(&Value::Object(data))
    };
    assert_eq!(attempt(&gone(3_000).decide()), Some((5, false)));
    // Its time to live is over, its back-off is not.
    let mut patient = config();
    patient.given.spec.job_template.keep_finished = Duration::from_mins(5);
    let waiting = gone(301).decide_with(&patient);
    assert_eq!((attempt(&waiting), waiting.requeue_after), (None, Some(Duration::from_secs(480 - 301))));
    assert_eq!(waiting.data["attempt"]["number"], 4, "{:?}", waiting.data);
    assert_eq!(attempt(&gone(481).decide_with(&patient)), Some((5, false)));
    // After two hours without another attempt, or for another generation or purpose, counting begins again.
    assert_eq!(attempt(&gone(7_200).decide()), Some((1, false)));
    let rotated = World { last_report: report(2, "True", &Value::Object(replacing.data.clone())), ..world() };
    let mut other = replacing.data.clone();
    other["attempt"]["generation"] = json!(2);
    assert_eq!(
        attempt(&World { last_report: report(2, "True", &Value::Object(other)), ..rotated }.decide()),
        Some((1, false))
    );
    let deleted = World { last_report: report(3, "True", &Value::Object(replacing.data.clone())), ..deleted() };
    assert_eq!(attempt(&deleted.decide()), Some((1, false)));
    // The first attempt is not worth a record.
    assert_eq!(done(1).decide().data["attempt"]["number"], 1);
    let steady = World { output: OutputState::InSync, ..done(1) }.decide();
    assert_eq!(steady.data.get("attempt"), None);
}

#[test]
fn a_failed_run_is_counted_when_its_job_is_gone() {
    let failed = world().with(job(3, Some(broken()), 3_600, 6), Purpose::Apply, Some(outcome(75, "StoreUnavailable")));
    let plan = failed.decide();
    assert_eq!(plan.starts_run().map(|run| run.attempt), Some(7));
    let gone = World { last_report: report(3, "False", &Value::Object(plan.data)), ..world() }.decide();
    assert_eq!(gone.starts_run().map(|run| run.attempt), Some(7));
}

#[test]
fn an_unmanaged_secret_is_reported_and_not_changed() {
    let unmanaged = OutputState::Unmanaged("secret a/b is unmanaged".to_owned());
    let world = World { last_report: report(3, "True", &json!({})), output: unmanaged, ..world() };
    check(&world, "Applied=False/NameConflict; Available=False/NameConflict; Health=True/NoErrors");
}

#[test]
fn a_run_that_was_superseded_is_not_available() {
    let superseded = world().with(job(3, Some(JobEnd::Complete), 5, 1), Purpose::Apply, Some(outcome(0, "Superseded")));
    check(&superseded, "Applied=True/ResourcesExist; Available=False/Superseded; Health=True/NoErrors");
}

/// The API's database is older than what was stored: what the Job has left must not be forgotten.
#[test]
fn a_deletion_that_was_superseded_is_not_complete() {
    let superseded = |ended| {
        let job = job(3, Some(JobEnd::Complete), ended, 1);
        deleted().with(job, Purpose::Delete, Some(outcome(0, "Superseded")))
    };
    let plan = check(
        &superseded(0),
        "Applied=True/ResourcesExist; Available=False/Superseded; Health=False/DeletionError; \
         Finalized=False/AdapterUnhealthy; next in 1800 s",
    );
    assert!(
        plan.because.contains("has deleted nothing: a detail; if the API's database was restored"),
        "{}",
        plan.because
    );
    let plan = superseded(1800).decide();
    assert_eq!(plan.starts_run().map(|run| (run.purpose, run.attempt)), Some((Purpose::Delete, 2)));
}

#[test]
fn a_deletion_stops_applying_jobs_then_cleans_up_then_confirms() {
    let in_progress = "Available=False/CleanupInProgress; Health=True/NoErrors; Finalized=False/CleanupInProgress";
    let applying = deleted().with(job(2, None, 0, 1), Purpose::Apply, None);
    check(&applying, &format!("delete pullsecret-cls-1-gen2; Applied=True/ResourcesExist; {in_progress}"));
    let stopping = deleted().with(ObservedJob { is_terminating: true, ..job(2, None, 0, 1) }, Purpose::Apply, None);
    check(&stopping, &format!("Applied=True/ResourcesExist; {in_progress}"));
    check(&deleted(), &format!("start Delete 1; Applied=True/ResourcesCreated; {in_progress}"));
    let cleaning = deleted().with(job(3, None, 0, 1), Purpose::Delete, None);
    check(&cleaning, &format!("Applied=True/ResourcesExist; {in_progress}"));
    let removed = deleted().with(job(2, Some(JobEnd::Complete), 60, 1), Purpose::Apply, None).with(
        job(3, Some(JobEnd::Complete), 1, 1),
        Purpose::Delete,
        Some(outcome(0, "SecretDeleted")),
    );
    let confirmed = "Applied=False/CleanupConfirmed; Available=False/CleanupConfirmed; Health=True/NoErrors; \
                     Finalized=True/CleanupConfirmed";
    check(&removed, &format!("delete pullsecret-cls-1-gen2; {confirmed}"));
}

#[test]
fn what_is_created_during_the_clean_up_is_removed_again() {
    let decided = |seconds| {
        let applying = job(2, Some(JobEnd::Complete), seconds, 1);
        let cleanup = job(3, Some(JobEnd::Complete), 0, 1);
        let world = deleted().with(applying, Purpose::Apply, None);
        render(&world.with(cleanup, Purpose::Delete, Some(outcome(0, "SecretDeleted"))).decide())
    };
    assert!(decided(-1).starts_with("start Delete 2 replacing pullsecret-cls-1-gen3; "), "{}", decided(-1));
    assert!(decided(0).contains("Finalized=True"), "{}", decided(0));
}

#[test]
fn a_failed_clean_up_is_reported_and_repeated() {
    let failed = deleted().with(job(3, Some(broken()), 0, 1), Purpose::Delete, Some(outcome(4, "PermissionDenied")));
    check(
        &failed,
        "Applied=True/ResourcesExist; Available=False/PermissionDenied; Health=False/DeletionError; \
         Finalized=False/AdapterUnhealthy; next in 1800 s",
    );
}

#[test]
fn a_cluster_that_never_had_a_run_needs_no_clean_up() {
    let mut world = deleted();
    *world.resource.spec.pointer_mut("/gcp").unwrap() = json!({});
    let plan = world.decide();
    assert_eq!(plan.condition("Finalized").unwrap().status, Status::True);
    assert!(plan.actions.is_empty() && plan.because.starts_with("nothing was created"), "{}", plan.because);
}

#[test]
fn quota_and_refusals_change_the_conditions() {
    let delayed = world().decide().delayed("proj-1", Duration::from_secs(2));
    assert_eq!(
        render(&delayed),
        "Health=True/NoErrors; Applied=False/WaitingForQuota; Available=False/WaitingForQuota; next in 2 s"
    );
    let refused = world().decide().refused(Reason::ResourceCreationFailed, "no");
    assert_eq!(
        render(&refused),
        "Applied=False/ResourceCreationFailed; Available=False/ResourceCreationFailed; Health=False/KubernetesAPIFailure"
    );
}

#[rstest]
#[case::no_job_any_more(None, true)]
#[case::read_after_the_run(Some(60), true)]
#[case::read_a_second_after_the_run(Some(1), true)]
#[case::read_in_the_second_in_which_the_run_ended(Some(0), false)]
#[case::repaired_since(Some(-60), false)]
fn what_a_check_has_found_in_the_store_is_repaired_once(#[case] ended: Option<i64>, #[case] is_repaired: bool) {
    let stored = Some(StoredDrift { message: "secret s of project p does not exist any more".to_owned(), read: now() });
    let mut world = World { last_report: report(3, "True", &json!({})), stored, ..world() };
    if let Some(ended) = ended {
        world = world.with(job(3, Some(JobEnd::Complete), ended, 1), Purpose::Apply, Some(outcome(0, "SecretStored")));
    }
    let plan = world.decide();
    assert_eq!(plan.starts_run().is_some(), is_repaired, "{plan:?}");
    let available = plan.condition("Available").unwrap();
    assert_eq!(available.reason, if is_repaired { "StoreDrifted" } else { "SecretStored" });
    assert_eq!(available.message.contains("does not exist any more; a Job repairs it"), is_repaired);
}
