//! One Job stands still, or dies, in the middle of its work while others do theirs.

use std::time::Duration;

use emulators::secret_manager::Settings;
use rstest::rstest;
use secrecy::SecretSlice;
use secret_store::{NewVersion, SecretStore as _, VersionNumber};
use tokio::process::Child;

use testkit::rig::{Outcome, Rig, Signal, number, pull_secret, secret, signal};

use crate::line::Line;

/// The call by which a run announces a version, after getSecret and two versions.
const CLAIM: usize = 4;
/// The call by which it adds the version.
const ADDITION: usize = CLAIM + 1;

async fn run(rig: &Rig, name: &str, generation: &str) -> Outcome {
    let outcome = rig.run(rig.job(&pull_secret(name)).env("GENERATION", generation)).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome
}

/// A Job that stands still while it waits for the answer to that call, which is done.
async fn stopped_in(rig: &Rig, name: &str, generation: &str, call: usize) -> Child {
    let line = Line::to(rig.emulator.address(), call - 1).await;
    let job = stopped_behind(&line, rig, name, generation, call).await;
    line.deliver(usize::MAX);
    job
}

/// The same; the line holds back the answer to that call.
async fn stopped_behind(line: &Line, rig: &Rig, name: &str, generation: &str, call: usize) -> Child {
    let calls = rig.calls();
    let mut job = rig.job(&pull_secret(name));
    job.env("GENERATION", generation).env("RESULTS_PATH", rig.path("stopped")).env("RETAIN_VERSIONS", "1");
    let job = job.env("SECRET_MANAGER_EMULATOR_HOST", line.address.to_string()).spawn().unwrap();
    rig.answered(calls + call).await;
    signal(&job, Signal::STOP);
    job
}

async fn go_on(rig: &Rig, job: Child) -> Outcome {
    signal(&job, Signal::CONT);
    rig.finish(job).await
}

/// Adds a version as an administrator might.
async fn by_hand(rig: &Rig, name: &str) {
    let content = SecretSlice::from(pull_secret(name).into_bytes());
    rig.store.add_version(&secret(), &NewVersion::without_record(VersionNumber::FIRST, &content)).await.unwrap();
}

async fn live(rig: &Rig) -> Vec<String> {
    let versions = rig.versions().await;
    assert_ne!(versions.last().map(String::as_str), Some("destroyed"), "`latest` can be read: {versions:?}");
    versions.into_iter().filter(|version| version != "destroyed").collect()
}

/// A rollback: the newer generation finds its content in place already, so it adds no version that could be missed.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_generation_does_not_cover_a_newer_one_that_had_nothing_to_add() {
    let rig = Rig::new().await;
    run(&rig, "a", "1").await;
    let older = stopped_in(&rig, "b", "2", CLAIM).await;
    assert_eq!(run(&rig, "a", "3").await.reason(), "SecretUnchanged");
    let older = go_on(&rig, older).await;
    assert_eq!(older.code, Some(0), "{older:#?}");
    assert_eq!(live(&rig).await, ["a"]);
    assert_eq!(run(&rig, "a", "3").await.reason(), "SecretUnchanged");
}

#[rstest]
#[case::killed(Signal::KILL)]
#[case::stopped(Signal::TERM)]
#[tokio::test(flavor = "multi_thread")]
async fn what_an_older_generation_has_left_on_top_is_repaired_by_its_next_run(#[case] end: Signal) {
    let rig = Rig::new().await;
    run(&rig, "a", "1").await;
    let line = Line::to(rig.emulator.address(), CLAIM - 1).await;
    let older = stopped_behind(&line, &rig, "b", "2", CLAIM).await;
    run(&rig, "c", "3").await;
    let calls = rig.calls();
    line.deliver(CLAIM);
    signal(&older, Signal::CONT);
    rig.answered(calls + 1).await;
    signal(&older, end);
    rig.finish(older).await;
    assert_eq!(rig.versions().await, ["a", "c", "b"]);
    assert_eq!(run(&rig, "b", "2").await.reason(), "Superseded");
    assert_eq!(live(&rig).await, ["a", "c"]);
}

/// The next run has other content, so that it does not continue with what it finds.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_a_killed_run_has_added_is_pruned_like_any_other() {
    let rig = Rig::new().await;
    run(&rig, "a", "1").await;
    let mut killed = stopped_in(&rig, "b", "2", ADDITION).await;
    killed.kill().await.unwrap();
    assert_eq!(rig.versions().await, ["a", "b"]);
    let next = rig.run(rig.job(&pull_secret("c")).env("GENERATION", "3").env("RETAIN_VERSIONS", "1")).await;
    assert_eq!(next.reason(), "SecretStored", "{next:#?}");
    assert_eq!(live(&rig).await, ["c"]);
}

