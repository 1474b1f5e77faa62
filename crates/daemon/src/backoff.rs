//! Exponential back-off with a cap and jitter. Pure: the caller injects the random number and does the waiting.

use std::time::Duration;

/// Exponential back-off: `first`, then `factor` times as long after each further failure, up to `cap`.
///
/// ```
/// use std::time::Duration;
/// use daemon::backoff::Backoff;
///
/// const RECONNECT: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30)).with_jitter(20);
///
/// assert_eq!(RECONNECT.nominal(3), Duration::from_secs(4));
/// assert_eq!(RECONNECT.delay(3, 1.0), Duration::from_millis(4800));
/// assert_eq!(RECONNECT.nominal(100), Duration::from_secs(30));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub first: Duration,
    /// Growth from one failure to the next.
    pub factor: u32,
    /// Upper bound, before jitter.
    pub cap: Duration,
    /// Maximum deviation from the nominal delay in percent of it, in both directions.
    pub jitter_percent: u8,
}

/// A back-off with a limited number of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Delays between the attempts.
    pub backoff: Backoff,
    /// Maximum number of attempts after the first one.
    pub max_retries: u32,
}

// === impl Backoff ===

impl Backoff {
    /// Doubles from `first` to `cap`, without jitter.
    pub const fn doubling(first: Duration, cap: Duration) -> Self {
        Self { first, factor: 2, cap, jitter_percent: 0 }
    }

    /// Replaces the growth from one failure to the next.
    #[must_use]
    pub const fn with_factor(self, factor: u32) -> Self {
        Self { factor, ..self }
    }

    /// Replaces the jitter.
    #[must_use]
    pub const fn with_jitter(self, percent: u8) -> Self {
        Self { jitter_percent: percent, ..self }
    }

    /// Delay after `failures` consecutive failures, before jitter. Zero while nothing has failed.
    pub fn nominal(&self, failures: u32) -> Duration {
        let Some(growths) = failures.checked_sub(1) else { return Duration::ZERO };
        self.first.saturating_mul(self.factor.saturating_pow(growths)).min(self.cap)
    }

    /// Delay after `failures` consecutive failures. `random` is from 0 to 1 and chooses the deviation within the jitter.
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let nominal = self.nominal(failures);
        if self.jitter_percent == 0 {
            return nominal;
        }
        let deviation = f64::from(self.jitter_percent) / 100.0 * (2.0 * random.clamp(0.0, 1.0) - 1.0);
        Duration::try_from_secs_f64(nominal.as_secs_f64() * (1.0 + deviation)).unwrap_or(nominal)
    }
}

// === impl RetryPolicy ===

impl RetryPolicy {
    /// Delay before the next attempt; `None` after the last retry.
    pub fn delay(&self, failures: u32, random: f64) -> Option<Duration> {
        (failures <= self.max_retries).then(|| self.backoff.delay(failures, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn nominal_seconds(backoff: Backoff, failures: u32) -> Vec<u64> {
        (0..=failures).map(|failures| backoff.nominal(failures).as_secs()).collect()
    }

    #[test]
    fn delays_grow_by_the_factor_up_to_the_cap() {
        let backoff = Backoff::doubling(SECOND, SECOND * 10);
        assert_eq!(nominal_seconds(backoff, 6), [0, 1, 2, 4, 8, 10, 10]);
        assert_eq!(nominal_seconds(backoff.with_factor(3), 4), [0, 1, 3, 9, 10]);
        assert_eq!(nominal_seconds(backoff.with_factor(1), 3), [0, 1, 1, 1]);
    }

    #[test]
    fn no_number_of_failures_and_no_length_overflows() {
        let backoff = Backoff::doubling(SECOND, Duration::MAX).with_jitter(100);
        assert_eq!(backoff.delay(u32::MAX, 0.5).as_secs(), u64::from(u32::MAX));
        let longest = Backoff::doubling(Duration::MAX, Duration::MAX).with_jitter(100);
        assert_eq!(longest.delay(2, 1.0), Duration::MAX);
    }

    #[test]
    fn jitter_deviates_in_both_directions_and_no_further() {
        let backoff = Backoff::doubling(SECOND, SECOND * 4).with_jitter(20);
        let delays = [0.0, 0.5, 1.0, 7.0].map(|random| backoff.delay(2, random).as_millis());
        assert_eq!(delays, [1600, 2000, 2400, 2400]);
        assert_eq!(backoff.delay(9, 1.0).as_millis(), 4800);
    }

    #[test]
    fn a_retry_policy_ends() {
        let policy = RetryPolicy { backoff: Backoff::doubling(SECOND, SECOND * 4), max_retries: 3 };
        let delays: Vec<_> = (1..=4).map(|failures| policy.delay(failures, 0.5).map(|delay| delay.as_secs())).collect();
        assert_eq!(delays, [Some(1), Some(2), Some(4), None]);
    }
}
