//! Decides which clusters are rotated in which wave, and the next step of a rotation.

mod plan;
#[cfg(test)]
mod tests;

use fleet_model::Status;
use jiff::Timestamp;

use crate::fleet::{Content, Seen};
use crate::plan::{Plan, Planned};
use crate::state::{Failure, Request};

pub use plan::{Candidate, Estimate, estimate, plan};

/// The reason of a cluster that is not available in time.
pub const NOT_IN_TIME: &str = "NotAvailableInTime";

/// The progress of one cluster of a wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterProgress {
    /// It is as it was planned.
    ToWrite,
    /// It has the new content, and is not available yet.
    Waiting,
    /// It is available with the new content.
    Available,
    /// It has failed.
    Failed(Failure),
    /// It is left alone, for this cause.
    Left(String),
}

/// The facts of a step.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Index of the current wave.
    pub wave: usize,
    /// The clusters of the current wave, in the order of the plan.
    pub progress: &'a [ClusterProgress],
    /// Seconds since the last write of the wave in which the API has answered.
    pub waited: u64,
    /// The request of another process.
    pub request: Option<Request>,
}

/// The next step of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the cluster with this index in the wave.
    Write(usize),
    /// Wait for the clusters of the wave.
    Wait,
    /// Begin the next wave; these clusters of the finished one have failed, in tolerated numbers.
    NextWave(Vec<Failure>),
    /// End: more clusters have failed than are tolerated.
    Stop(Vec<Failure>),
    /// End until an operator resumes.
    Pause,
    /// End for good.
    Abort,
    /// End: all waves are done.
    Finish,
}

/// Returns the progress of a planned cluster; `seen` is the cluster now, if there is one.
pub fn progress(planned: &Planned, planned_at: Timestamp, seen: Option<&Seen>) -> ClusterProgress {
    let left = |cause: &str| ClusterProgress::Left(cause.to_owned());
    let Some(seen) = seen else { return left("it was deleted") };
    if seen.is_deleting {
        return left("it is being deleted");
    }
    if seen.created.is_some_and(|created| created > planned_at) {
        return left("it was deleted and created again since the plan");
    }
    match &seen.content {
        Content::Shown(digest) if planned.digest.is_of(digest) => with_new_content(seen),
        _ if seen.generation == planned.generation => ClusterProgress::ToWrite,
        _ => ClusterProgress::Left(format!(
            "it was changed since the plan: generation {} instead of {}",
            seen.generation, planned.generation
        )),
    }
}

/// Returns the progress of a cluster that has the new content.
fn with_new_content(seen: &Seen) -> ClusterProgress {
    let report = seen.report.as_ref().filter(|report| report.generation == seen.generation);
    match report {
        Some(report) if report.available == Status::True => ClusterProgress::Available,
        Some(report) if report.available == Status::False && diagnosis::decide::is_failure(&report.reason) => {
            ClusterProgress::Failed(Failure {
                cluster: seen.id.clone(),
                reason: report.reason.clone(),
                message: report.message.clone(),
            })
        }
        _ => ClusterProgress::Waiting,
    }
}

/// Returns the next step.
pub fn step(facts: &Facts<'_>) -> Step {
    let Facts { plan, wave, progress, waited, request } = *facts;
    match request {
        Some(Request::Abort) => return Step::Abort,
        Some(Request::Pause) => return Step::Pause,
        None => {}
    }
    let Some(clusters) = plan.waves.get(wave) else { return Step::Finish };
    let to_write = progress.iter().position(|progress| *progress == ClusterProgress::ToWrite);
    let is_late = to_write.is_none() && waited >= plan.options.wave_timeout.into();
    let failures = clusters.iter().zip(progress).filter_map(|(planned, progress)| match progress {
        ClusterProgress::Failed(failure) => Some(failure.clone()),
        ClusterProgress::Waiting if is_late => Some(Failure {
            cluster: planned.id.clone(),
            reason: NOT_IN_TIME.to_owned(),
            message: format!("it is not available {waited} s after the last write of its wave"),
        }),
        _ => None,
    });
    let failures: Vec<Failure> = failures.collect();
    if failures.len() > plan.tolerated(wave) {
        return Step::Stop(failures);
    }
    match to_write {
        Some(index) => Step::Write(index),
        None if !is_late && progress.contains(&ClusterProgress::Waiting) => Step::Wait,
        None => Step::NextWave(failures),
    }
}
