//! A broker that refuses is not asked for everything at once.

use std::time::Duration;

use tokio::time::Instant;

/// After the first refusal nothing is published for so long, then twice as long, and so on.
const FIRST: Duration = Duration::from_millis(100);
/// But never longer.
const LONGEST: Duration = Duration::from_secs(5);

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

    /// Whether another event may be sent beside so many; after a refusal one alone tries it.
    pub(crate) fn allows(&self, in_flight: usize, now: Instant) -> bool {
        match self.closed_until {
            None => in_flight < self.limit,
            Some(until) => in_flight == 0 && now >= until,
        }
    }

    /// When one alone may try it.
    pub(crate) fn free_at(&self) -> Option<Instant> {
        self.closed_until
    }

    pub(crate) fn accepted(&mut self) {
        (self.refusals, self.closed_until) = (0, None);
    }

    pub(crate) fn refused(&mut self, now: Instant) {
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(self.refusals.min(16))).min(LONGEST);
        self.refusals += 1;
        self.closed_until = Some(now + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_alone_tries_it_after_a_refusal() {
        let (mut breaker, start) = (Breaker::new(2), Instant::now());
        assert!(breaker.allows(1, start) && !breaker.allows(2, start));
        breaker.refused(start);
        assert!(!breaker.allows(0, start));
        let later = start + FIRST;
        assert!(breaker.allows(0, later) && !breaker.allows(1, later));
        for _ in 0..40 {
            breaker.refused(start);
        }
        assert!(breaker.allows(0, start + LONGEST));
        breaker.accepted();
        assert!(breaker.allows(1, start));
    }
}
