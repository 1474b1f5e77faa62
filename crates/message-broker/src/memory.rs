//! The broker in the process; with a journal, nothing is lost when the process is killed.

#[cfg(feature = "memory-journal")]
mod journal;
#[cfg(not(feature = "memory-journal"))]
#[path = "memory/no_journal.rs"]
mod journal;
mod queues;

use std::collections::BTreeMap;
use std::future::ready;
#[cfg(feature = "memory-journal")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::journal::Journal;
use self::queues::{Item, Queues};
use crate::deliveries::{Deliveries, Source};
use crate::delivery::{Lease, Received, Settlement};
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::health::{Health, Register};
use crate::message::Message;
use crate::name::{Name, Subscription};
use crate::settings::Consume;
use fleet_model::names::message::{
    DEAD_LETTER_REASON, DEAD_LETTER_SOURCE, DEAD_LETTER_SUBSCRIPTION, DEAD_LETTER_TOPIC, filled,
};

/// Delay before a message that could not be settled is delivered again.
const UNSETTLED_DELAY: Duration = Duration::from_secs(1);

/// A broker in the process.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queues: Queues,
    /// Held during writes, so that journal and queues have the same order.
    writing: Mutex<()>,
    journal: Option<Journal>,
    register: Register,
}

/// The broker's end of a delivery. Dropping it releases the message.
#[derive(Debug)]
pub(crate) struct MemoryLease {
    memory: Memory,
    subscription: Subscription,
    item: Option<Item>,
    /// True once a consumer has received it; before that, the count includes a delivery that did not happen.
    is_delivered: bool,
}

/// A consumer of one subscription.
struct Consumer {
    memory: Memory,
    subscription: Subscription,
}

// === impl Memory ===

impl Memory {
    /// Returns a broker whose messages are lost when the process ends.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a broker that stores its messages in a file, which is created if needed and must not be open in another
    /// process. A killed process loses nothing; a power failure may lose the last moments.
    #[cfg(feature = "memory-journal")]
    pub async fn open(path: &Path) -> Result<Self, BrokerError> {
        let journal = Journal::open(path).await?;
        let queues = Queues::default();
        for subscription in journal.subscriptions().await? {
            queues.subscribe(&subscription);
        }
        for (subscription, item) in journal.items().await? {
            queues.add(&subscription, item);
        }
        Ok(Self(Arc::new(Inner { queues, journal: Some(journal), ..Inner::default() })))
    }

    pub(crate) async fn send(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        let _writing = self.0.writing.lock().await;
        let copies = self.0.queues.number(topic, message);
        if copies.is_empty() {
            return Err(BrokerError::new(Operation::Publish, topic, ErrorKind::Unrouted));
        }
        if let Some(journal) = &self.0.journal {
            journal.add(&copies).await?;
        }
        for (subscription, item) in copies {
            self.0.queues.add(&subscription, item);
        }
        Ok(())
    }

    pub(crate) async fn subscribe(
        &self,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
    ) -> Result<Deliveries, BrokerError> {
        self.create_subscription(subscription).await?;
        if consume.max_attempts.is_some() {
            self.create_subscription(&self.dead_letters(subscription)).await?;
        }
        let (entry, _never_fails) = self.0.register.add(&subscription.to_string(), Ok(()));
        let consumer = Consumer { memory: self.clone(), subscription: subscription.clone() };
        Ok(Deliveries::begin(consumer, subscription, consume, stop, entry))
    }

    #[expect(clippy::unused_self, reason = "each broker derives these names in its own way")]
    pub(crate) fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        let name = |pattern| Name::derived(filled(pattern, &[("subscription", subscription.id.as_str())]));
        Subscription { topic: name(DEAD_LETTER_TOPIC), id: name(DEAD_LETTER_SUBSCRIPTION) }
    }

    pub(crate) fn health(&self) -> Health {
        Health { publisher: Ok(()), subscribers: self.0.register.states() }
    }

    async fn create_subscription(&self, subscription: &Subscription) -> Result<(), BrokerError> {
        // A derived name may be too long, and the journal could not be read again.
        Subscription::new(subscription.topic.as_str(), subscription.id.as_str()).map_err(|invalid| {
            BrokerError::new(Operation::Prepare, subscription, ErrorKind::Incompatible)
                .with_detail(format!("a name {invalid}"))
        })?;
        let _writing = self.0.writing.lock().await;
        if let Some(journal) = &self.0.journal {
            journal.subscribe(subscription).await?;
        }
        self.0.queues.subscribe(subscription);
        Ok(())
    }

    async fn forget(&self, item: &Item) -> Result<(), BrokerError> {
        if let Some(journal) = &self.0.journal {
            let _writing = self.0.writing.lock().await;
            journal.remove(item).await?;
        }
        Ok(())
    }

    /// Records a delivery of an item, so that the count survives a restart.
    async fn count(&self, item: &Item) {
        if let Some(journal) = &self.0.journal {
            let _writing = self.0.writing.lock().await;
            if let Err(error) = journal.count(item).await {
                tracing::warn!(%error, "a delivery could not be counted");
            }
        }
    }
}

