//! The deliveries of one subscription to one consumer, from the first to the last.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::delivery::{Delivery, Received};
use crate::health::Watch;
use crate::name::Subscription;
use crate::settings::Consume;

/// How long a broker may take to let go of a consumer that has settled everything.
const FAREWELL: Duration = Duration::from_secs(10);

/// What a subscription delivers to this consumer.
#[derive(Debug)]
pub struct Deliveries {
    received: mpsc::Receiver<(Received, OwnedSemaphorePermit)>,
    consume: Consume,
    resource: String,
    keepers: TaskTracker,
    stop: CancellationToken,
    pump: JoinHandle<()>,
}

/// Carries from the broker to the consumer, and ends when all that is out is settled.
struct Pump {
    permits: Arc<Semaphore>,
    sender: mpsc::Sender<(Received, OwnedSemaphorePermit)>,
    consume: Consume,
    stop: CancellationToken,
    keepers: TaskTracker,
    watch: Watch,
}

/// Deliveries that were not settled in time. They are delivered again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} deliveries were not settled in time; they are delivered again")]
pub struct Undrained(pub usize);

/// Where a broker's messages come from. Everything but `receive` is called once.
pub(crate) trait Source: Send + 'static {
    /// The next message. Goes on for as long as it takes, through every outage; dropping the future loses nothing.
    fn receive(&mut self) -> impl Future<Output = Received> + Send;

    /// Asks for no more, and hands back what has come and was not received.
    fn stop(&mut self) -> impl Future<Output = ()> + Send;

    /// Ends; everything received has been settled, or never will be.
    fn close(self) -> impl Future<Output = ()> + Send;
}

// === impl Deliveries ===

impl Deliveries {
    /// Begins to receive.
    pub(crate) fn begin(
        source: impl Source,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
        watch: Watch,
    ) -> Self {
        let (sender, received) = mpsc::channel(1);
        let (stop, keepers) = (stop.child_token(), TaskTracker::new());
        let permits = Arc::new(Semaphore::new(consume.concurrency().into()));
        let pump = Pump { permits, sender, consume, stop: stop.clone(), keepers: keepers.clone(), watch };
        let pump = tokio::spawn(pump.run(source));
        Self { received, consume, resource: subscription.to_string(), keepers, stop, pump }
    }

    /// The next delivery; `None` after the stop. Waits while as many are out as may be at once. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Delivery> {
        let (mut received, permit) = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            received = self.received.recv() => received?,
        };
        received.handle.hand_out().await;
        let (delivery, keeper) = Delivery::keep(received, self.consume, self.resource.clone(), permit);
        self.keepers.spawn(keeper);
        Some(delivery)
    }

    /// How many deliveries are out.
    pub fn in_flight(&self) -> usize {
        self.keepers.len()
    }

    /// Takes no more, and waits until those that are out are settled and the broker knows it.
    pub async fn drain(mut self, patience: Duration) -> Result<(), Undrained> {
        self.stop.cancel();
        self.received.close();
        while let Ok((received, _permit)) = self.received.try_recv() {
            self.keepers.spawn(received.handle.hand_back());
        }
        self.keepers.close();
        let drained = timeout(patience, self.keepers.wait()).await;
        let left = self.keepers.len();
        if drained.is_ok() {
            let _given_up = timeout(FAREWELL, &mut self.pump).await;
        }
        self.pump.abort();
        if drained.is_ok() { Ok(()) } else { Err(Undrained(left)) }
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        // The pump goes on until what is out is settled.
        self.stop.cancel();
        self.keepers.close();
    }
}

// === impl Pump ===

impl Pump {
    async fn run(self, mut source: impl Source) {
        let Self { permits, sender, consume, stop, keepers, watch } = self;
        loop {
            let next = async {
                // Nothing is taken from the broker that nobody may work on yet.
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
                keepers.spawn(received.bury(permit));
            } else if let Err(SendError((received, _permit))) = sender.send((received, permit)).await {
                keepers.spawn(received.handle.hand_back());
                break;
            }
        }
        drop(sender);
        source.stop().await;
        keepers.wait().await;
        source.close().await;
        drop(watch);
    }
}
