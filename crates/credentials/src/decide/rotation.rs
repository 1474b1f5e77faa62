//! The next step of a rotation, and the progress of one of its clusters.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::budget::eta;
use super::facts::later;
use crate::credential::{Credential, Naming};
use crate::reason::Reason;
use crate::rotation::{ClusterProgress, GroupCounts, RotationPlan, RotationReason};
use crate::state::State;

/// Calls of the registry that the rotation of one cluster takes: create, permit, probe, two reads of the usage of each of both
/// credentials, the deletion and its proof.
const CALLS: u32 = 9;
/// Those of a cluster that leaves AMS, whose account is there: a probe, and two reads of its usage.
const CALLS_FROM_AMS: u32 = 3;

/// The time by which the clocks of two replicas may differ.
const SKEW: Duration = Duration::from_mins(1);

/// The facts of a step.
#[derive(Clone, Copy, Debug)]
pub struct RotationFacts<'a> {
    /// The rules.
    pub plan: &'a RotationPlan,
    /// Index of the current group.
    pub group: usize,
    /// Numbers of clusters by group.
    pub counts: &'a [GroupCounts],
    /// Number of failed clusters that a person has resumed over.
    pub tolerated: u64,
    /// The time at which the calls of the clusters that were begun are paid off.
    pub paid_off: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// The next step of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Begin with this many further clusters of the group, if they can be rotated.
    Begin(u64),
    /// Go on with the next group.
    NextGroup,
    /// Wait.
    Wait(RotationReason),
    /// Stop until a person resumes.
    Stop(RotationReason),
    /// Every cluster is done.
    Finish,
}

/// The progress of a cluster with its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The progress.
    pub progress: ClusterProgress,
    /// The cause of a failure, or of being left alone.
    pub cause: Option<Reason>,
}

/// Returns the next step of a rotation that runs.
pub fn rotation_step(facts: &RotationFacts<'_>) -> RotationStep {
    let RotationFacts { plan, group, counts, tolerated, paid_off, now } = *facts;
    let Some(current) = counts.get(group) else { return RotationStep::Finish };
    let is_last = group + 1 >= counts.len();
    let failed = counts.iter().map(|counts| counts.failed).sum::<u64>().saturating_sub(tolerated);
    if failed > 0 && !is_last {
        return RotationStep::Stop(RotationReason::FirstGroupFailed);
    }
    if failed > plan.max_failures {
        return RotationStep::Stop(RotationReason::TooManyFailures);
    }
    let free = u64::from(plan.max_concurrency).saturating_sub(current.in_progress);
    match (current.waiting, current.in_progress) {
        (0, 0) if is_last => RotationStep::Finish,
        (0, 0) => RotationStep::NextGroup,
        (0, _) => RotationStep::Wait(RotationReason::Soaking),
        _ if free == 0 => RotationStep::Wait(RotationReason::Rotating),
        _ if plan.window.is_some_and(|window| !window.contains(now)) => {
            RotationStep::Wait(RotationReason::OutsideWindow)
        }
        (waiting, _) => match free.min(waiting).min(affordable(plan, paid_off, now)) {
            0 => RotationStep::Wait(RotationReason::AwaitingBudget),
            number => RotationStep::Begin(number),
        },
    }
}

/// Returns the number of calls of the registry that the rotation of one cluster takes.
pub fn calls(plan: &RotationPlan) -> u32 {
    if plan.from_ams { CALLS_FROM_AMS } else { CALLS }
}

/// Returns the time at which the calls of further clusters are paid off.
pub fn pay(plan: &RotationPlan, paid_off: Timestamp, clusters: u64, now: Timestamp) -> Timestamp {
    let clusters = u32::try_from(clusters).unwrap_or(u32::MAX);
    later(now, debt(plan, paid_off, now).saturating_add(interval(plan).saturating_mul(clusters)))
}

/// Returns the number of clusters that may begin now: what a minute pays for at most, and one where it pays for less.
fn affordable(plan: &RotationPlan, paid_off: Timestamp, now: Timestamp) -> u64 {
    if plan.max_calls_per_minute.is_none() {
        return u64::MAX;
    }
    let free = most_debt(plan).saturating_sub(debt(plan, paid_off, now));
    u64::try_from(free.as_micros() / interval(plan).as_micros().max(1)).unwrap_or(u64::MAX)
}

