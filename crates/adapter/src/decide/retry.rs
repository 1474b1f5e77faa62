//! The back-off between a run that has failed and the next one.

use std::time::Duration;

use daemon::backoff::Backoff;
use fleet_model::job;

use super::facts::{Facts, Run};
use crate::outcome::Outcome;
use crate::reason::Reason;

/// Maximum time until a failed run is repeated.
const MAX_BACKOFF: Duration = Duration::from_hours(1);

/// The reason and the message of a failed run, as conditions have them.
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) message: String,
}

impl Failure {
    /// Takes them from the Job's termination message, or else from the Job's `Failed` condition.
    pub(super) fn of(run: &Run<'_>, outcome: Option<&Outcome>, reason: &str, message: &str) -> Self {
        let job_failed = Reason::JobFailed.to_string();
        match outcome {
            Some(Outcome { reason: Some(own), message, .. }) => Self { reason: own.clone(), message: message.clone() },
            Some(Outcome { message, .. }) => Self { reason: job_failed, message: format!("{message} ({reason})") },
            None => {
                let message = format!("Job {} has failed: {reason}: {message}", run.job.name);
                Self { reason: job_failed, message }
            }
        }
    }
}

/// The kind of a failure, which determines the time until the next run.
pub(super) enum Severity {
    /// A repetition may succeed.
    Transient,
    /// A person must remove the cause; the adapter is not notified when that happens.
    Permanent,
    /// The pull secret itself is invalid; a change of it causes a new run.
    Final,
}

/// Classifies a failed run by its outcome.
pub(super) fn severity(outcome: Option<&Outcome>) -> Severity {
    let is_invalid = |reason: &str| reason == job::Reason::InvalidPullSecret.to_string();
    match outcome {
        Some(Outcome { reason: Some(reason), .. }) if is_invalid(reason) => Severity::Final,
        Some(Outcome { exit_code: 2..=6, .. }) => Severity::Permanent,
        _ => Severity::Transient,
    }
}

/// Returns the time until the next attempt may start; `None` if it may start now.
pub(super) fn wait(first: Duration, attempt: u32, run: &Run<'_>, facts: &Facts<'_>) -> Option<Duration> {
    let backoff = Backoff::doubling(first, MAX_BACKOFF.max(first));
    let wait = backoff.nominal(attempt.saturating_sub(1).max(1));
    let ended = run.job.ended.or(run.job.created)?;
    let passed = Duration::try_from(facts.now.duration_since(ended)).unwrap_or_default();
    Some(wait.saturating_sub(passed)).filter(|wait| !wait.is_zero())
}

/// Formats a wait in seconds or minutes.
pub(super) fn format_wait(wait: Duration) -> String {
    let seconds = wait.as_secs().max(1);
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}
