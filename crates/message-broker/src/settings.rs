//! Settings of a consumer: concurrency, lease, back-off, maximum number of deliveries.

use std::time::Duration;

use daemon::backoff::Backoff;

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
    /// True if the subscription exists for this consumer only, and ends with it: what is published before or after is not received.
    /// RabbitMQ removes its queue with the connection; on Pub/Sub it is deleted at the end, where it may be created, and expires
    /// after a day if the process is killed. The memory broker keeps it.
    pub is_temporary: bool,
}

// === impl Consume ===

impl Default for Consume {
    fn default() -> Self {
        let backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(10));
        Self { concurrency: 10, lease: Duration::from_mins(10), backoff, max_attempts: Some(5), is_temporary: false }
    }
}

impl Consume {
    pub(crate) fn concurrency(&self) -> u16 {
        self.concurrency.max(1)
    }
}