/// Returns the time in which the clusters that were begun are paid off. One that is longer than can arise, and than clocks differ, was
/// written by a clock that is ahead, and is as good as none.
fn debt(plan: &RotationPlan, paid_off: Timestamp, now: Timestamp) -> Duration {
    let debt = Duration::try_from(paid_off.duration_since(now)).unwrap_or_default();
    if debt > most_debt(plan).saturating_add(SKEW) { Duration::ZERO } else { debt }
}

/// Returns the debt after as many clusters as a minute pays for, at least one.
fn most_debt(plan: &RotationPlan) -> Duration {
    let at_once = plan.max_calls_per_minute.map_or(1, |per_minute| (per_minute.get() / calls(plan)).max(1));
    interval(plan).saturating_mul(at_once)
}

/// Returns the time in which the budget pays for the calls of one cluster.
fn interval(plan: &RotationPlan) -> Duration {
    plan.max_calls_per_minute
        .map_or(Duration::ZERO, |per_minute| Duration::from_mins(1) * calls(plan) / per_minute.get())
}

/// Returns the progress of a cluster that was begun, by the credential that replaces its old one.
pub fn judge(successor: Option<&Credential>, started: Timestamp, plan: &RotationPlan, now: Timestamp) -> Judged {
    let judged = |progress, cause| Judged { progress, cause };
    let Some(successor) = successor else { return judged(ClusterProgress::Skipped, Some(Reason::RolledBack)) };
    let record = &successor.record;
    if record.evidence.document.as_ref().is_some_and(|observed| observed.naming == Naming::ClusterGone) {
        return judged(ClusterProgress::Skipped, Some(Reason::ClusterGone));
    }
    if record.held {
        return judged(ClusterProgress::Skipped, Some(Reason::RolledBack));
    }
    if successor.state >= State::Retiring {
        return judged(ClusterProgress::Skipped, Some(successor.reason));
    }
    let is_after = |time: Timestamp, by: SignedDuration| now.duration_since(time) >= by;
    match record.adopted {
        Some(adopted) if is_after(adopted, plan.min_success_time) => judged(ClusterProgress::Succeeded, None),
        None if is_after(started, plan.progress_deadline) => judged(ClusterProgress::Failed, Some(successor.reason)),
        Some(_) | None => judged(ClusterProgress::InProgress, None),
    }
}

/// Returns the cause for which a cluster is skipped; `None` if it can be rotated.
pub fn obstacle(credential: &Credential, has_successor: bool) -> Option<Reason> {
    let record = &credential.record;
    if record.evidence.document.as_ref().is_some_and(|observed| observed.naming == Naming::ClusterGone) {
        return Some(Reason::ClusterGone);
    }
    if has_successor {
        return Some(Reason::AwaitingSuccessor);
    }
    (credential.state != State::Adopted || record.order.is_some()).then_some(credential.reason)
}

/// Returns the cause for which a cluster is left with AMS's credential; `None` if the one of this service can be published.
pub fn move_obstacle(credential: &Credential) -> Option<Reason> {
    let record = &credential.record;
    let waits = credential.state == State::Probed && record.held;
    (!waits || record.order.is_some() || record.given_up.is_some()).then_some(credential.reason)
}

/// Returns the expected end of a rotation: by the calls of the registry, and by the number of clusters at the same time, each of
/// which takes `each`.
pub fn rotation_eta(
    plan: &RotationPlan,
    counts: &[GroupCounts],
    per_minute: u32,
    each: Duration,
    now: Timestamp,
) -> Option<Timestamp> {
    let concurrency = u64::from(plan.max_concurrency.max(1));
    let left = |counts: &GroupCounts| counts.waiting + counts.in_progress;
    let rounds: u64 = counts.iter().map(|counts| left(counts).div_ceil(concurrency)).sum();
    let calls = counts.iter().map(left).sum::<u64>().saturating_mul(calls(plan).into());
    let per_minute = plan.max_calls_per_minute.map_or(per_minute, |most| per_minute.min(most.get()));
    let by_rate = eta(now, calls, per_minute, Duration::ZERO)?;
    let soak = each.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX));
    Some(by_rate.max(later(now, soak)))
}
