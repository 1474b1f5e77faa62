//! How a run ended, and what made it end early.

use daemon::retry::{Failure, Spent};
use fleet_model::job::Reason;
use secret_store::{Fault, Operation, StoreError, VersionNumber};

use crate::report::Details;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// In one word.
    pub reason: Reason,
    /// In a sentence, for people.
    pub message: String,
    /// What the adapter reports as data.
    pub details: Details,
}

/// What made a run end early: it goes up to the one place that logs it.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// The step that it happened in, as the log names it.
    pub(crate) operation: &'static str,
}

impl Stop {
    pub(crate) fn new(operation: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), hint: None, operation }
    }

    pub(crate) fn unverified(version: VersionNumber) -> Self {
        let message = format!("Failed to verify secret: version {version} does not hold what was written to it");
        Self::new("verify-secret", Reason::VerificationFailed, message)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        let (operation, words) = step(error.operation);
        let message = format!("{words}: {error}");
        Self { reason: reason(error.fault), message, hint: error.hint(), operation }
    }
}

impl From<Spent> for Stop {
    fn from(spent: Spent) -> Self {
        match spent {
            Spent::Stopped => {
                Self::new("interrupted", Reason::Interrupted, "Stopped by a signal; the next run continues")
            }
            Spent::DeadlinePassed => {
                Self::new("deadline", Reason::DeadlineExceeded, "The run's time (RUN_TIMEOUT) is over")
            }
        }
    }
}

impl From<Failure<StoreError>> for Stop {
    fn from(failure: Failure<StoreError>) -> Self {
        match failure {
            Failure::Failed(error) => error.into(),
            Failure::Spent(spent, None) => spent.into(),
            Failure::Spent(spent, Some(error)) => {
                let mut stop = Self::from(spent);
                stop.hint = error.hint();
                stop.message = format!("{}; last failure: {error}", stop.message);
                stop
            }
        }
    }
}

fn reason(fault: Fault) -> Reason {
    match fault {
        Fault::NotFound | Fault::AlreadyExists | Fault::Invalid => Reason::InvalidRequest,
        Fault::PermissionDenied => Reason::PermissionDenied,
        Fault::ApiDisabled => Reason::ApiDisabled,
        Fault::Unauthenticated => Reason::Unauthenticated,
        Fault::Corrupt => Reason::VerificationFailed,
        Fault::QuotaExceeded => Reason::QuotaExceeded,
        Fault::Changed | Fault::Unavailable | Fault::TimedOut | Fault::Internal => Reason::StoreUnavailable,
    }
}

/// The log's name of the step that a call belongs to, and the words that begin the line about its failure.
fn step(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Connect => ("init-client", "Failed to create secretmanager client"),
        Operation::Find | Operation::ListVersions | Operation::Create | Operation::Update | Operation::AddVersion => {
            ("create-update-secret", "Failed to create/update secret")
        }
        Operation::ReadVersion => ("verify-secret", "Failed to verify secret"),
        Operation::DestroyVersion => ("prune-versions", "Failed to prune versions"),
        Operation::Delete => ("delete-secret", "Failed to delete secret"),
        Operation::CheckPermissions => ("dry-run", "Failed to check permissions"),
    }
}
