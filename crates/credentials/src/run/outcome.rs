//! Outcomes of actions: success with its effect on the record, or a failure by what to do about it.

use std::time::Duration;

use daemon::backoff::Backoff;
use daemon::retry::Transient as _;
use jiff::{SignedDuration, Timestamp};
use registry_account::contract::Login;
use registry_account::error::{AccountError, ErrorKind};
use registry_account::probe::{Finding, Verdict};

use super::clusters::{ClusterError, ClusterErrorKind};
use crate::credential::Record;
use crate::ledger::{LedgerError, Outcome, Password};
use crate::reason::Reason;
use crate::state::Action;

/// Delays between attempts that may succeed soon.
const SOON: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_mins(10)).with_jitter(20);
/// Delay before the next attempt at a cause that a person has to resolve.
const SLOWLY: Duration = Duration::from_mins(10);
/// Delay where a registry that is exhausted does not name one.
const RATE_DELAY: Duration = Duration::from_mins(1);
/// Probes that may fail while permissions spread in the registry.
const EARLY_PROBES: u32 = 5;

/// The effect of an action that has succeeded.
#[derive(Debug)]
pub(super) struct Effect {
    pub(super) record: Record,
    pub(super) password: Password,
}

/// An action that has not succeeded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ActionError {
    /// Another attempt follows.
    Retry(Retry),
    /// The rate of the registry is exhausted for that long.
    Exhausted(Duration),
    /// The name belongs to another account.
    NameSpent,
    /// The account is given up and deleted.
    GiveUp(Reason),
    /// The cluster of the credential does not exist any more.
    ClusterGone,
    /// Another replica may go on with the row: the ledger could not be read.
    Abandon,
}

/// Another attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) reason: Reason,
    pub(super) slowly: bool,
    pub(super) after: Option<Duration>,
}

// === impl ActionError ===

impl ActionError {
    pub(super) fn soon(reason: Reason) -> Self {
        Self::Retry(Retry::soon(reason))
    }

    pub(super) fn slowly(reason: Reason) -> Self {
        Self::Retry(Retry { reason, slowly: true, after: None })
    }

    /// Returns the outcome that the event shows.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Retry(Retry { reason: Reason::Ambiguous, .. }) => Outcome::Unknown,
            _ => Outcome::Failed,
        }
    }
}

impl From<LedgerError> for ActionError {
    fn from(error: LedgerError) -> Self {
        if error.is_transient() {
            return Self::Abandon;
        }
        tracing::warn!("{}; retrying", daemon::log::causes(&error));
        Self::slowly(Reason::Denied)
    }
}

// === impl Retry ===

impl Retry {
    pub(super) fn soon(reason: Reason) -> Self {
        Self { reason, slowly: false, after: None }
    }

    /// Notes a failed attempt in a record.
    pub(super) fn note(&self, record: &mut Record, now: Timestamp, random: f64) {
        record.attempts = record.attempts.saturating_add(1);
        let own = if self.slowly { SLOWLY } else { SOON.delay(record.attempts, random) };
        let delay = SignedDuration::try_from(own.max(self.after.unwrap_or_default())).unwrap_or(SignedDuration::MAX);
        record.retry_at = Some(now.saturating_add(delay).unwrap_or(Timestamp::MAX));
        record.failure = Some(self.reason);
    }
}

/// Classifies a failed call of a registry.
pub(super) fn of_registry(action: Action, error: &AccountError) -> ActionError {
    let retry = |reason| ActionError::Retry(Retry { reason, slowly: false, after: error.retry_after });
    match error.kind {
        ErrorKind::QuotaExceeded => ActionError::Exhausted(error.retry_after.unwrap_or(RATE_DELAY)),
        ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal if action.observes() => {
            retry(Reason::Retrying)
        }
        ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal => retry(Reason::Ambiguous),
        ErrorKind::NameTaken => ActionError::NameSpent,
        ErrorKind::Corrupt => ActionError::GiveUp(Reason::Corrupt),
        ErrorKind::PasswordLost => ActionError::GiveUp(Reason::PasswordLost),
        ErrorKind::NotFound if action == Action::Permit => ActionError::GiveUp(Reason::AccountLost),
        ErrorKind::NotFound
        | ErrorKind::NotPrepared
        | ErrorKind::PermissionDenied
        | ErrorKind::Unauthenticated
        | ErrorKind::Invalid
        | ErrorKind::Unsupported => ActionError::slowly(Reason::Denied),
    }
}

