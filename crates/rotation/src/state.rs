//! The state of a rotation that outlives its processes.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// Number of clusters of a kind that the record lists, as it must fit into a ConfigMap; all are counted.
pub(crate) const MAX_LISTED: usize = 500;
/// Longest reason of a listed failure, in bytes.
const LONGEST_REASON: usize = 64;
/// Longest message of a listed failure, in bytes.
const LONGEST_MESSAGE: usize = 200;
/// Seconds of work after which the record is written though nothing else has changed.
const WORK_UNRECORDED: u64 = 60;

/// The state of a rotation. What is written to which cluster is not in it: the API knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The phase.
    pub phase: Phase,
    /// The request of another process, until a run obeys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// Index of the current wave, from 0; the number of waves when all are done.
    pub wave: usize,
    /// Numbers of clusters of the waves before.
    pub done: Counts,
    /// Numbers of clusters of the current wave.
    pub current: Counts,
    /// Clusters that failed in tolerated numbers, or stopped the rotation.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Clusters that are left as they were changed since the plan, with the cause.
    #[serde(default)]
    pub left: BTreeMap<String, String>,
    /// The identity that started the rotation.
    pub started_by: String,
    /// Time of the start.
    pub started: Timestamp,
    /// The identity of the last run.
    pub run_by: String,
    /// Time of the last change.
    pub updated: Timestamp,
    /// Seconds for which runs have worked on it.
    pub worked: u64,
    /// The cause of the phase, and what to do next.
    #[serde(default)]
    pub because: String,
}

/// The phase of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// A run works, or was killed.
    Running,
    /// It waits for `resume`.
    Paused,
    /// Too many clusters have failed, or the API has refused a write; `resume` goes on.
    Stopped,
    /// It is given up; clusters that were rotated stay so.
    Aborted,
    /// All waves are done.
    Done,
}

/// A request to the process that runs a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// End, and go on when an operator resumes.
    Pause,
    /// End for good.
    Abort,
}

/// Numbers of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Available with the new content.
    pub available: usize,
    /// Written, and not yet available.
    pub waiting: usize,
    /// Failed, or not available in time.
    pub failed: usize,
    /// Left as they were changed or deleted since the plan.
    pub left: usize,
}

/// A cluster that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The cluster's id.
    pub cluster: String,
    /// The reason of its condition `Available`, or one of the rotation.
    pub reason: String,
    /// The message.
    pub message: String,
}

// === impl State ===

impl State {
    /// The state at the start.
    pub fn new(identity: &str, now: Timestamp) -> Self {
        Self {
            phase: Phase::Running,
            request: None,
            wave: 0,
            done: Counts::default(),
            current: Counts::default(),
            failures: Vec::new(),
            left: BTreeMap::new(),
            started_by: identity.to_owned(),
            started: now,
            run_by: identity.to_owned(),
            updated: now,
            worked: 0,
            because: String::new(),
        }
    }

    /// Numbers of clusters of all waves so far.
    pub fn counts(&self) -> Counts {
        let Counts { available, waiting, failed, left } = self.done;
        Counts {
            available: available + self.current.available,
            waiting: waiting + self.current.waiting,
            failed: failed + self.current.failed,
            left: left + self.current.left,
        }
    }

    /// Lists failures, as many and as much of each as the record has room for.
    pub(crate) fn list(&mut self, failures: Vec<Failure>) {
        let room = MAX_LISTED.saturating_sub(self.failures.len());
        self.failures.extend(failures.into_iter().take(room).map(Failure::cut));
    }

    /// True if this is worth a write where `recorded` is recorded: more has changed than a little time of work.
    pub(crate) fn is_due(&self, recorded: &Self) -> bool {
        let worked = self.worked.saturating_sub(recorded.worked);
        worked >= WORK_UNRECORDED || *self != Self { worked: self.worked, ..recorded.clone() }
    }

    /// Number of clusters for which nothing is left to do.
    pub fn finished(&self) -> usize {
        let Counts { available, waiting: _, failed, left } = self.counts();
        available + failed + left
    }

    /// Seconds until the end at the rate of the work so far; `None` before the first cluster is finished.
    pub fn remaining_seconds(&self, plan: &Plan) -> Option<u64> {
        let finished = u64::try_from(self.finished()).ok().filter(|finished| *finished > 0)?;
        let left = u64::try_from(plan.clusters().saturating_sub(self.finished())).unwrap_or(u64::MAX);
        Some(self.worked.max(1).saturating_mul(left).div_ceil(finished))
    }

    /// Number of finished clusters for each minute of work.
    pub fn per_minute(&self) -> u64 {
        u64::try_from(self.finished()).unwrap_or(u64::MAX).saturating_mul(60) / self.worked.max(1)
    }
}

// === impl Failure ===

impl Failure {
    /// The failure with a reason and a message that fit into the record.
    fn cut(mut self) -> Self {
        self.reason.truncate(self.reason.floor_char_boundary(LONGEST_REASON));
        self.message.truncate(self.message.floor_char_boundary(LONGEST_MESSAGE));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, reason, message } = self;
        write!(formatter, "{cluster}: {reason}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn state() -> State {
        State::new("jane", Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn any_number_of_failures_with_any_texts_fits_into_a_config_map() {
        let mut state = state();
        let message = format!("x{}", "é".repeat(32 * 1024));
        state.list(vec![Failure { cluster: "a".to_owned(), reason: String::new(), message }]);
        assert_eq!(state.failures[0].message.len(), LONGEST_MESSAGE - 1);
        // JSON has six bytes for each of these.
        let text = "\u{1}".repeat(64 * 1024);
        let failure = Failure { cluster: "c".repeat(63), reason: text.clone(), message: text };
        for _wave in 0..10 {
            state.list(vec![failure.clone(); MAX_LISTED / 2]);
        }
        assert_eq!(state.failures.len(), MAX_LISTED);
        state.left = (0..MAX_LISTED).map(|number| (format!("{number:063}"), "x".repeat(100))).collect();
        let length = serde_json::to_string(&state).unwrap().len();
        assert!(length < 1024 * 1024, "{length}");
    }

    #[rstest]
    #[case::nothing(state(), false)]
    #[case::a_little_work(State { worked: 159, ..state() }, false)]
    #[case::a_minute_of_work(State { worked: 160, ..state() }, true)]
    #[case::a_cluster(State { current: Counts { available: 1, ..Counts::default() }, ..state() }, true)]
    #[case::the_end(State { phase: Phase::Done, worked: 101, ..state() }, true)]
    fn work_alone_is_recorded_once_a_minute(#[case] now: State, #[case] expect: bool) {
        let now = State { worked: now.worked.max(100), ..now };
        assert_eq!(now.is_due(&State { worked: 100, ..state() }), expect);
    }
}
