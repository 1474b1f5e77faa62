//! The back-off between a run that has failed and the next one.

use std::time::Duration;

use daemon::backoff::Backoff;
use fleet_model::job;
use jiff::Timestamp;
use kubernetes::job::JobEnd;

use super::facts::{Facts, Run};
use crate::config::Checked;
use crate::outcome::Outcome;
use crate::reason::Reason;

/// Maximum time until a failed run is repeated.
pub(super) const MAX_BACKOFF: Duration = Duration::from_hours(1);

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

/// A clean-up that has not deleted what it was to delete.
pub(super) struct NotDeleted {
    pub(super) failure: Failure,
    /// Time until the first repetition.
    pub(super) first: Duration,
}

impl NotDeleted {
    /// Classifies the run of a clean-up; `None` if it runs, or has deleted everything.
    ///
    /// A run that is superseded has succeeded, but deleted nothing: a secret of a newer generation than that of the deletion
    /// exists only where the API's database is older than what was stored, and would be left behind.
    pub(super) fn of(config: &Checked, run: &Run<'_>) -> Option<Self> {
        let outcome = run.outcome.as_ref();
        let (failure, is_permanent) = match run.job.end.as_ref()? {
            JobEnd::Failed { reason, message } => {
                let outcome = outcome.filter(|outcome| !outcome.is_success);
                let is_permanent = outcome.is_some_and(|outcome| (2..=6).contains(&outcome.exit_code));
                (Failure::of(run, outcome, reason, message), is_permanent)
            }
            JobEnd::Complete if run.is_superseded() => {
                let found = outcome.map(|outcome| outcome.message.as_str()).unwrap_or_default();
                let message = format!(
                    "Job {} has deleted nothing: {found}; if the API's database was restored, run `pull-secret api restored`",
                    run.job.name
                );
                (Failure { reason: job::Reason::Superseded.to_string(), message }, true)
            }
            JobEnd::Complete => return None,
        };
        let first = if is_permanent { config.retry.permanent_after } else { config.retry.transient_after };
        Some(Self { failure, first })
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
    wait_since(run.job.ended.or(run.job.created)?, first, attempt, facts)
}

/// Returns the time until the next attempt may start, if the last one has ended at this time.
pub(super) fn wait_since(ended: Timestamp, first: Duration, attempt: u32, facts: &Facts<'_>) -> Option<Duration> {
    let backoff = Backoff::doubling(first, MAX_BACKOFF.max(first));
    let wait = backoff.nominal(attempt.saturating_sub(1).max(1));
    let passed = Duration::try_from(facts.now.duration_since(ended)).unwrap_or_default();
    Some(wait.saturating_sub(passed)).filter(|wait| !wait.is_zero())
}

/// Formats a wait in seconds or minutes.
pub(super) fn format_wait(wait: Duration) -> String {
    let seconds = wait.as_secs().max(1);
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}
