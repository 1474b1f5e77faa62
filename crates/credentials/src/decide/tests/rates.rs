//! The calls of a registry by lane, and the size of a pool.

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;

use crate::decide::budget::{Budget, Eta, Grant, Work, eta, etas, grant, remaining};
use crate::decide::pool::{Pool, reserve};
use crate::state::Lane;

const MAX_WAIT_SECONDS: i64 = 900;
const UNUSED: Budget = Budget { next: Timestamp::UNIX_EPOCH, blocked_until: Timestamp::UNIX_EPOCH };

fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

/// Takes calls for a lane until it has to wait; returns their number.
fn drain(budget: &mut Budget, per_minute: u32, lane: Lane, now: Timestamp) -> u64 {
    let before = remaining(budget, per_minute, lane, now);
    let mut calls = 0;
    while let Grant::Granted(next) = grant(budget, per_minute, lane, now) {
        budget.next = next;
        calls += 1;
    }
    assert_eq!((before, remaining(budget, per_minute, lane, now)), (calls, 0), "what remains is what is granted");
    calls
}

#[test]
fn an_urgent_lane_has_calls_where_a_lower_one_has_none() {
    let mut budget = UNUSED;
    let lanes = [Lane::Audit, Lane::Refill, Lane::Rotation, Lane::NewCluster, Lane::BreakGlass];
    assert_eq!(lanes.map(|lane| drain(&mut budget, 60, lane, seconds(0))), [3, 3, 3, 3, 3]);
    assert_eq!(lanes.map(|lane| drain(&mut budget, 60, lane, seconds(1))), [0, 0, 0, 0, 1]);
}

#[rstest]
#[case(60, Lane::Rotation)]
#[case(7, Lane::BreakGlass)]
#[case(120, Lane::Audit)]
#[case(1, Lane::Audit)]
fn calls_keep_the_rate(#[case] per_minute: u32, #[case] lane: Lane) {
    let (mut budget, mut calls) = (UNUSED, 0);
    for second in 0..3600 {
        calls += drain(&mut budget, per_minute, lane, seconds(second));
    }
    let (exact, burst) = (u64::from(per_minute) * 60, u64::from(per_minute / 4).max(5));
    assert!((exact - 1..=exact + burst).contains(&calls), "{calls} calls in an hour");
}

#[test]
fn a_registry_that_is_exhausted_is_left_alone_until_the_stated_time() {
    let budget = Budget { blocked_until: seconds(30), ..UNUSED };
    assert_eq!(grant(&budget, 60, Lane::NewCluster, seconds(29)), Grant::Wait(seconds(30)));
    assert_eq!(remaining(&budget, 60, Lane::NewCluster, seconds(29)), 0);
    assert_eq!(grant(&budget, 60, Lane::Audit, seconds(30)), Grant::Granted(seconds(31)));
}

#[test]
fn a_revocation_at_once_is_tried_at_a_registry_that_is_exhausted() {
    let mut budget = Budget { blocked_until: seconds(30), ..UNUSED };
    assert_eq!(drain(&mut budget, 60, Lane::BreakGlass, seconds(29)), 15, "its rate holds");
}

#[rstest]
#[case::granted(Budget { next: seconds(MAX_WAIT_SECONDS + 1), ..UNUSED }, 0)]
#[case::blocked(Budget { blocked_until: seconds(MAX_WAIT_SECONDS + 1), ..UNUSED }, 0)]
#[case::near_grants_count(Budget { next: seconds(MAX_WAIT_SECONDS), ..UNUSED }, MAX_WAIT_SECONDS - 11)]
#[case::near_blocks_count(Budget { blocked_until: seconds(MAX_WAIT_SECONDS), ..UNUSED }, MAX_WAIT_SECONDS)]
fn a_clock_that_was_ahead_blocks_no_lane(#[case] budget: Budget, #[case] wait: i64) {
    let expected = if wait == 0 { Grant::Granted(seconds(1)) } else { Grant::Wait(seconds(wait)) };
    assert_eq!(grant(&budget, 60, Lane::NewCluster, seconds(0)), expected);
    assert_eq!(remaining(&budget, 60, Lane::NewCluster, seconds(0)) > 0, wait == 0);
}

#[test]
fn a_lane_waits_exactly_until_its_next_call() {
    let mut budget = UNUSED;
    drain(&mut budget, 60, Lane::BreakGlass, seconds(0));
    let Grant::Wait(until) = grant(&budget, 60, Lane::Audit, seconds(0)) else { panic!("it has no call") };
    assert_eq!(until, seconds(13));
    assert!(matches!(grant(&budget, 60, Lane::Audit, until), Grant::Granted(_)));
}

#[rstest]
#[case::calls(20_000, 60, 0, Some(20_000))]
#[case::soak(60, 60, 3600, Some(3660))]
#[case::no_rate(1, 0, 0, None)]
fn an_eta_follows_from_calls_and_rate(
    #[case] calls: u64,
    #[case] per_minute: u32,
    #[case] soak: u64,
    #[case] expected: Option<i64>,
) {
    assert_eq!(eta(seconds(0), calls, per_minute, Duration::from_secs(soak)), expected.map(seconds));
}

#[test]
fn a_lane_is_done_after_those_above_it() {
    let work = |lane, calls| Work { lane, calls };
    let waiting = [work(Lane::Refill, 60), work(Lane::NewCluster, 30), work(Lane::Audit, 0)];
    let found = etas(&waiting, 60, seconds(0), Duration::ZERO);
    let eta = |lane, at| Eta { lane, at: seconds(at) };
    assert_eq!(found, [eta(Lane::NewCluster, 30), eta(Lane::Refill, 90)]);
}

#[rstest]
#[case::full(5, 0, 5, 100, 0)]
#[case::empty(0, 0, 5, 100, 5)]
#[case::in_progress_counts(1, 3, 5, 100, 1)]
#[case::more_than_wanted(9, 3, 5, 100, 0)]
#[case::budget(0, 0, 5, 7, 2)]
#[case::budget_of_what_is_in_progress(0, 2, 5, 7, 0)]
#[case::no_budget(0, 0, 5, 0, 0)]
#[case::one_after_the_other_at_a_low_rate(0, 0, 5, 2, 1)]
#[case::another_one_is_on_its_way(0, 1, 5, 2, 0)]
fn a_pool_is_refilled_within_the_rate(
    #[case] ready: u64,
    #[case] in_progress: u64,
    #[case] target: u64,
    #[case] remaining_calls: u64,
    #[case] expected: u64,
) {
    assert_eq!(reserve(&Pool { ready, in_progress, target, remaining_calls }), expected);
}
