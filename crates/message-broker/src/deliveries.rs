//! The deliveries of one subscription to one consumer, from the first to the last.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::delivery::{DeadLetters, Delivery, Received};
use crate::health::HealthEntry;
use crate::name::Subscription;
use crate::settings::Consume;

/// Maximum time for closing a consumer whose deliveries are all settled.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The deliveries of a subscription to this consumer.
#[derive(Debug)]
pub struct Deliveries {
    received: mpsc::Receiver<(Received, OwnedSemaphorePermit)>,
    consume: Consume,
    resource: String,
    leases: TaskTracker,
    stop: CancellationToken,
    pump: JoinHandle<()>,
    dead_letters: DeadLetters,
}

/// Moves messages from the broker to the consumer, until every delivery in flight is settled.
struct Pump {
    permits: Arc<Semaphore>,
    sender: mpsc::Sender<(Received, OwnedSemaphorePermit)>,
    consume: Consume,
    stop: CancellationToken,
    leases: TaskTracker,
    health: HealthEntry,
    dead_letters: DeadLetters,
}

/// Deliveries that were not settled in time. They are delivered again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} deliveries were not settled in time; they are delivered again")]
pub struct Undrained(pub usize);

/// Source of a subscription's messages. Every method but `receive` is called once.
pub(crate) trait Source: Send + 'static {
    /// Returns the next message, however long it takes, through every outage. Cancel-safe.
    fn receive(&mut self) -> impl Future<Output = Received> + Send;

    /// Requests no more messages and releases those that were not received.
    fn stop(&mut self) -> impl Future<Output = ()> + Send;

    /// Closes the source; no message that was received will be settled any more.
    fn close(self) -> impl Future<Output = ()> + Send;
}

// === impl Deliveries ===

impl Deliveries {
    /// Starts to receive.
    pub(crate) fn begin(
        source: impl Source,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
        health: HealthEntry,
    ) -> Self {
        let (sender, received) = mpsc::channel(1);
        let (stop, leases) = (stop.child_token(), TaskTracker::new());
        let permits = Arc::new(Semaphore::new(consume.concurrency().into()));
        let dead_letters = DeadLetters::default();
        let pump = Pump {
            permits,
            sender,
            consume,
            stop: stop.clone(),
            leases: leases.clone(),
            health,
            dead_letters: dead_letters.clone(),
        };
        let pump = tokio::spawn(pump.run(source));
        Self { received, consume, resource: subscription.to_string(), leases, stop, pump, dead_letters }
    }

    /// Returns the next delivery; `None` after the stop. Waits while the maximum number is in flight. Cancel-safe.
    pub async fn next(&mut self) -> Option<Delivery> {
        let (mut received, permit) = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            received = self.received.recv() => received?,
        };
        received.lease.mark_delivered().await;
        let (delivery, lease) =
            Delivery::hold(received, self.consume, self.resource.clone(), permit, self.dead_letters.clone());
        self.leases.spawn(lease);
        Some(delivery)
    }

    /// Returns the number of deliveries in flight.
    pub fn in_flight(&self) -> usize {
        self.leases.len()
    }

    /// Returns the number of messages that were dead-lettered: rejected, out of attempts, or never settled. Pub/Sub
    /// dead-letters by its own count, which may differ.
    pub fn dead_lettered(&self) -> u64 {
        self.dead_letters.get()
    }

    /// Receives no more, and waits until those in flight are settled with the broker.
    pub async fn drain(mut self, time_limit: Duration) -> Result<(), Undrained> {
        self.stop.cancel();
        self.received.close();
        while let Ok((received, _permit)) = self.received.try_recv() {
            self.leases.spawn(received.lease.release());
        }
        self.leases.close();
        let drained = timeout(time_limit, self.leases.wait()).await;
        let left = self.leases.len();
        if drained.is_ok() {
            let _given_up = timeout(CLOSE_TIMEOUT, &mut self.pump).await;
        }
        self.pump.abort();
        if drained.is_ok() { Ok(()) } else { Err(Undrained(left)) }
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        // The pump continues until every delivery in flight is settled.
        self.stop.cancel();
        self.leases.close();
    }
}

// === impl Pump ===

impl Pump {
    async fn run(self, mut source: impl Source) {
        let Self { permits, sender, consume, stop, leases, health, dead_letters } = self;
        loop {
            let next = async {
                // No message is taken from the broker before a permit is free.
                let permit = Arc::clone(&permits).acquire_owned().await.ok()?;
                Some((source.receive().await, permit))
            };
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                next = next => next,
            };
            let Some((received, permit)) = next else { break };
            if received.is_spent(&consume) {
                leases.spawn(received.dead_letter(permit, dead_letters.clone()));
            } else if let Err(SendError((received, _permit))) = sender.send((received, permit)).await {
                leases.spawn(received.lease.release());
                break;
            }
        }
        drop(sender);
        source.stop().await;
        leases.wait().await;
        source.close().await;
        drop(health);
    }
}
