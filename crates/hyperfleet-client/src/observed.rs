//! The times that reports carry: each later than the one before, as the API drops a report that is not.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Gives out times that strictly increase, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct ObservedTimes {
    last: AtomicI64,
}

// === impl ObservedTimes ===

impl ObservedTimes {
    /// The time of a report that is made now; a microsecond after the last one if the clock has not moved on.
    pub(crate) fn next(&self, now: Timestamp) -> Timestamp {
        let now = now.as_microsecond();
        let after = |last: i64| now.max(last.saturating_add(1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        let micros = after(last.unwrap_or_else(|last| last));
        Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_increase_also_while_the_clock_stands_still_or_goes_back() {
        let times = ObservedTimes::default();
        let noon: Timestamp = "2026-01-01T12:00:00.123456789Z".parse().unwrap();
        let earlier: Timestamp = "2026-01-01T11:59:00Z".parse().unwrap();
        let later: Timestamp = "2026-01-01T12:00:01Z".parse().unwrap();
        let given = [noon, noon, earlier, later].map(|now| format!("{:.6}", times.next(now)));
        let expect = [
            "2026-01-01T12:00:00.123456Z",
            "2026-01-01T12:00:00.123457Z",
            "2026-01-01T12:00:00.123458Z",
            "2026-01-01T12:00:01.000000Z",
        ];
        assert_eq!(given, expect);
    }
}
