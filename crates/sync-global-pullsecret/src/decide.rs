//! What the syncer does next: from a state and an event to a state and effects.
//!
//! A change of the kubelet's file is one journey: look, prepare (backup and journal), write, restart, prove, commit. Where
//! the kubelet does not come up, the journey leads back: condemn, roll back, restart, prove, close. What is on disk says at
//! any instruction where the journey stands, so that the next start finishes or undoes it.

mod delays;
mod graph;
mod journal;
mod journey;
mod reasons;

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;

use crate::content::ContentId;
use crate::reason::Reason;

pub use delays::Delays;
pub use graph::graph;
pub use journal::{Change, Failed, Journal, Stage};

/// How often a change is tried before it is taken back.
pub const ATTEMPTS: u8 = 3;

/// All that a decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    phase: Phase,
    source: Source,
    /// The last good content of the source. What the source says afterwards may be worse; this stays wanted.
    wanted: Option<ContentId>,
    journal: Journal,
    /// What was learned while an effect was under way asks for another look.
    look_again: bool,
    /// A repair has waited for its turn.
    spaced: bool,
    /// How often the same content had to be put back because somebody else had changed the file.
    repairs: u8,
    /// How often in a row disk or systemd could not be used.
    faults: u8,
    /// Whether the disk has denied the last record: what it holds may be another one.
    unrecorded: bool,
    reason: Reason,
    since: Timestamp,
    rules: Rules,
}

/// What an operator has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rules {
    /// Whether the kubelet is restarted on a change; else its own refresh within five minutes is relied on.
    pub restart: bool,
    /// The waits.
    pub delays: Delays,
}

/// Where a journey stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing is wanted yet.
    Idle,
    /// Examining what a previous process left unfinished.
    Resuming,
    /// Comparing the file with what is wanted.
    Looking {
        /// What the file is compared with.
        content: ContentId,
    },
    /// Backing the file up and recording what is about to be done.
    Preparing {
        /// What the file is to say.
        content: ContentId,
    },
    /// Replacing the file.
    Writing,
    /// Waiting for systemd to restart the kubelet.
    Restarting {
        /// Which attempt it is, from 1.
        attempt: u8,
    },
    /// Watching whether the kubelet stays up.
    Proving {
        /// Which attempt it is, from 1.
        attempt: u8,
    },
    /// Recording that the change is done.
    Committing {
        /// What the kubelet runs with.
        content: ContentId,
    },
    /// Recording that the change is to be taken back.
    Condemning,
    /// Putting the file back.
    RollingBack,
    /// Waiting for systemd to restart the kubelet with the file as it was.
    RestartingBack {
        /// Which attempt it is, from 1.
        attempt: u8,
    },
    /// Watching whether the kubelet stays up with the file as it was.
    ProvingBack {
        /// Which attempt it is, from 1.
        attempt: u8,
    },
    /// Recording that the change was taken back.
    Closing {
        /// Which content has failed.
        failed: Option<Failed>,
    },
    /// Letting time pass.
    Waiting {
        /// What comes then.
        next: Next,
    },
    /// The file is as wanted, and the kubelet runs with it.
    Synced,
    /// The content failed; waiting for another one, or for a long time.
    Held,
    /// Told to stop.
    Stopped,
}

/// What comes after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// Examining what a previous process left unfinished.
    Examine,
    /// Another look.
    Look,
    /// Putting back what somebody else changed.
    Repair,
    /// A restart, as this attempt.
    Restart(u8),
    /// Watching the kubelet, as this attempt.
    Prove(u8),
    /// Recording that the change is done.
    Commit,
    /// Putting the file back.
    RollBack,
    /// A restart with the old file, as this attempt.
    RestartBack(u8),
    /// Watching the kubelet with the old file, as this attempt.
    ProveBack(u8),
}

/// What the source of credentials says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nothing so far.
    Unknown,
    /// There is no such Secret, file or key. What was applied stays.
    Missing,
    /// Its content cannot be used. What was applied stays.
    Invalid,
    /// Its content is of another revision than the one that this process is for.
    OtherRevision,
    /// This content is wanted.
    Content(ContentId),
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The source says something.
    Source(Source),
    /// Somebody has changed the kubelet's file, maybe this program.
    FileTouched,
    /// What the file was found to be after an unfinished change.
    Examined(Found),
    /// What a look has found.
    Looked(Look),
    /// An effect on the disk has ended.
    Done(Disk),
    /// A restart has ended.
    Restarted(Unit),
    /// A watch over the kubelet has ended.
    Proved(Unit),
    /// The wait is over.
    TimeUp,
    /// The process is to end.
    Stop,
}