// === impl Consumer ===

impl Source for Consumer {
    async fn receive(&mut self) -> Received {
        let item = self.memory.0.queues.take(&self.subscription).await;
        let (message, attempt) = (Message::clone(&item.message), item.attempt);
        // From here on, dropping the lease releases the item.
        let (memory, subscription) = (self.memory.clone(), self.subscription.clone());
        let lease = MemoryLease { memory, subscription, item: Some(item), is_delivered: false };
        Received { message, attempt, lease: Box::new(lease) }
    }

    async fn stop(&mut self) {}

    async fn close(self) {}
}

// === impl MemoryLease ===

impl MemoryLease {
    async fn settle(mut self, settlement: Settlement) -> Result<(), BrokerError> {
        self.is_delivered = true;
        let Some(item) = &self.item else { return Ok(()) };
        let is_counted = !matches!(settlement, Settlement::Postpone(_));
        let (settled, wait) = match settlement {
            Settlement::Ack => (self.memory.forget(item).await, None),
            Settlement::Retry(delay) | Settlement::Postpone(delay) => (Ok(()), Some(delay)),
            Settlement::DeadLetter(reason) => (self.dead_letter(item, reason).await, None),
        };
        // A message that could not be settled is delivered again after a delay: at once would be a hot loop while the disk
        // is full.
        let wait = wait.or_else(|| settled.is_err().then_some(UNSETTLED_DELAY));
        if let (Some(mut item), Some(wait)) = (self.item.take(), wait) {
            if !is_counted {
                item.attempt = item.attempt.saturating_sub(1);
                self.memory.count(&item).await;
            }
            self.memory.0.queues.add_after(&self.subscription, item, wait);
        }
        settled
    }

    async fn dead_letter(&self, item: &Item, reason: String) -> Result<(), BrokerError> {
        let mut message = Message::clone(&item.message);
        message.attributes.extend(BTreeMap::from([
            (DEAD_LETTER_REASON.to_owned(), reason),
            (DEAD_LETTER_SOURCE.to_owned(), self.subscription.id.to_string()),
        ]));
        let dead_letter_subscription = self.memory.dead_letters(&self.subscription);
        self.memory.create_subscription(&dead_letter_subscription).await?;
        self.memory.send(&dead_letter_subscription.topic, &message).await?;
        self.memory.forget(item).await
    }
}

impl Lease for MemoryLease {
    fn mark_delivered(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(item) = &self.item {
                self.memory.count(item).await;
            }
            self.is_delivered = true;
        })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        drop(self);
        Box::pin(ready(()))
    }

    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, Result<(), BrokerError>> {
        Box::pin(Self::settle(*self, settlement))
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        if let Some(mut item) = self.item.take() {
            item.attempt = item.attempt.saturating_sub(u32::from(!self.is_delivered));
            self.memory.0.queues.add(&self.subscription, item);
        }
    }
}

#[cfg(all(test, feature = "memory-journal"))]
mod tests {
    use super::*;

    /// A full disk refuses an acknowledgement as it does a publication.
    #[tokio::test]
    async fn a_message_that_cannot_be_settled_is_not_delivered_again_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(&folder.path().join("events.db")).await.unwrap();
        let subscription = Subscription::new("topic", "subscription").unwrap();
        memory.create_subscription(&subscription).await.unwrap();
        memory.send(&subscription.topic, &Message::default()).await.unwrap();
        let mut consumer = Consumer { memory: memory.clone(), subscription: subscription.clone() };
        for settlement in [Settlement::Ack, Settlement::DeadLetter("it is poison".to_owned())] {
            let mut lease = consumer.receive().await.lease;
            lease.mark_delivered().await;
            memory.0.journal.as_ref().unwrap().refuse_all().await;
            assert_eq!(lease.settle(settlement).await.unwrap_err().kind, ErrorKind::Internal);
            let (ready, due, _) = memory.0.queues.poll(&subscription);
            assert!(ready.is_none() && due.is_some());
        }
    }

    /// The journal could not be read again.
    #[tokio::test]
    async fn a_name_that_grows_too_long_is_refused() {
        let (broker, stop) = (crate::Broker::Memory(Memory::new()), CancellationToken::new());
        let subscription = Subscription::new("topic", &"s".repeat(250)).unwrap();
        let error = broker.subscribe(&subscription, Consume::default(), &stop).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Incompatible);
    }
}
