//! Facts about a Pod's container and its process.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// After a run of this many first delays (ten minutes where that is ten seconds) the back-off starts anew.
const CRASH_BACK_OFF_RESET: u32 = 60;

/// Facts about a Pod's container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) life: Life,
    /// Number of restarts.
    pub(crate) restarts: u32,
    /// Number of consecutive crashes, which determines the next back-off.
    pub(crate) crashes: u32,
    /// The end of the previous run.
    pub(crate) last: Option<Exit>,
    pub(crate) terminating: bool,
    pub(crate) killed: bool,
}

/// A container's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Life {
    #[default]
    Idle,
    Running {
        since: Timestamp,
    },
    Ended(Exit),
}

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: &'static str,
    /// The termination message.
    pub(crate) message: String,
    pub(crate) started: Timestamp,
    pub(crate) finished: Timestamp,
}

impl Facts {
    /// The container begins to run, for the first time or again.
    pub(crate) fn begin(&mut self, now: Timestamp, back_off: Duration) {
        if let Life::Ended(exit) = &self.life {
            let ran = exit.finished.duration_since(exit.started);
            let lasted = SignedDuration::try_from(back_off.saturating_mul(CRASH_BACK_OFF_RESET));
            self.crashes = if lasted.is_ok_and(|lasted| ran >= lasted) { 0 } else { self.crashes };
            self.crashes = self.crashes.saturating_add(1);
            self.restarts = self.restarts.saturating_add(1);
            self.last = Some(exit.clone());
        }
        self.life = Life::Running { since: now };
        self.terminating = false;
        self.killed = false;
    }
}