/// Classifies a failed call about a cluster.
pub(super) fn of_cluster(error: &ClusterError) -> ActionError {
    let retry = |reason, slowly| ActionError::Retry(Retry { reason, slowly, after: error.retry_after });
    match error.kind {
        ClusterErrorKind::Transient => retry(Reason::Retrying, false),
        ClusterErrorKind::Ambiguous => retry(Reason::Ambiguous, false),
        ClusterErrorKind::Changed => retry(Reason::ClusterChanged, false),
        ClusterErrorKind::Denied => retry(Reason::Denied, true),
        ClusterErrorKind::NotWritable => retry(Reason::NotWritable, true),
    }
}

/// Judges the probe of a new credential. One whose password has ended, in the pool, gives way to another.
pub(super) fn of_probe(finding: Finding, attempts: u32, has_ended: bool) -> Result<(), ActionError> {
    match finding.verdict {
        Verdict::Pulls => Ok(()),
        Verdict::Refused if has_ended => Err(ActionError::GiveUp(Reason::LoginRefused)),
        Verdict::Inconclusive => Err(ActionError::soon(Reason::Retrying)),
        Verdict::Refused if attempts < EARLY_PROBES => Err(ActionError::soon(Reason::LoginRefused)),
        Verdict::Refused => Err(ActionError::slowly(Reason::LoginRefused)),
        _ if attempts < EARLY_PROBES => Err(ActionError::soon(Reason::PullNotPermitted)),
        _ => Err(ActionError::slowly(Reason::PullNotPermitted)),
    }
}

/// Judges the probe with the password of a deleted account.
pub(super) fn of_refusal(finding: Finding, was_proven: bool) -> Result<(), ActionError> {
    match finding.verdict {
        Verdict::Refused => Ok(()),
        // Harbor answers so to a wrong password. The same password could pull before.
        Verdict::NotPermitted if was_proven => Ok(()),
        Verdict::Inconclusive => Err(ActionError::soon(Reason::Retrying)),
        Verdict::NotPermitted | Verdict::Pulls | Verdict::Accepted => Err(ActionError::soon(Reason::StillAccepted)),
    }
}

/// Returns a login whose password is not needed, to compare users by.
pub(super) fn user_only(username: String) -> Login {
    Login { username, password: String::new().into() }
}

#[cfg(test)]
mod tests {
    use registry_account::probe::{Cause, Place};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::pulls(Verdict::Pulls, 0, true, None)]
    #[case::ended(Verdict::Refused, 0, true, Some(ActionError::GiveUp(Reason::LoginRefused)))]
    #[case::early(Verdict::Refused, 0, false, Some(ActionError::soon(Reason::LoginRefused)))]
    #[case::late(Verdict::Refused, EARLY_PROBES, false, Some(ActionError::slowly(Reason::LoginRefused)))]
    #[case::no_answer(Verdict::Inconclusive, 0, true, Some(ActionError::soon(Reason::Retrying)))]
    #[case::not_permitted(Verdict::NotPermitted, 0, true, Some(ActionError::soon(Reason::PullNotPermitted)))]
    fn a_probe_is_judged(
        #[case] verdict: Verdict,
        #[case] attempts: u32,
        #[case] has_ended: bool,
        #[case] expected: Option<ActionError>,
    ) {
        let finding = Finding { verdict, place: Place::TokenEndpoint, cause: Cause::NoProof };
        assert_eq!(of_probe(finding, attempts, has_ended).err(), expected);
    }
}
