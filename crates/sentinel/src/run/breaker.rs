//! A circuit breaker that limits publications while the broker refuses them.

use std::time::Duration;

use daemon::backoff::Backoff;
use tokio::time::Instant;

/// Time for which the breaker opens after consecutive failures.
const OPEN: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(5));

/// Time for which the breaker opens when the broker refuses the identity.
const REFUSED: Duration = Duration::from_mins(1);

/// The limit of publications in flight. A closed breaker allows `limit` of them, an open one none, and a half-open one a trial.
#[derive(Debug)]
pub(crate) struct Breaker {
    limit: usize,
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, failures: 0, open_until: None }
    }

    /// Returns the time at which another event may be published; `None` if one of those in flight must finish first. After a
    /// failure a single event is tried.
    pub(crate) fn next_slot_at(&self, in_flight: usize, now: Instant) -> Option<Instant> {
        match self.open_until {
            None => (in_flight < self.limit).then_some(now),
            Some(until) => (in_flight == 0).then_some(until),
        }
    }

    pub(crate) fn succeeded(&mut self) {
        (self.failures, self.open_until) = (0, None);
    }

    /// Opens for longer: only a change of credentials or permissions helps.
    pub(crate) fn refused(&mut self, now: Instant) {
        self.open_until = Some(now + REFUSED);
    }

    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.open_until = Some(now + OPEN.nominal(self.failures));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_single_event_is_tried_after_a_failure() {
        let (mut breaker, start) = (Breaker::new(2), Instant::now());
        assert_eq!(breaker.next_slot_at(1, start), Some(start));
        assert_eq!(breaker.next_slot_at(2, start), None);
        breaker.failed(start);
        assert_eq!(breaker.next_slot_at(0, start), Some(start + OPEN.first));
        assert_eq!(breaker.next_slot_at(1, start + OPEN.first), None);
        for _ in 0..40 {
            breaker.failed(start);
        }
        assert_eq!(breaker.next_slot_at(0, start), Some(start + OPEN.cap));
        breaker.refused(start);
        assert_eq!(breaker.next_slot_at(0, start), Some(start + REFUSED));
        breaker.succeeded();
        assert_eq!(breaker.next_slot_at(1, start), Some(start));
    }
}
