//! Settings of a consumer: concurrency, lease, back-off, maximum number of deliveries.

use std::time::Duration;

/// Settings of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consume {
    /// Maximum number of deliveries in flight; 0 is 1.
    pub concurrency: u16,
    /// Maximum time for handling a delivery before the message is delivered again; [`Delivery::extend`] renews it. RabbitMQ
    /// itself closes the channel after 30 minutes without an answer.
    ///
    /// [`Delivery::extend`]: crate::Delivery::extend
    pub lease: Duration,
    /// Back-off between deliveries of one message.
    pub backoff: Backoff,
    /// Number of deliveries after which a message is dead-lettered; `None`: never. Pub/Sub counts itself, from 5 to 100.
    pub max_attempts: Option<u32>,
}

/// A back-off that doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Wait after the first delivery.
    pub first: Duration,
    /// Maximum wait.
    pub longest: Duration,
}

// === impl Consume ===

impl Default for Consume {
    fn default() -> Self {
        Self { concurrency: 10, lease: Duration::from_mins(10), backoff: Backoff::default(), max_attempts: Some(5) }
    }
}

impl Consume {
    pub(crate) fn concurrency(&self) -> u16 {
        self.concurrency.max(1)
    }
}

// === impl Backoff ===

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_mins(10) }
    }
}

impl Backoff {
    /// Returns the wait after that many deliveries.
    pub fn after(&self, attempt: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1).min(31));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(10) };
        let waits: Vec<u64> = (1..=6).map(|attempt| backoff.after(attempt).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.after(u32::MAX).as_secs(), 10);
    }
}
