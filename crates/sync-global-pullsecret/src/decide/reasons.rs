//! The reason for a state.

use super::state::{Next, Phase, SourceState, State, Systemd};
use crate::reason::Reason;

impl State {
    /// Returns the reason for the current phase. Phases that take no time keep the reason of the phase before.
    pub(super) fn reason_now(&self) -> Reason {
        match self.phase {
            Phase::Idle | Phase::Synced => self.reason_at_rest(),
            Phase::Comparing { .. } | Phase::Committing { .. } | Phase::FinishingRollback { .. } => self.reason,
            Phase::Resuming => Reason::Resuming,
            Phase::Preparing { .. } | Phase::Writing => Reason::Applying,
            Phase::Restarting { .. } | Phase::Verifying { .. } => Reason::Restarting,
            Phase::MarkingForRollback
            | Phase::RollingBack
            | Phase::RestartingRolledBack { .. }
            | Phase::VerifyingRolledBack { .. } => Reason::RollingBack,
            Phase::Waiting { next } => self.reason_to_wait(next),
            Phase::BackingOff if self.systemd == Systemd::Silent => Reason::SystemdUnreachable,
            Phase::BackingOff => Reason::ContentFailed,
            Phase::Stopped => Reason::Stopping,
        }
    }

    fn reason_at_rest(&self) -> Reason {
        match self.source {
            SourceState::Unknown => Reason::Starting,
            SourceState::Missing => Reason::SourceMissing,
            SourceState::Invalid => Reason::SourceInvalid,
            SourceState::OtherRevision => Reason::OtherRevision,
            SourceState::Content(_) => Reason::Applied,
        }
    }

    fn reason_to_wait(&self, next: Next) -> Reason {
        match next {
            Next::Examine | Next::Compare | Next::Commit(_) | Next::RollBack => Reason::DiskFault,
            Next::Repair => Reason::RepairDelayed,
            Next::Restart(_) if self.faults == 0 => Reason::RestartFailed,
            Next::RestartRolledBack(_) if self.faults == 0 => Reason::RollbackUnverified,
            Next::Restart(_) | Next::Verify(_) | Next::RestartRolledBack(_) | Next::VerifyRolledBack(_) => {
                Reason::SystemdUnreachable
            }
        }
    }
}
