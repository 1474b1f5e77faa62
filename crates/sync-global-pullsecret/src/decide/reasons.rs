//! How things are, in one word.

use super::{Next, Phase, Source, State};
use crate::reason::Reason;

impl State {
    /// Steps that take no time keep the word of the step before.
    pub(super) fn reason_now(&self) -> Reason {
        match self.phase {
            Phase::Idle | Phase::Synced => self.reason_at_rest(),
            Phase::Looking { .. } | Phase::Committing { .. } | Phase::Closing { .. } => self.reason,
            Phase::Resuming => Reason::Resuming,
            Phase::Preparing { .. } | Phase::Writing => Reason::Applying,
            Phase::Restarting { .. } | Phase::Proving { .. } => Reason::Restarting,
            Phase::Condemning | Phase::RollingBack | Phase::RestartingBack { .. } | Phase::ProvingBack { .. } => {
                Reason::RollingBack
            }
            Phase::Waiting { next } => self.reason_to_wait(next),
            Phase::Held => Reason::ContentFailed,
            Phase::Stopped => Reason::Stopping,
        }
    }

    fn reason_at_rest(&self) -> Reason {
        match self.source {
            Source::Unknown => Reason::Starting,
            Source::Missing => Reason::SourceMissing,
            Source::Invalid => Reason::SourceInvalid,
            Source::OtherRevision => Reason::OtherRevision,
            Source::Content(_) => Reason::Applied,
        }
    }

    fn reason_to_wait(&self, next: Next) -> Reason {
        match next {
            Next::Examine | Next::Look | Next::Commit | Next::RollBack => Reason::DiskFault,
            Next::Repair => Reason::RepairDelayed,
            Next::Restart(_) if self.faults == 0 => Reason::RestartFailed,
            Next::RestartBack(_) if self.faults == 0 => Reason::RollbackUnproven,
            Next::Restart(_) | Next::Prove(_) | Next::RestartBack(_) | Next::ProveBack(_) => Reason::SystemdUnreachable,
        }
    }
}
