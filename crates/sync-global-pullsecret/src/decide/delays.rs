//! The delays of the state machine. All are relative, so that a clock that jumps changes nothing.

use std::time::Duration;

use daemon::backoff::Backoff;

/// Maximum of a counter; no delay depends on a higher one.
const MAX_COUNT: u8 = 12;

/// The delays that an operator can choose; all others are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delays {
    /// Time until content is tried again after its first rollback.
    pub failed_content: Duration,
}

/// Increments a counter up to its maximum.
pub(super) fn count(counter: u8) -> u8 {
    counter.saturating_add(1).min(MAX_COUNT)
}

/// `first`, doubled with each further time, up to `max`; `times` counts from 1.
fn doubled(first: Duration, times: u8, max: Duration) -> Duration {
    Backoff::doubling(first, max).nominal(u32::from(times.max(1)))
}

impl Delays {
    /// Delay after this many failed attempts of a change: 1 s, 2 s.
    pub(super) fn after_attempt(failures: u8) -> Duration {
        doubled(Duration::from_secs(1), failures, Duration::from_secs(4))
    }

    /// Delay after this many failed restarts with the previous file: 2 s to 5 minutes.
    pub(super) fn after_rolled_back_attempt(failures: u8) -> Duration {
        doubled(Duration::from_secs(2), failures, Duration::from_mins(5))
    }

    /// Delay while the disk or systemd cannot be used: 1 s to 1 minute.
    pub(super) fn after_fault(faults: u8) -> Duration {
        doubled(Duration::from_secs(1), faults, Duration::from_mins(1))
    }

    /// Delay before another repair of the same content: 30 s to 10 minutes.
    pub(super) fn before_repair(repairs: u8) -> Duration {
        doubled(Duration::from_secs(30), repairs, Duration::from_mins(10))
    }

    /// Delay before content is tried again that was rolled back this many times: 1 minute where it may not be the cause,
    /// otherwise `failed_content` and up to twelve times that.
    pub(super) fn after_rollback(self, times: u8) -> Duration {
        match times {
            0 => self.failed_content.min(Duration::from_mins(1)),
            _ => doubled(self.failed_content, times, self.failed_content.saturating_mul(12)),
        }
    }
}