/// Which content the file has after an unfinished change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// The one from before the change.
    Before,
    /// The change's.
    After,
    /// Neither.
    Other,
    /// It cannot be read.
    Unusable,
}

/// What a look at the file found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// It says what is wanted.
    AsWanted,
    /// It says something else, or nothing.
    Differs,
    /// It cannot be read.
    Unusable,
}

/// How an effect on the disk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disk {
    /// It is done and will outlast a power cut.
    Good,
    /// It could not be done, or not for sure.
    Fault,
    /// The file is no longer the one that was looked at; nothing was done.
    Moved,
}

/// What systemd says about the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// It was restarted; it stayed up.
    Good,
    /// The restart failed or took too long; it did not stay up.
    Bad,
    /// Systemd could not be asked, so nothing is known and nothing was tried.
    Unreachable,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Find out which of its two contents the file has after an unfinished change; answered by `Examined`.
    Examine,
    /// Compare the file with this content; answered by `Looked`.
    Look(ContentId),
    /// Back the file up and record the change to this content, as one durable step; answered by `Done`.
    Prepare(ContentId),
    /// Replace the file by what the last look has made for this content; answered by `Done`.
    Write(ContentId),
    /// Record that this content is applied; answered by `Done`.
    Commit(ContentId),
    /// Record that the change is to be taken back; answered by `Done`.
    Condemn,
    /// Put the file back as it was; answered by `Done`.
    RollBack,
    /// Record that the change was taken back, and which content has failed; answered by `Done`.
    Close(Option<Failed>),
    /// Restart the kubelet; answered by `Restarted`.
    Restart,
    /// Watch the kubelet; answered by `Proved`.
    Prove,
    /// Let this time pass, and forget an earlier wait; answered by `TimeUp`.
    Wait(Duration),
    /// Tell how things are.
    Report(Reason),
}

/// The first state of a process, given what its predecessor recorded, and what to do first.
pub fn start(rules: Rules, journal: Journal, now: Timestamp) -> (State, Vec<Effect>) {
    let state = State {
        phase: Phase::Idle,
        source: Source::Unknown,
        wanted: None,
        journal,
        look_again: false,
        spaced: false,
        repairs: 0,
        faults: 0,
        unrecorded: false,
        reason: Reason::Starting,
        since: now,
        rules,
    };
    let mut effects = vec![Effect::Report(Reason::Starting)];
    let (mut state, first) = match journal.change.map(|change| change.stage) {
        None => state.stay(),
        Some(Stage::Apply) => state.go(Phase::Resuming, Effect::Examine),
        Some(Stage::RollBack) => state.go(Phase::RollingBack, Effect::RollBack),
    };
    effects.extend(first);
    state.reason = state.reason_now();
    if state.reason != Reason::Starting {
        effects.push(Effect::Report(state.reason));
    }
    (state, effects)
}

/// What follows from an event. Events that mean nothing in a state change nothing.
pub fn step(state: State, event: Event, now: Timestamp) -> (State, Vec<Effect>) {
    let before = state.reason;
    let (mut state, mut effects) = state.next(event);
    state.reason = state.reason_now();
    if state.reason != before {
        state.since = now;
        effects.push(Effect::Report(state.reason));
    }
    (state, effects)
}

// === impl State ===

impl State {
    /// Where the journey stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What the source said last.
    pub fn source(&self) -> Source {
        self.source
    }

    /// How things are, in one word, and since when.
    pub fn reason(&self) -> (Reason, Timestamp) {
        (self.reason, self.since)
    }

    /// What is recorded on disk, as far as the disk could be written.
    pub fn journal(&self) -> Journal {
        self.journal
    }

    /// Whether the kubelet runs with the newest content of the source.
    pub fn is_healthy(&self) -> bool {
        let running = match self.phase {
            Phase::Synced => self.journal.applied,
            Phase::Waiting { next: Next::Commit } => self.journal.change.map(|change| change.to),
            _ => None,
        };
        matches!(self.source, Source::Content(content) if running == Some(content))
    }
}
