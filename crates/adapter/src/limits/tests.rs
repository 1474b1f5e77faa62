//! Quotas in time: writes, concurrent runs, order of waiting runs, several stores.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn limits(writes_per_minute: u32, runs_at_once: u32) -> Limits {
    Limits::new(Quota { writes_per_minute, writes_per_run: 4, runs_at_once })
}

/// Starts a run in one project.
fn try_start(limits: &mut Limits, project: &str, run: &str, resource: &str, now: Instant) -> Result<(), Duration> {
    limits.try_start(&[project.to_owned()], run, resource, now).map_err(|delay| {
        assert_eq!(delay.project, project);
        delay.wait
    })
}

/// Runs that start one after the other and end at once.
fn start_and_end(limits: &mut Limits, runs: std::ops::Range<u32>, now: Instant) {
    for run in runs {
        let run = run.to_string();
        assert_eq!(try_start(limits, "p", &run, "a", now), Ok(()));
        limits.finish("p", &run, Some(now), now);
    }
}

#[tokio::test(start_paused = true)]
async fn no_minute_has_more_writes_than_the_quota() {
    let (mut limits, start) = (limits(600, 0), Instant::now());
    start_and_end(&mut limits, 0..75, start);
    let half = start + 30 * SECOND;
    start_and_end(&mut limits, 75..150, half);
    assert_eq!(
        try_start(&mut limits, "p", "next", "a", half),
        Err(30 * SECOND),
        "until the first have left the minute"
    );
    assert_eq!(try_start(&mut limits, "other", "next", "a", half), Ok(()));
    let minute = start + WINDOW;
    let started = (0..1_000).filter(|run| try_start(&mut limits, "p", &format!("b{run}"), "a", minute).is_ok()).count();
    assert_eq!(started, 74, "one earlier run still waits");
}

#[tokio::test(start_paused = true)]
async fn the_share_of_the_busiest_project_is_known() {
    let (mut limits, start) = (limits(8, 0), Instant::now());
    assert_eq!(try_start(&mut limits, "p", "a", "a", start), Ok(()));
    assert_eq!(try_start(&mut limits, "other", "b", "b", start), Ok(()));
    limits.finish("p", "a", Some(start), start);
    limits.charge("p", "a", Spent { writes: 6, silent_pods: 0 });
    assert!((limits.used(start) - 0.75).abs() < 0.001);
    assert!((limits.used(start + WINDOW) - 0.5).abs() < 0.001, "the other still runs");
}

