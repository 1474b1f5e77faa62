//! Points in time.

use std::time::Duration;

use jiff::Timestamp;

/// The time that long after another.
pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
