//! The vocabulary of a decision: state, phases, events and effects.

use std::time::Duration;

use jiff::Timestamp;

use super::delays::Delays;
use super::journal::{Failed, Journal};
use crate::content::ContentId;
use crate::reason::Reason;

/// Maximum attempts to restart the kubelet with a new file before the change is rolled back.
pub const MAX_ATTEMPTS: u8 = 3;

/// All that a decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    pub(super) phase: Phase,
    pub(super) source: SourceState,
    /// The last valid content of the source. It stays desired while the source holds nothing that can be used.
    pub(super) desired: Option<ContentId>,
    pub(super) journal: Journal,
    /// An event that arrived during an effect requires another comparison.
    pub(super) compare_again: bool,
    /// The interval before the next repair has passed.
    pub(super) repair_due: bool,
    /// Number of times the same content was put back after another program had changed the file.
    pub(super) repairs: u8,
    /// Number of consecutive failures to use the disk or systemd.
    pub(super) faults: u8,
    /// The disk reported that the last record was not written, so the record on disk may be an older one.
    pub(super) unrecorded: bool,
    /// The answers of systemd during the change under way.
    pub(super) systemd: Systemd,
    pub(super) reason: Reason,
    pub(super) since: Timestamp,
    pub(super) rules: Rules,
}

/// The answers of systemd to the attempts of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Systemd {
    /// It has answered none: the kubelet runs as before.
    Silent,
    /// It has not answered for this content; an earlier attempt, or an earlier process, may have restarted the kubelet.
    Unknown,
    /// It has answered for this content.
    Answered,
}

/// The operator's choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rules {
    /// Restart the kubelet on a change; otherwise its own refresh within five minutes is relied on.
    pub restart: bool,
    /// The delays.
    pub delays: Delays,
}

/// The progress of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing is desired yet.
    Idle,
    /// Inspecting the file after a change that a previous process left unfinished.
    Resuming,
    /// Comparing the file with the desired content.
    Comparing {
        /// The desired content.
        content: ContentId,
    },
    /// Backing the file up and recording the change that is about to be made.
    Preparing {
        /// The desired content.
        content: ContentId,
    },
    /// Replacing the file.
    Writing,
    /// Waiting for systemd to restart the kubelet.
    Restarting {
        /// The number of the attempt, from 1.
        attempt: u8,
    },
    /// Verifying that the kubelet stays up.
    Verifying {
        /// The number of the attempt, from 1.
        attempt: u8,
    },
    /// Recording that the change is done.
    Committing {
        /// The content with which the kubelet runs.
        content: ContentId,
    },
    /// Recording that the change is to be rolled back.
    MarkingForRollback,
    /// Putting the previous file back.
    RollingBack,
    /// Waiting for systemd to restart the kubelet with the previous file.
    RestartingRolledBack {
        /// The number of the attempt, from 1.
        attempt: u8,
    },
    /// Verifying that the kubelet stays up with the previous file.
    VerifyingRolledBack {
        /// The number of the attempt, from 1.
        attempt: u8,
    },
    /// Recording that the change was rolled back.
    FinishingRollback {
        /// The content that has failed.
        failed: Option<Failed>,
    },
    /// Waiting before the next step.
    Waiting {
        /// The next step.
        next: Next,
    },
    /// The file has the desired content, and the kubelet runs with it.
    Synced,
    /// The content failed; waiting for other content, or for the end of a long back-off.
    BackingOff,
    /// The process is stopping.
    Stopped,
}

/// The step after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// Inspect the file after a change that a previous process left unfinished.
    Examine,
    /// Compare the file again.
    Compare,
    /// Put back what another program changed.
    Repair,
    /// Restart the kubelet, as this attempt.
    Restart(u8),
    /// Verify the kubelet, as this attempt.
    Verify(u8),
    /// Record that the kubelet runs with this content.
    Commit(ContentId),
    /// Put the previous file back.
    RollBack,
    /// Restart the kubelet with the previous file, as this attempt.
    RestartRolledBack(u8),
    /// Verify the kubelet with the previous file, as this attempt.
    VerifyRolledBack(u8),
}

