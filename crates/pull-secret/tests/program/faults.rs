//! A store that fails, throttles, loses answers and denies.

use std::time::Duration;

use emulators::secret_manager::Settings;
use rstest::rstest;
use secret_store::SecretStore as _;

use testkit::rig::{Outcome, Rig, Signal, number, pull_secret, secret, signal};

async fn run_with(faults: &[&str]) -> (Rig, Outcome) {
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let rig = Rig::with(Settings { faults, ..Settings::default() }).await;
    let outcome = rig.run(&mut rig.job(&pull_secret("a"))).await;
    (rig, outcome)
}

/// Faults that the Job gets over: afterwards there is one secret with one version.
#[rstest]
#[case::an_unanswered_creation(&["createSecret:commit-then-timeout"])]
#[case::an_unanswered_addition(&["addVersion:commit-then-timeout"])]
#[case::a_connection_cut_after_creation(&["createSecret:commit-then-cut"])]
#[case::a_connection_cut_after_addition(&["addVersion:commit-then-cut"])]
#[case::both(&["createSecret:commit-then-cut", "addVersion:commit-then-timeout"])]
#[case::throttled_twice(&["addVersion:resource-exhausted*2"])]
#[case::throttled_with_a_wish(&["createSecret:resource-exhausted(retry-after=2s)"])]
#[case::the_store_away_three_times(&["getSecret:unavailable*3"])]
#[case::an_addition_that_fails_three_times(&["addVersion:internal*3"])]
#[case::an_unreadable_version_once(&["accessVersion:deadline-exceeded"])]
#[case::a_cut_connection(&["*:cut@2"])]
#[tokio::test(flavor = "multi_thread")]
async fn transient_faults_are_got_over_without_a_second_version(#[case] faults: &[&str]) {
    let (rig, outcome) = run_with(faults).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "SecretStored"), "{outcome:#?}");
    assert_eq!(rig.versions().await, ["a"], "{outcome:#?}");
    let retries = outcome.operations().iter().filter(|operation| *operation == "retry").count();
    assert!(retries >= 1, "every retry is logged: {outcome:#?}");
    let again = rig.stored("a").await;
    assert_eq!(again.reason(), "SecretUnchanged");
}

