//! The rate of requests of each caller, at this replica.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum tracked callers; when full, new ones get 429 until a bucket is full again.
const MAX_CALLERS: usize = 10_000;

/// A token bucket for each caller: `limit` requests per period, bursts up to `burst`.
#[derive(Debug)]
pub(crate) struct Rate {
    limit: u32,
    burst: u32,
    /// Time in which one request is added to a bucket.
    interval: Duration,
    /// The time at which the bucket of each caller is full again.
    full: Mutex<BTreeMap<String, Instant>>,
}

/// The rate limit of a caller after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimitStatus {
    /// Requests per period.
    pub(crate) limit: u32,
    /// Requests that are left in the bucket.
    pub(crate) remaining: u32,
    /// Seconds until the bucket is full again.
    pub(crate) reset: u64,
    /// Seconds until the next request is allowed, if this one is not.
    pub(crate) retry_after: Option<u64>,
}

// === impl Rate ===

impl Rate {
    /// Returns buckets of `burst` requests, `limit` of which are added per `period`.
    pub(crate) fn new(limit: u32, period: Duration, burst: u32) -> Self {
        let limit = limit.max(1);
        Self { limit, burst: burst.clamp(1, limit), interval: period / limit, full: Mutex::default() }
    }

    /// Counts a request of a caller, if it is allowed.
    pub(crate) fn take(&self, caller: &str) -> RateLimitStatus {
        let Self { limit, burst, interval, .. } = *self;
        let now = Instant::now();
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if full.len() >= MAX_CALLERS && !full.contains_key(caller) {
            full.retain(|_caller, at| *at > now);
        }
        let is_full = full.len() >= MAX_CALLERS && !full.contains_key(caller);
        let before = full.get(caller).copied().unwrap_or(now).max(now);
        let after = before + interval;
        let excess = (after - now).saturating_sub(interval * burst);
        if is_full || !excess.is_zero() {
            let retry_after = Some(seconds(excess).max(1));
            return RateLimitStatus { limit, remaining: 0, reset: seconds(before - now), retry_after };
        }
        full.insert(caller.to_owned(), after);
        let left = (interval * burst).saturating_sub(after - now).as_nanos() / interval.as_nanos().max(1);
        let remaining = u32::try_from(left).unwrap_or(u32::MAX);
        RateLimitStatus { limit, remaining, reset: seconds(after - now), retry_after: None }
    }
}

/// Returns whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_allowed_and_then_the_rate() {
        let rate = Rate::new(60, Duration::from_mins(1), 3);
        let remaining: Vec<u32> = (0..3).map(|_each| rate.take("ann").remaining).collect();
        assert_eq!(remaining, [2, 1, 0]);
        let refused = rate.take("ann");
        assert_eq!((refused.limit, refused.remaining, refused.reset, refused.retry_after), (60, 0, 3, Some(1)));
        assert_eq!(rate.take("bob").retry_after, None, "each caller has a rate of its own");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((rate.take("ann").retry_after, rate.take("ann").retry_after), (None, Some(1)));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(rate.take("ann").remaining, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_callers_is_bounded() {
        let rate = Rate::new(60, Duration::from_mins(1), 3);
        for caller in 0..MAX_CALLERS {
            rate.take(&caller.to_string());
        }
        assert_eq!((rate.take("ann").retry_after, rate.take("7").retry_after), (Some(1), None));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(rate.take("ann").retry_after, None);
        assert_eq!(rate.full.lock().unwrap().len(), 1);
    }
}
