//! Events of a run, as lines for people and for programs, and the progress bar.

use std::fmt;

use daemon::output::plain;
use diagnosis::decide::age;
use hyperfleet_client::Generation;
use jiff::SignedDuration;
use serde::Serialize;

use crate::plan::Plan;
use crate::state::{Counts, Failure, Phase, State};

/// Number of cells of the progress bar.
const CELLS: usize = 30;

/// An event of a run; waves are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A wave begins, or goes on.
    Wave {
        /// The wave.
        wave: usize,
        /// Number of waves.
        waves: usize,
        /// Number of its clusters.
        clusters: usize,
    },
    /// A cluster was written.
    Written {
        /// The cluster.
        cluster: String,
        /// Its new generation.
        generation: Generation,
    },
    /// A cluster is available with its new pull secret.
    Available {
        /// The cluster.
        cluster: String,
    },
    /// A cluster has failed.
    Failed(Failure),
    /// A cluster is left as it was changed since the plan.
    Left {
        /// The cluster.
        cluster: String,
        /// The cause.
        because: String,
    },
    /// A service does not answer; the run waits for it.
    Outage {
        /// The failed call.
        error: String,
    },
    /// The service answers again.
    Resumed,
    /// The run has ended.
    Ended {
        /// The phase of the rotation.
        phase: Phase,
        /// The cause, and what to do next.
        because: String,
        /// Numbers of clusters.
        counts: Counts,
        /// Number of planned clusters.
        clusters: usize,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wave { wave, waves, clusters } => write!(formatter, "wave {wave} of {waves}: {clusters} clusters"),
            Self::Written { cluster, generation } => write!(formatter, "written    {cluster}  generation {generation}"),
            Self::Available { cluster } => write!(formatter, "available  {cluster}"),
            Self::Failed(Failure { cluster, reason, message }) => {
                write!(formatter, "failed     {cluster}  {}: {}", plain(reason), plain(message))
            }
            Self::Left { cluster, because } => write!(formatter, "left       {cluster}  {}", plain(because)),
            Self::Outage { error } => write!(formatter, "waiting    {}", plain(error)),
            Self::Resumed => formatter.write_str("resumed    it answers again"),
            Self::Ended { phase, because, counts, clusters } => {
                let Counts { available, waiting, failed, left } = counts;
                write!(
                    formatter,
                    "{phase:?}: {available} of {clusters} clusters available, {waiting} waiting, {failed} failed, {left} left \
                     as they are{}",
                    if because.is_empty() { String::new() } else { format!("; {}", plain(because)) },
                )
            }
        }
    }
}

/// Returns the line of the progress bar.
pub fn bar(plan: &Plan, state: &State) -> String {
    let (all, finished, counts) = (plan.clusters().max(1), state.finished(), state.counts());
    let full = (finished * CELLS / all).min(CELLS);
    let wave = (state.wave + 1).min(plan.waves.len());
    let eta = state.remaining_seconds(plan).and_then(|seconds| i64::try_from(seconds).ok());
    format!(
        "[{}{}] {finished}/{all}  wave {wave}/{}  {} waiting, {} failed  {} left",
        "#".repeat(full),
        "-".repeat(CELLS - full),
        plan.waves.len(),
        counts.waiting,
        counts.failed,
        eta.map_or_else(|| "unknown time".to_owned(), |seconds| age(SignedDuration::from_secs(seconds))),
    )
}
