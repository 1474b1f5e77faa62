//! Discarded reports (204), and the order of the checks.

use serde_json::json;

use crate::rig::{DONE, Rig, merged, path_of, report, time};

rules! {
    shared: future_generations older_generations older_times a_clock_that_is_ahead_does_not_silence_the_right_one
        a_stale_incomplete_report_is_discarded_not_refused unknown_counts_once a_newer_generation_beats_the_clock
        adapters_do_not_disturb_each_other;
    own: ;
}

/// A cluster at generation 3.
async fn cluster(rig: &Rig) -> String {
    let path = path_of(&rig.cluster(json!({})).await);
    for n in 1..=2 {
        rig.ask(&format!("PATCH {path}"), json!({ "spec": { "n": n } })).await.is(200);
    }
    path
}

async fn stored(rig: &Rig, path: &str) -> serde_json::Value {
    rig.get(&format!("{path}/statuses")).await.is(200).body()["items"].clone()
}

async fn future_generations(rig: &Rig) {
    let path = cluster(rig).await;
    let answer = rig.report(&path, report("a", 4, DONE)).await.is(204);
    assert!(answer.bytes.is_empty());
    rig.report(&path, report("a", i32::MAX.into(), DONE)).await.is(204);
    assert_eq!(stored(rig, &path).await, json!([]));
    rig.report(&path, report("a", 3, DONE)).await.is(201);
}

async fn older_generations(rig: &Rig) {
    let path = cluster(rig).await;
    rig.report(&path, report("a", 2, DONE)).await.is(201);
    let before = stored(rig, &path).await;
    rig.report(&path, report("a", 1, DONE)).await.is(204);
    rig.report(&path, merged(report("a", 1, DONE), json!({ "observed_time": time(60) }))).await.is(204);
    assert_eq!(stored(rig, &path).await, before);
}

async fn older_times(rig: &Rig) {
    let path = cluster(rig).await;
    let at = |seconds: i64| merged(report("a", 3, DONE), json!({ "observed_time": time(seconds) }));
    rig.report(&path, at(-10)).await.is(201);
    let before = stored(rig, &path).await;
    rig.report(&path, at(-20)).await.is(204);
    assert_eq!(stored(rig, &path).await, before);
    rig.report(&path, at(-5)).await.is(201);
    assert_ne!(stored(rig, &path).await, before);
}

/// Otherwise its reports would be dropped for as long as the wrong clock is ahead.
async fn a_clock_that_is_ahead_does_not_silence_the_right_one(rig: &Rig) {
    let path = cluster(rig).await;
    let start = jiff::Timestamp::now();
    let at = |seconds: i64, n: i64| {
        let observed = (start + jiff::SignedDuration::from_secs(seconds)).to_string();
        merged(report("a", 3, DONE), json!({ "observed_time": observed, "data": { "n": n } }))
    };
    let now = async || stored(rig, &path).await[0]["data"]["n"].clone();
    rig.report(&path, at(240, 1)).await.is(201);
    rig.report(&path, at(200, 2)).await.is(204);
    assert_eq!(now().await, 1, "the order of its own reports holds");
    rig.report(&path, at(-1, 3)).await.is(201);
    assert_eq!(now().await, 3);
    rig.report(&path, at(-5, 4)).await.is(204);
    rig.report(&path, at(5, 5)).await.is(201);
    rig.report(&path, at(-1, 6)).await.is(204);
    assert_eq!(now().await, 5, "a few seconds are the usual difference of clocks");
}

async fn a_stale_incomplete_report_is_discarded_not_refused(rig: &Rig) {
    let path = cluster(rig).await;
    rig.report(&path, report("a", 2, DONE)).await.is(201);
    rig.report(&path, report("a", 9, "")).await.is(204);
    rig.report(&path, report("a", 1, "Available=True")).await.is(204);
    rig.report(&path, merged(report("a", 2, ""), json!({ "observed_time": time(-60) }))).await.is(204);
    // An invalid report is refused nevertheless.
    rig.report(&path, report("a", 9, "Available=maybe")).await.problem("400 VAL-000");
    rig.report(&path, merged(report("a", 9, DONE), json!({ "observed_time": time(900) }))).await.problem("400 VAL-000");
    rig.report(&path, report("a", 2, "Available=True")).await.problem("400 VAL-000");
    // A report with `Unknown` must be complete to be discarded.
    rig.report(&path, report("a", 2, "Available=Unknown Applied=True")).await.problem("400 VAL-000");
}

async fn unknown_counts_once(rig: &Rig) {
    let path = cluster(rig).await;
    let unknown = "Available=Unknown Applied=True Health=True";
    let before = rig.get(&path).await.is(200).body()["status"]["conditions"].clone();
    rig.report(&path, report("dns", 3, unknown)).await.is(201);
    assert_eq!(stored(rig, &path).await[0]["conditions"][0]["status"], "Unknown");
    assert_eq!(rig.get(&path).await.is(200).body()["status"]["conditions"], before, "nothing follows from it");
    let first = stored(rig, &path).await;
    rig.report(&path, report("dns", 3, unknown)).await.is(204);
    assert_eq!(stored(rig, &path).await, first);
    rig.report(&path, report("dns", 3, DONE)).await.is(201);
    let known = stored(rig, &path).await;
    rig.report(&path, report("dns", 3, unknown)).await.is(204);
    rig.ask(&format!("POST {path}/statuses"), report("dns", 3, unknown)).await.is(204);
    assert_eq!(stored(rig, &path).await, known);
}

async fn a_newer_generation_beats_the_clock(rig: &Rig) {
    let path = cluster(rig).await;
    rig.report(&path, merged(report("a", 2, DONE), json!({ "observed_time": time(60) }))).await.is(201);
    rig.report(&path, merged(report("a", 3, DONE), json!({ "observed_time": time(-60) }))).await.is(201);
    assert_eq!(stored(rig, &path).await[0]["observed_generation"], 3);
}

async fn adapters_do_not_disturb_each_other(rig: &Rig) {
    let path = cluster(rig).await;
    rig.report(&path, report("a", 3, DONE)).await.is(201);
    rig.report(&path, report("b", 1, DONE)).await.is(201);
    rig.report(&path, merged(report("c", 3, DONE), json!({ "observed_time": time(-60) }))).await.is(201);
    assert_eq!(stored(rig, &path).await.as_array().unwrap().len(), 3);
}
