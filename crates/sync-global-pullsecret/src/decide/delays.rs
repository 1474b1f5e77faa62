//! How long each wait is. All are relative, so that a clock that jumps changes nothing.

use std::time::Duration;

use daemon::backoff::Backoff;

/// Counters end here: no wait depends on more.
const MOST: u8 = 12;

/// The waits; those that are not named here are the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delays {
    /// After a content has been taken back for the first time, until it is tried again.
    pub held: Duration,
}

/// One more, up to the most.
pub(super) fn count(counter: u8) -> u8 {
    counter.saturating_add(1).min(MOST)
}

/// Delay after the `times`-th failure, doubling from `first` up to `cap`.
fn doubled(first: Duration, times: u8, cap: Duration) -> Duration {
    Backoff::doubling(first, cap).nominal(u32::from(times.max(1)))
}

impl Delays {
    /// After that many failed attempts of a change: 1 s, 2 s.
    pub(super) fn attempt(failures: u8) -> Duration {
        doubled(Duration::from_secs(1), failures, Duration::from_secs(4))
    }

    /// After that many failed restarts with the old file: 2 s to 5 minutes.
    pub(super) fn back(failures: u8) -> Duration {
        doubled(Duration::from_secs(2), failures, Duration::from_mins(5))
    }

    /// While disk or systemd cannot be used: 1 s to 1 minute.
    pub(super) fn fault(faults: u8) -> Duration {
        doubled(Duration::from_secs(1), faults, Duration::from_mins(1))
    }

    /// Before another repair of the same content: 30 s to 10 minutes.
    pub(super) fn repair(repairs: u8) -> Duration {
        doubled(Duration::from_secs(30), repairs, Duration::from_mins(10))
    }

    /// Before content is tried again that was taken back so often: 1 minute where it may not be to blame, else `held`
    /// and up to twelve times that.
    pub(super) fn held(self, times: u8) -> Duration {
        match times {
            0 => self.held.min(Duration::from_mins(1)),
            _ => doubled(self.held, times, self.held.saturating_mul(12)),
        }
    }
}