#[tokio::test(start_paused = true)]
async fn a_run_counts_as_long_as_its_job_may_write() {
    let (mut limits, start) = (limits(8, 0), Instant::now());
    for run in ["a", "b"] {
        assert_eq!(try_start(&mut limits, "p", run, run, start), Ok(()));
    }
    let hour = start + 60 * WINDOW;
    assert!(try_start(&mut limits, "p", "c", "c", hour).is_err(), "an outage has delayed both; they may write now");
    limits.finish("p", "a", None, hour);
    assert_eq!(try_start(&mut limits, "p", "c", "c", hour), Err(WINDOW), "it may have written just before its end");
    assert_eq!(try_start(&mut limits, "p", "c", "c", hour + WINDOW), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_writes_that_a_job_reports_replace_the_estimate() {
    let (mut limits, now) = (limits(12, 0), Instant::now());
    start_and_end(&mut limits, 0..3, now);
    assert!(try_start(&mut limits, "p", "c", "c", now).is_err());
    limits.charge("p", "0", Spent { writes: 0, silent_pods: 0 });
    assert_eq!(try_start(&mut limits, "p", "c", "c", now), Ok(()), "one had nothing to write");
    assert!(try_start(&mut limits, "p", "d", "cls-d", now).is_err());
    limits.charge("p", "2", Spent { writes: 0, silent_pods: 0 });
    assert_eq!(limits.finish("p", "0", Some(now), now), ["cls-d"], "its wait ended early");
    limits.charge("p", "1", Spent { writes: 3, silent_pods: 2 });
    assert_eq!(limits.projects["p"].ended.iter().map(|ended| ended.writes).collect::<Vec<_>>(), [0, 11, 0]);
}

/// A run with a mirror writes to two stores, and waits for both before it takes anything of either.
#[tokio::test(start_paused = true)]
async fn a_run_with_a_mirror_counts_in_both_stores() {
    let (mut limits, now) = (limits(8, 0), Instant::now());
    let both = |first: &str| [first.to_owned(), "mirror".to_owned()];
    assert_eq!(limits.try_start(&both("p"), "a", "cls-a", now), Ok(()));
    assert_eq!(limits.try_start(&both("q"), "b", "cls-b", now), Ok(()));
    assert_eq!(limits.running(), 2, "each is one run");
    let delay = limits.try_start(&both("q"), "c", "cls-c", now).unwrap_err();
    assert_eq!((delay.project.as_str(), limits.running()), ("mirror", 2));
    assert_eq!(try_start(&mut limits, "q", "d", "cls-d", now), Ok(()), "it has taken nothing of the first store");
    limits.finish("p", "a", Some(now), now);
    limits.finish("mirror", "a", Some(now), now);
    limits.charge("p", "a", Spent { writes: 1, silent_pods: 0 });
    limits.charge("mirror", "a", Spent { writes: 0, silent_pods: 0 });
    let delay = limits.try_start(&both("q"), "c", "cls-c", now).unwrap_err();
    assert_eq!(delay.project, "q", "the mirror is free, and now the first store is not");
    limits.release("q", "d");
    assert_eq!(limits.try_start(&both("q"), "c", "cls-c", now), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn waiting_runs_start_in_order() {
    let (mut limits, start) = (limits(60, 0), Instant::now());
    for run in 0..15 {
        start_and_end(&mut limits, run..run + 1, start + run * SECOND);
    }
    let now = start + 15 * SECOND;
    let wait =
        |limits: &mut Limits, run: &str, at| try_start(limits, "p", run, run, at).err().map(|wait| wait.as_secs());
    let waits: Vec<_> = ["a", "b", "c", "a"].map(|run| wait(&mut limits, run, now)).into();
    assert_eq!(waits, [Some(45), Some(46), Some(47), Some(45)], "asking twice costs nothing");
    let then = now + 46 * SECOND;
    assert_eq!(["d", "c", "b", "a"].map(|run| wait(&mut limits, run, then)), [Some(2), Some(1), None, None]);
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_runs_ask_one_after_the_other() {
    let (mut limits, now) = (limits(60, 0), Instant::now());
    let waits: Vec<_> =
        (0..1_000).filter_map(|run| try_start(&mut limits, "p", &run.to_string(), "a", now).err()).collect();
    assert_eq!(waits.len(), 985);
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(waits.iter().filter(|wait| **wait <= WINDOW).count() <= 15, "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_adapter_counts_what_has_just_ended() {
    let (mut limits, now) = (limits(4, 0), Instant::now() + 60 * WINDOW);
    limits.finish("p", "long-ago", Some(now - 2 * WINDOW), now);
    assert!(limits.projects.is_empty());
    for _again in 0..2 {
        limits.finish("p", "just-now", Some(now - 20 * SECOND), now);
    }
    assert_eq!(try_start(&mut limits, "p", "a", "a", now), Err(40 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn concurrent_runs_are_limited() {
    let (mut limits, now) = (limits(0, 2), Instant::now());
    assert!(try_start(&mut limits, "p", "a", "cls-a", now).is_ok());
    limits.mark_running("p", "b");
    for resource in ["cls-c", "cls-d", "cls-c"] {
        assert_eq!(try_start(&mut limits, "p", "c", resource, now), Err(MAX_SLOT_WAIT));
    }
    assert!(try_start(&mut limits, "p", "a", "cls-a", now).is_ok(), "it has a slot already");
    assert_eq!(
        limits.finish("p", "b", None, now),
        ["cls-c"],
        "each end frees one slot, for the resource that came first"
    );
    assert!(try_start(&mut limits, "p", "c", "cls-c", now).is_ok());
    assert_eq!(limits.running(), 2);
    for run in ["a", "c"] {
        drop(limits.finish("p", run, None, now));
    }
    assert!(limits.projects.is_empty());
}
