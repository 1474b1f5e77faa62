//! The current wave as a run knows it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::decide::ClusterProgress;
use crate::plan::Plan;
use crate::state::{Counts, Failure};

/// Time between two reads of the wave, and of the requests of other processes.
const OBSERVE: Duration = Duration::from_secs(2);

/// The current wave.
#[derive(Debug)]
pub(super) struct Wave {
    /// The clusters, in the order of the plan.
    pub(super) progress: Vec<ClusterProgress>,
    /// The clusters whose writes the API has refused, by their index.
    pub(super) refused: BTreeMap<usize, Failure>,
    /// Time since the last write in which the API has answered.
    pub(super) waited: Duration,
    /// True while a service does not answer, or the progress of its clusters is not known yet.
    pub(super) is_out: bool,
    /// The last observation.
    pub(super) observed: Option<Observed>,
    /// Time at which the next observation is due.
    due: Instant,
}

/// An observation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) at: Instant,
    pub(super) has_succeeded: bool,
}

// === impl Wave ===

impl Wave {
    /// A wave that was not observed yet.
    pub(super) fn of(plan: &Plan, wave: usize) -> Self {
        let clusters = plan.waves.get(wave).map_or(0, Vec::len);
        Self {
            progress: vec![ClusterProgress::Waiting; clusters],
            refused: BTreeMap::new(),
            waited: Duration::ZERO,
            is_out: false,
            observed: None,
            due: Instant::now(),
        }
    }

    /// The time at which the next observation is due.
    pub(super) fn next_observation(&self) -> Instant {
        self.due
    }

    /// Makes the next observation due at once.
    pub(super) fn observe_at_once(&mut self) {
        self.due = Instant::now();
    }

    pub(super) fn note_observation(&mut self, at: Instant, has_succeeded: bool) {
        (self.observed, self.due) = (Some(Observed { at, has_succeeded }), at + OBSERVE);
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for progress in &self.progress {
            match progress {
                ClusterProgress::ToWrite => {}
                ClusterProgress::Waiting => counts.waiting += 1,
                ClusterProgress::Available => counts.available += 1,
                ClusterProgress::Failed(_) => counts.failed += 1,
                ClusterProgress::Left(_) => counts.left += 1,
            }
        }
        counts
    }
}