/// The state of the source of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceState {
    /// The source has not been read yet.
    Unknown,
    /// There is no such Secret, file or key. The applied content stays.
    Missing,
    /// The source's content cannot be used. The applied content stays.
    Invalid,
    /// The source's content is of another revision than the one that this process is for.
    OtherRevision,
    /// The source holds this content.
    Content(ContentId),
}

/// An event that a decision follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The source has changed.
    Source(SourceState),
    /// The kubelet's file has changed, perhaps by this program's own write.
    FileChanged,
    /// The file was inspected after an unfinished change.
    Examined(FileVersion),
    /// The file was compared with the desired content.
    Compared(Comparison),
    /// An effect on the disk has ended.
    DiskDone(DiskResult),
    /// A restart has ended.
    Restarted(UnitResult),
    /// A verification has ended.
    Verified(UnitResult),
    /// The wait is over.
    TimerFired,
    /// The process is to stop.
    Stop,
}

/// The version of the file after an unfinished change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileVersion {
    /// The file from before the change.
    Before,
    /// The file that the change wrote.
    After,
    /// Neither.
    Other,
    /// The file cannot be read.
    Unreadable,
}

/// The result of comparing the file with the desired content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// The file has the desired content.
    Equal,
    /// The file has other content, or there is none.
    Different,
    /// The file cannot be read.
    Unreadable,
}

/// The result of an effect on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskResult {
    /// It is done and will survive a power cut.
    Succeeded,
    /// It was not done, or not for certain.
    Failed,
    /// The file is no longer the one that was compared; nothing was done.
    FileChanged,
}

/// The result of a restart or a verification of the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitResult {
    /// The kubelet was restarted, or stayed up.
    Succeeded,
    /// The restart failed or timed out, or the kubelet did not stay up.
    Failed,
    /// systemd could not be reached: nothing is known and nothing was tried.
    Unreachable,
}

/// An effect to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Find out which version of the file is there after an unfinished change; answered by `Examined`.
    Examine,
    /// Compare the file with this content; answered by `Compared`.
    Compare(ContentId),
    /// Back the file up and record the change to this content, as one durable step; answered by `DiskDone`.
    Prepare(ContentId),
    /// Replace the file with the one that the last comparison prepared for this content; answered by `DiskDone`.
    Write(ContentId),
    /// Record that this content is applied; answered by `DiskDone`.
    Commit(ContentId),
    /// Record that the change is to be rolled back; answered by `DiskDone`.
    MarkForRollback,
    /// Put the previous file back; answered by `DiskDone`.
    RollBack,
    /// Record that the change was rolled back, and which content has failed; answered by `DiskDone`.
    FinishRollback(Option<Failed>),
    /// Restart the kubelet; answered by `Restarted`.
    Restart,
    /// Verify that the kubelet stays up; answered by `Verified`.
    Verify,
    /// Wait this long, and cancel an earlier wait; answered by `TimerFired`.
    Wait(Duration),
    /// Report the state.
    Report(Reason),
}

// === impl State ===

impl State {
    /// The progress of a change.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The last state of the source.
    pub fn source(&self) -> SourceState {
        self.source
    }

    /// The reason for the current state, and the time since which it holds.
    pub fn reason(&self) -> (Reason, Timestamp) {
        (self.reason, self.since)
    }

    /// The journal as this process would record it; the disk may have refused the last record.
    pub fn journal(&self) -> Journal {
        self.journal
    }

    /// Returns true if the kubelet runs with the newest content of the source.
    pub fn is_healthy(&self) -> bool {
        let running = match self.phase {
            Phase::Synced => self.journal.applied,
            Phase::Waiting { next: Next::Commit(_) } => self.journal.change.map(|change| change.to),
            _ => None,
        };
        matches!(self.source, SourceState::Content(content) if running == Some(content))
    }
}