/// Faults that end the run: code, reason, and what the message must say.
#[rstest]
#[case::unavailable_throughout(&["*:unavailable*0"], 75, "StoreUnavailable", "the store is unavailable")]
#[case::throttled_throughout(&["addVersion:resource-exhausted*0"], 75, "QuotaExceeded", "ask for a higher")]
#[case::creation_denied(&["createSecret:permission-denied"], 4, "PermissionDenied", "secretmanager.secrets.create")]
#[case::addition_denied(&["addVersion:permission-denied"], 4, "PermissionDenied", "secretmanager.versions.add")]
#[case::metadata_denied(&["getSecret:permission-denied"], 4, "PermissionDenied", "secretmanager.secrets.get")]
#[case::reading_denied(&["accessVersion:permission-denied"], 4, "PermissionDenied", "secretmanager.versions.access")]
#[case::not_authenticated(&["*:unauthenticated"], 4, "Unauthenticated", "gcloud auth application-default login")]
#[case::an_invalid_request(&["createSecret:invalid-argument"], 2, "InvalidRequest", "rejects the request as invalid")]
#[tokio::test(flavor = "multi_thread")]
async fn other_faults_end_the_run_and_say_what_to_do(
    #[case] faults: &[&str],
    #[case] code: i32,
    #[case] reason: &str,
    #[case] says: &str,
) {
    let (_rig, outcome) = run_with(faults).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(code), reason), "{outcome:#?}");
    assert!(outcome.message().contains(says), "{outcome:#?}");
    let errors = outcome.lines().iter().filter(|line| line["level"] == "error").count();
    assert_eq!(errors, 1, "a failure is logged once: {outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_can_be_repeated_once_its_cause_is_fixed() {
    let (rig, outcome) = run_with(&["addVersion:permission-denied"]).await;
    assert_eq!(outcome.code, Some(4));
    rig.stored("a").await;
    assert_eq!(rig.versions().await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_run_ends_within_its_time() {
    let rig = Rig::new().await;
    rig.emulator.inject("getSecret:hang*0".parse().unwrap());
    let outcome = rig.run(rig.job(&pull_secret("a")).env("RUN_TIMEOUT", "1s")).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(75), "DeadlineExceeded"), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_not_answered_ends_within_its_own_time_and_is_retried() {
    let rig = Rig::new().await;
    rig.emulator.inject("getSecret:hang".parse().unwrap());
    let outcome = rig.run(rig.job(&pull_secret("a")).env("GCP_API_TIMEOUT", "2s")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_refused() {
    let rig = Rig::new().await;
    let mut job = rig.job(&pull_secret("a"));
    job.env("SECRET_MANAGER_EMULATOR_HOST", "127.0.0.1:9");
    let outcome = rig.run(&mut job).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(75), "StoreUnavailable"), "{outcome:#?}");
    assert!(outcome.message().to_lowercase().contains("refused"), "{outcome:#?}");
}

#[rstest]
#[case("disabled")]
#[case("destroyed")]
#[tokio::test(flavor = "multi_thread")]
async fn a_newest_version_that_cannot_be_read_is_covered_by_a_new_one(#[case] state: &str) {
    let rig = Rig::new().await;
    rig.stored("a").await;
    if state == "destroyed" {
        rig.store.destroy_version(&secret(), number(1)).await.unwrap();
    } else {
        rig.disable(1).await;
    }
    let outcome = rig.stored("a").await;
    assert_eq!(outcome.reason(), "SecretStored");
    assert_eq!(rig.versions().await, [state, "a"]);
    assert!(outcome.message().contains(state), "{outcome:#?}");
}

#[rstest]
#[case::managed_by_another(&[("managed-by", "terraform"), ("cluster-id", "cls-123")])]
#[case::of_another_cluster(&[("managed-by", "hyperfleet"), ("cluster-id", "cls-999")])]
#[case::unlabelled(&[])]
#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_secret_is_not_touched_and_does_not_block_a_deletion(#[case] labels: &[(&str, &str)]) {
    let rig = Rig::new().await;
    rig.unmanaged(labels).await;
    let calls = rig.calls();
    let outcome = rig.run(&mut rig.job(&pull_secret("a"))).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(5), "NameConflict"), "{outcome:#?}");
    assert_eq!(rig.methods_since(calls), ["getSecret"], "an unmanaged secret is not even read");
    assert!(outcome.message().contains("set SECRET_NAME"), "{outcome:#?}");
    // A label that made it this cluster's would let the next deletion destroy it.
    assert!(!outcome.message().contains("gcloud"), "{outcome:#?}");
    let delete = rig.run(rig.job("").arg("--delete")).await;
    assert_eq!((delete.code, delete.reason()), (Some(0), "UnmanagedSecretKept"), "{delete:#?}");
    assert_eq!(rig.versions().await, ["theirs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_during_a_wait_ends_the_job_at_once() {
    let rig = Rig::new().await;
    // The server's Retry-After makes the wait so long that only the signal can end it in time.
    rig.emulator.inject("getSecret:unavailable(retry-after=100s)*0".parse().unwrap());
    let job = rig.job(&pull_secret("a")).spawn().unwrap();
    rig.emulator.wait_for_calls(1).await;
    rig.answered(1).await;
    signal(&job, Signal::TERM);
    let outcome = tokio::time::timeout(Duration::from_mins(1), rig.finish(job)).await.unwrap();
    assert_eq!((outcome.code, outcome.reason()), (Some(143), "Interrupted"), "{outcome:#?}");
    assert_eq!(rig.calls(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_the_result_does_not_undo_what_was_done() {
    let rig = Rig::new().await;
    let mut job = rig.job(&pull_secret("a"));
    job.env("RESULTS_PATH", "/dev/full/result.json").env("TERMINATION_LOG_PATH", "/dev/full");
    let refused = rig.run(&mut job).await;
    assert_eq!(refused.code, Some(2), "a folder that is none is refused at the start: {refused:#?}");
    let outcome = rig.run(rig.job(&pull_secret("a")).env("TERMINATION_LOG_PATH", "/dev/full")).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "SecretStored"), "{outcome:#?}");
    assert!(outcome.operations().contains(&"write-result".to_owned()), "{outcome:#?}");
}
