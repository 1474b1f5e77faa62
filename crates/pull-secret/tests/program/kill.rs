//! kill -9 at every step, then a run that must set everything right.

use std::collections::BTreeSet;

use testkit::rig::{Rig, pull_secret};

/// Stops the Job in its `call`th call, before or after the store has done it, and kills it there.
/// `false` when the Job makes no such call.
async fn killed_in(rig: &Rig, name: &str, call: usize, effect: &str) -> bool {
    let before = rig.calls();
    rig.emulator.inject(format!("*:{effect}@{call}").parse().unwrap());
    let mut job = rig.job(&pull_secret(name)).env("RETAIN_VERSIONS", "2").spawn().unwrap();
    let reached = tokio::select! {
        () = rig.emulator.wait_for_calls(before + call) => true,
        ended = job.wait() => { assert!(ended.unwrap().success()); false }
    };
    job.kill().await.unwrap();
    rig.emulator.clear_faults();
    reached
}

/// Stores `history`, kills the Job that stores `name` in each of its calls in turn, and runs it again.
async fn killed_everywhere(history: &[&str], name: &str, effect: &str) -> usize {
    for call in 1.. {
        let rig = Rig::new().await;
        for earlier in history {
            rig.run(rig.job(&pull_secret(earlier)).env("RETAIN_VERSIONS", "2")).await;
        }
        let reached = killed_in(&rig, name, call, effect).await;
        set_right(&rig, name, history.len() + 1, &format!("{effect} in call {call}")).await;
        if !reached {
            return call - 1;
        }
    }
    0
}

/// Runs the Job that was killed again, and once more: all is as if it had never been killed.
async fn set_right(rig: &Rig, name: &str, count: usize, what: &str) {
    let again = rig.run(rig.job(&pull_secret(name)).env("RETAIN_VERSIONS", "2")).await;
    assert_eq!(again.code, Some(0), "{what}: {again:#?}");
    let versions = rig.versions().await;
    assert_eq!(versions.last().map(String::as_str), Some(name), "{what}: {versions:?}");
    assert_eq!(versions.len(), count, "no duplicate version, {what}: {versions:?}");
    let live: Vec<_> = versions.iter().filter(|version| *version != "destroyed").collect();
    let contents: BTreeSet<_> = live.iter().collect();
    assert!(contents.len() == live.len() && live.len() <= 2, "{what}: {versions:?}");
    let calls = rig.calls();
    let unchanged = rig.run(rig.job(&pull_secret(name)).env("RETAIN_VERSIONS", "2")).await;
    assert_eq!(unchanged.reason(), "SecretUnchanged", "{what}");
    assert_eq!(rig.calls() - calls, 3, "nothing is left to do, {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_run_killed_before_each_call_is_done() {
    assert_eq!(killed_everywhere(&[], "a", "hang").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_run_killed_after_each_call_is_done() {
    assert_eq!(killed_everywhere(&[], "a", "commit-then-hang").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_killed_before_each_call_is_done() {
    assert_eq!(killed_everywhere(&["a", "b"], "c", "hang").await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_killed_after_each_call_is_done() {
    assert_eq!(killed_everywhere(&["a", "b"], "c", "commit-then-hang").await, 8);
}
