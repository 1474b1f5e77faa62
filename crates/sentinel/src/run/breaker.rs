//! A broker that refuses is not asked for everything at once.

use std::time::Duration;

use daemon::backoff::Backoff;
use tokio::time::Instant;

/// Pause of all publishing after consecutive refusals.
const REFUSED: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(5));

/// How much may be on the way.
#[derive(Debug)]
pub(crate) struct Breaker {
    limit: usize,
    refusals: u32,
    closed_until: Option<Instant>,
}

impl Breaker {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, refusals: 0, closed_until: None }
    }

    /// When another event may be sent beside so many; `None`: not before one of them is done. After a refusal one alone
    /// tries it.
    pub(crate) fn room_at(&self, in_flight: usize, now: Instant) -> Option<Instant> {
        match self.closed_until {
            None => (in_flight < self.limit).then_some(now),
            Some(until) => (in_flight == 0).then_some(until),
        }
    }

    pub(crate) fn accepted(&mut self) {
        (self.refusals, self.closed_until) = (0, None);
    }

    pub(crate) fn refused(&mut self, now: Instant) {
        self.refusals = self.refusals.saturating_add(1);
        self.closed_until = Some(now + REFUSED.nominal(self.refusals));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_alone_tries_it_after_a_refusal() {
        let (mut breaker, start) = (Breaker::new(2), Instant::now());
        assert_eq!(breaker.room_at(1, start), Some(start));
        assert_eq!(breaker.room_at(2, start), None);
        breaker.refused(start);
        assert_eq!(breaker.room_at(0, start), Some(start + REFUSED.first));
        assert_eq!(breaker.room_at(1, start + REFUSED.first), None);
        for _ in 0..40 {
            breaker.refused(start);
        }
        assert_eq!(breaker.room_at(0, start), Some(start + REFUSED.cap));
        breaker.accepted();
        assert_eq!(breaker.room_at(1, start), Some(start));
    }
}
