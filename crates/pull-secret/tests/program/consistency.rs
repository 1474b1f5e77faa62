//! A store whose metadata, lists and `latest` lag by a minute.

use std::time::Duration;

use emulators::secret_manager::Settings;
use tokio::process::Child;

use testkit::rig::{Outcome, Rig, pull_secret};

const LAG: Duration = Duration::from_mins(1);

async fn lagging() -> Rig {
    Rig::with(Settings { metadata_lag: LAG, ..Settings::default() }).await
}

/// Lets the minute pass once the Job has met the lag, that is after so many calls.
async fn finish_after(rig: &Rig, job: Child, calls: usize) -> Outcome {
    rig.emulator.wait_for_calls(calls).await;
    rig.emulator.advance_clock(LAG);
    rig.finish(job).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_run_does_not_depend_on_metadata() {
    let rig = lagging().await;
    let outcome = rig.stored("a").await;
    assert_eq!(outcome.reason(), "SecretStored");
    rig.emulator.advance_clock(LAG);
    assert_eq!(rig.versions().await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_does_not_show_yet_is_waited_for() {
    let rig = lagging().await;
    rig.stored("a").await;
    let calls = rig.calls();
    let job = rig.job(&pull_secret("a")).spawn().unwrap();
    // It observes, gets a conflict when it creates the secret, observes again, and so on.
    let outcome = finish_after(&rig, job, calls + 4).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "SecretUnchanged"), "{outcome:#?}");
    assert_eq!(rig.versions().await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_right_after_another_waits_for_the_metadata_and_adds_one_version() {
    let rig = lagging().await;
    rig.stored("a").await;
    rig.emulator.advance_clock(LAG);
    rig.stored("b").await;
    let calls = rig.calls();
    let job = rig.job(&pull_secret("c")).spawn().unwrap();
    // getSecret, versions 1 to 3, and a claim with an old etag, twice.
    let outcome = finish_after(&rig, job, calls + 10).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "SecretStored"), "{outcome:#?}");
    rig.emulator.advance_clock(LAG);
    assert_eq!(rig.versions().await, ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_run_needs_no_fresh_metadata() {
    let rig = lagging().await;
    rig.stored("a").await;
    rig.emulator.advance_clock(LAG);
    rig.stored("b").await;
    let job = rig.job(&pull_secret("b")).spawn().unwrap();
    let calls = rig.calls();
    let outcome = finish_after(&rig, job, calls + 4).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    rig.emulator.advance_clock(LAG);
    assert_eq!(rig.versions().await, ["a", "b"]);
}