/// The newer generation has announced, but dies before it adds: what the older one stored stays.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_generation_leaves_its_version_while_there_is_no_newer_one() {
    let rig = Rig::new().await;
    run(&rig, "a", "1").await;
    let older = stopped_in(&rig, "b", "2", CLAIM).await;
    let mut newer = stopped_in(&rig, "c", "3", CLAIM).await;
    let older = go_on(&rig, older).await;
    assert_eq!(older.code, Some(0), "{older:#?}");
    newer.kill().await.unwrap();
    assert_eq!(live(&rig).await, ["a", "b"]);
    assert_eq!(run(&rig, "b", "2").await.reason(), "Superseded");
    let next = rig.run(rig.job(&pull_secret("c")).env("GENERATION", "3").env("RETAIN_VERSIONS", "1")).await;
    assert_eq!(next.reason(), "SecretStored");
    assert_eq!(live(&rig).await, ["c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_added_by_hand_are_never_destroyed() {
    // Under the number that a killed run had announced.
    let rig = Rig::new().await;
    run(&rig, "a", "1").await;
    let mut killed = stopped_in(&rig, "b", "2", CLAIM).await;
    killed.kill().await.unwrap();
    by_hand(&rig, "e").await;
    rig.run(rig.job(&pull_secret("b")).env("RETAIN_VERSIONS", "1")).await;
    assert_eq!(live(&rig).await, ["e", "b"]);

    // Between announcing and adding.
    let rig = Rig::new().await;
    run(&rig, "a", "1").await;
    let job = stopped_in(&rig, "b", "2", CLAIM).await;
    by_hand(&rig, "e").await;
    go_on(&rig, job).await;
    assert_eq!(live(&rig).await, ["e", "b"]);

    // With the content that is current.
    let rig = Rig::new().await;
    rig.stored("a").await;
    rig.stored("b").await;
    by_hand(&rig, "b").await;
    rig.stored("b").await;
    rig.run(rig.job(&pull_secret("c")).env("RETAIN_VERSIONS", "1")).await;
    assert_eq!(rig.versions().await, ["destroyed", "destroyed", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_not_undone_by_a_run_that_was_under_way() {
    for call in [3, CLAIM] {
        let rig = Rig::new().await;
        run(&rig, "a", "1").await;
        let job = stopped_in(&rig, "b", "2", call).await;
        let deletion = rig.run(rig.job("").args(["--delete", "--generation", "3"])).await;
        assert_eq!(deletion.reason(), "SecretDeleted", "{deletion:#?}");
        let outcome = go_on(&rig, job).await;
        assert_eq!(outcome.code, Some(75), "{outcome:#?}");
        assert_eq!(rig.versions().await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_waits_until_the_secret_shows() {
    let minute = Duration::from_mins(1);
    let rig = Rig::with(Settings { metadata_lag: minute, ..Settings::default() }).await;
    rig.stored("a").await;
    let calls = rig.calls();
    let deletion = rig.job("").arg("--delete").spawn().unwrap();
    rig.emulator.wait_for_calls(calls + 4).await;
    rig.emulator.advance_clock(minute);
    let deletion = rig.finish(deletion).await;
    assert_eq!((deletion.code, deletion.reason()), (Some(0), "SecretDeleted"), "{deletion:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_without_a_generation_do_not_fight() {
    for round in 1..6 {
        let rig = Rig::with(Settings { latency: Duration::from_millis(5 * round), ..Settings::default() }).await;
        rig.stored("c").await;
        let start = |name: &str| rig.job(&pull_secret(name)).env("RESULTS_PATH", rig.path(name)).spawn().unwrap();
        for job in ["a", "b", "d"].map(start) {
            let outcome = rig.finish(job).await;
            assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        }
        let versions = rig.versions().await;
        assert!(versions.len() <= 4, "one version each: {versions:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_not_added_without_end() {
    let rig = Rig::new().await;
    rig.emulator.inject("accessVersion:not-found*0".parse().unwrap());
    let outcome = rig.run(&mut rig.job(&pull_secret("a"))).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(6), "VerificationFailed"), "{outcome:#?}");
    assert_eq!(outcome.result["details"]["versionsAdded"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_costs_a_list_and_no_more() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let mut metadata = rig.store.find(&secret()).await.unwrap().unwrap().metadata;
    metadata.annotations.insert("hyperfleet-version".to_owned(), u64::MAX.to_string());
    rig.store.update(&secret(), &metadata).await.unwrap();
    let calls = rig.calls();
    assert_eq!(rig.stored("a").await.reason(), "SecretUnchanged");
    assert!(rig.calls() - calls < 8, "{:?}", rig.methods_since(calls));
    assert_eq!(rig.annotations().await["hyperfleet-version"], number(1).to_string());
}
