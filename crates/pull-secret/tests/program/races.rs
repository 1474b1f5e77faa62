//! Two and more copies of the Job at once.

use std::time::Duration;

use emulators::secret_manager::Settings;

use testkit::rig::{Outcome, Rig, Signal, pull_secret, signal};

use crate::line::Line;

/// A store that takes its time, so that the calls of several Jobs lie between each other.
async fn slow(milliseconds: u64) -> Rig {
    Rig::with(Settings { latency: Duration::from_millis(milliseconds), ..Settings::default() }).await
}

/// Every live version's content.
async fn live(rig: &Rig) -> Vec<String> {
    let versions = rig.versions().await;
    versions.into_iter().filter(|version| version != "destroyed").collect()
}

async fn together(rig: &Rig, copies: usize) -> Vec<Outcome> {
    let jobs: Vec<_> = (0..copies)
        .map(|copy| rig.job(&pull_secret("a")).env("RESULTS_PATH", rig.path(&copy.to_string())).spawn().unwrap())
        .collect();
    let mut outcomes = Vec::new();
    for job in jobs {
        outcomes.push(rig.finish(job).await);
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn two_copies_from_an_empty_start_leave_one_live_version_a_hundred_times() {
    let mut met = 0;
    for round in 0..100 {
        let rig = slow(1 + round % 25).await;
        let start = |copy: &str| rig.job(&pull_secret("a")).env("RESULTS_PATH", rig.path(copy)).spawn().unwrap();
        // The first one waits for the second where it has looked and has not written yet.
        let first = start("first");
        rig.emulator.wait_for_calls(1).await;
        signal(&first, Signal::STOP);
        let second = start("second");
        rig.emulator.wait_for_calls(2).await;
        signal(&first, Signal::CONT);
        let outcomes = [rig.finish(first).await, rig.finish(second).await];
        for outcome in &outcomes {
            assert_eq!(outcome.code, Some(0), "round {round}: {outcomes:#?}");
        }
        assert_eq!(live(&rig).await, ["a"], "round {round}: {outcomes:#?}");
        // `latest` is the highest number: it must be the live one.
        let versions = rig.versions().await;
        assert_eq!(versions.last().map(String::as_str), Some("a"), "round {round}: {versions:?}");
        assert_eq!(rig.annotations().await["hyperfleet-version"], versions.len().to_string(), "round {round}");
        met += usize::from(outcomes.iter().any(|outcome| outcome.operations().contains(&"observe-again".to_owned())));
    }
    assert!(met > 0, "the copies never met");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_copies_leave_one_live_version() {
    for round in 0..10 {
        let rig = slow(10 * (round % 5)).await;
        let outcomes = together(&rig, 5).await;
        assert!(outcomes.iter().all(|outcome| outcome.code == Some(0)), "round {round}: {outcomes:#?}");
        assert_eq!(live(&rig).await, ["a"], "round {round}: {outcomes:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_generations_at_once_the_newer_one_wins() {
    for round in 0..40 {
        let rig = slow(round % 20).await;
        rig.stored("a").await;
        let start = |name: &str, generation: &str| {
            let mut job = rig.job(&pull_secret(name));
            job.env("GENERATION", generation).env("RESULTS_PATH", rig.path(name)).spawn().unwrap()
        };
        let (older, newer) = if round % 2 == 0 {
            let older = start("b", "2");
            (older, start("c", "3"))
        } else {
            let newer = start("c", "3");
            (start("b", "2"), newer)
        };
        let (older, newer) = (rig.finish(older).await, rig.finish(newer).await);
        assert_eq!((older.code, newer.code), (Some(0), Some(0)), "round {round}: {older:#?} {newer:#?}");
        let versions = rig.versions().await;
        assert_eq!(versions.last().map(String::as_str), Some("c"), "round {round}: {versions:?} {older:#?} {newer:#?}");
        assert_eq!(versions.iter().filter(|version| *version == "c").count(), 1, "round {round}: {versions:?}");
        assert_eq!(rig.annotations().await["hyperfleet-generation"], "3", "round {round}");
    }
}

/// The answer to the older generation's claim is lost; when it looks again, the newer generation is done.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_generation_that_is_overtaken_at_its_claim_gives_way() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let calls = rig.calls();
    rig.emulator.inject("updateSecret:commit-then-hang".parse().unwrap());
    let older = rig.job(&pull_secret("b")).env("GENERATION", "2").env("GCP_API_TIMEOUT", "5s").spawn().unwrap();
    rig.emulator.wait_for_calls(calls + 4).await;
    signal(&older, Signal::STOP);
    let newer = rig.run(rig.job(&pull_secret("c")).env("GENERATION", "3").env("RESULTS_PATH", rig.path("c"))).await;
    assert_eq!(newer.code, Some(0), "{newer:#?}");
    signal(&older, Signal::CONT);
    let older = rig.finish(older).await;
    assert_eq!((older.code, older.reason()), (Some(0), "Superseded"), "{older:#?}");
    assert_eq!(rig.versions().await, ["a", "c"]);
}

/// The older generation stands still between its claim and its addition while the newer one does all its work.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_generation_that_is_overtaken_in_the_middle_puts_the_newer_content_back() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let calls = rig.calls();
    // getSecret, two versions, and the claim: it is stopped while it waits for the claim's answer.
    let line = Line::to(rig.emulator.address(), 3).await;
    let mut older = rig.job(&pull_secret("b"));
    older.env("GENERATION", "2").env("SECRET_MANAGER_EMULATOR_HOST", line.address.to_string());
    let older = older.spawn().unwrap();
    rig.answered(calls + 4).await;
    signal(&older, Signal::STOP);
    line.deliver(usize::MAX);
    let newer = rig.run(rig.job(&pull_secret("c")).env("GENERATION", "3").env("RESULTS_PATH", rig.path("c"))).await;
    assert_eq!(newer.code, Some(0), "{newer:#?}");
    assert_eq!(rig.versions().await, ["a", "c"]);
    signal(&older, Signal::CONT);
    let older = rig.finish(older).await;
    assert_eq!((older.code, older.reason()), (Some(0), "Superseded"), "{older:#?}");
    assert_eq!(rig.versions().await, ["a", "destroyed", "destroyed", "c"]);
    let record = rig.annotations().await;
    assert_eq!((record["hyperfleet-generation"].as_str(), record["hyperfleet-version"].as_str()), ("3", "4"));
    let newer = rig.run(rig.job(&pull_secret("c")).env("GENERATION", "3")).await;
    assert_eq!(newer.reason(), "SecretUnchanged", "{newer:#?}");
}
