//! The calls of a registry: its rate, shared by lanes.
//!
//! Each granted call moves the time `next` by the interval of the rate. A lane may run ahead of the clock by its lead, and a
//! more urgent lane has a longer one: while calls are scarce, the urgent lanes keep `next` beyond the reach of the others,
//! and there are always calls left for a lane above.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::facts::later;
use crate::state::{Lane, State};

/// The lead of the least urgent lane, in calls.
const LEAST_LEAD: u32 = 1;

/// The longest time for which a registry is left alone, however long it asks. A budget that reaches further into the future was
/// written by a clock that is ahead, and is as good as none.
pub const MAX_WAIT: Duration = Duration::from_mins(15);

/// The budget of a registry, which all replicas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The time at which the calls that were granted are paid off.
    pub next: Timestamp,
    /// The time until which the registry has asked to be left alone.
    pub blocked_until: Timestamp,
}

/// The answer to a lane that wants to make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It may, and this is [`Budget::next`] now.
    Granted(Timestamp),
    /// It may not before this time.
    Wait(Timestamp),
}

/// Calls that wait in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The lane.
    pub lane: Lane,
    /// Their number.
    pub calls: u64,
}

/// The expected end of the calls of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eta {
    /// The lane.
    pub lane: Lane,
    /// The time.
    pub at: Timestamp,
}

/// Decides if a lane may make a call now. `per_minute` is the rate of the registry; 0 grants nothing.
pub fn grant(budget: &Budget, per_minute: u32, lane: Lane, now: Timestamp) -> Grant {
    let Some(interval) = interval(per_minute) else { return Grant::Wait(later(now, Duration::from_mins(1))) };
    if let Some(until) = blocked(budget, lane, now) {
        return Grant::Wait(until);
    }
    let next = paid_off(budget, now);
    let earliest = earlier(next, interval.saturating_mul(lead(per_minute, lane) - 1));
    if earliest <= now { Grant::Granted(later(next, interval)) } else { Grant::Wait(earliest) }
}

/// Returns the calls that a lane may make now.
pub fn remaining(budget: &Budget, per_minute: u32, lane: Lane, now: Timestamp) -> u64 {
    let Some(interval) = interval(per_minute).filter(|_| blocked(budget, lane, now).is_none()) else { return 0 };
    let used = paid_off(budget, now).duration_since(now);
    let lead = SignedDuration::try_from(interval.saturating_mul(lead(per_minute, lane))).unwrap_or_default();
    let (left, interval) = ((lead - used).as_micros(), interval.as_micros().max(1));
    u64::try_from(left).map_or(0, |left| u64::try_from(u128::from(left) / interval).unwrap_or(0))
}

/// Returns the time until which a lane leaves the registry alone. A revocation at once is tried all the same: it waits for its
/// own back-off alone.
fn blocked(budget: &Budget, lane: Lane, now: Timestamp) -> Option<Timestamp> {
    let is_blocked = budget.blocked_until > now && budget.blocked_until <= later(now, MAX_WAIT);
    (is_blocked && lane != Lane::BreakGlass).then_some(budget.blocked_until)
}

/// Returns the time at which the calls that were granted are paid off.
fn paid_off(budget: &Budget, now: Timestamp) -> Timestamp {
    if budget.next > later(now, MAX_WAIT) { now } else { budget.next.max(now) }
}

/// Returns the time after which calls are made at a rate, and the longest soak is over; `None` at a rate of 0.
pub fn eta(now: Timestamp, calls: u64, per_minute: u32, soak: Duration) -> Option<Timestamp> {
    let calls = u32::try_from(calls).unwrap_or(u32::MAX);
    interval(per_minute).map(|interval| later(now, interval.saturating_mul(calls).saturating_add(soak)))
}

/// Returns the time for which requests use up a rate.
pub fn cost(requests: u32, per_minute: u32) -> Duration {
    interval(per_minute).unwrap_or_default().saturating_mul(requests).min(MAX_WAIT / 2)
}

/// Returns the calls of a registry that a credential still takes until it waits for something else than the registry.
pub fn calls_left(state: State) -> u64 {
    match state {
        State::Reserved => 3,
        State::Created | State::Retiring => 2,
        State::Permitted | State::Published => 1,
        State::Pooled
        | State::Probed
        | State::Adopted
        | State::Quiet
        | State::Dead
        | State::WaitedOut
        | State::Spent => 0,
    }
}

/// Returns the time at which the calls of each lane are made, after those of the lanes above it.
pub fn etas(work: &[Work], per_minute: u32, now: Timestamp, soak: Duration) -> Vec<Eta> {
    let calls_up_to = |lane: Lane| work.iter().filter(|work| work.lane <= lane).map(|work| work.calls).sum();
    let eta_of = |lane| Some(Eta { lane, at: eta(now, calls_up_to(lane), per_minute, soak)? });
    let has_work = |lane: &Lane| work.iter().any(|work| work.lane == *lane && work.calls > 0);
    Lane::ALL.into_iter().filter(has_work).filter_map(eta_of).collect()
}

/// Returns the lead of a lane in calls: a quarter of a minute for the most urgent, a fifth of that less for each below.
fn lead(per_minute: u32, lane: Lane) -> u32 {
    let steps = Lane::Audit.rank() + 1;
    let whole = (per_minute / 4).max(LEAST_LEAD * steps);
    (whole * (steps - lane.rank()) / steps).max(LEAST_LEAD)
}

fn interval(per_minute: u32) -> Option<Duration> {
    Duration::from_mins(1).checked_div(per_minute)
}

fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_sub(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MIN)
}
