//! How a subscription is consumed: how much at once, for how long, and how often again.

use std::time::Duration;

use daemon::backoff::Backoff;

/// How a subscription is consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consume {
    /// At most so many deliveries are out at once; 0 is 1.
    pub concurrency: u16,
    /// So long a delivery may be worked on before it is taken back and delivered again; [`Delivery::extend`] begins it
    /// anew. RabbitMQ itself closes the channel after 30 minutes without an answer.
    ///
    /// [`Delivery::extend`]: crate::Delivery::extend
    pub lease: Duration,
    /// The waits between deliveries of one message.
    pub backoff: Backoff,
    /// After so many deliveries a message is put among the dead letters; `None`: never. Pub/Sub counts itself, from 5
    /// to 100.
    pub max_attempts: Option<u32>,
}

// === impl Consume ===

impl Default for Consume {
    fn default() -> Self {
        let backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(10));
        Self { concurrency: 10, lease: Duration::from_mins(10), backoff, max_attempts: Some(5) }
    }
}

impl Consume {
    pub(crate) fn concurrency(&self) -> u16 {
        self.concurrency.max(1)
    }
}
