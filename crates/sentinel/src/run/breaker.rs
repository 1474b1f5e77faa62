//! A circuit breaker that limits publications while the broker refuses them.

use std::time::Duration;

use tokio::time::Instant;

/// Time for which the breaker opens after a failure; it doubles with each further failure.
const INITIAL_BACKOFF: Duration = Duration::from_millis(100);
/// Maximum of that time.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

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

    pub(crate) fn failed(&mut self, now: Instant) {
        let wait = INITIAL_BACKOFF.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(MAX_BACKOFF);
        self.failures += 1;
        self.open_until = Some(now + wait);
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
        assert_eq!(breaker.next_slot_at(0, start), Some(start + INITIAL_BACKOFF));
        assert_eq!(breaker.next_slot_at(1, start + INITIAL_BACKOFF), None);
        for _ in 0..40 {
            breaker.failed(start);
        }
        assert_eq!(breaker.next_slot_at(0, start), Some(start + MAX_BACKOFF));
        breaker.succeeded();
        assert_eq!(breaker.next_slot_at(1, start), Some(start));
    }
}
