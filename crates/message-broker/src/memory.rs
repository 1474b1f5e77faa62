//! A broker within the process, with a journal if nothing is to be lost when the process is killed.

#[cfg(feature = "memory-journal")]
mod journal;
#[cfg(not(feature = "memory-journal"))]
#[path = "memory/no_journal.rs"]
mod journal;
mod queues;

use std::collections::BTreeMap;
#[cfg(feature = "memory-journal")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::journal::Journal;
use self::queues::{Item, Queues};
use crate::deliveries::{Deliveries, Source};
use crate::delivery::{Handle as AnyHandle, Received, Verdict};
use crate::error::{Action, BrokerError, Fault};
use crate::health::{Health, Register};
use crate::message::Message;
use crate::name::{Name, Subscription};
use crate::settings::Consume;
use fleet_model::names::message::{DEAD_LETTER_REASON, DEAD_LETTER_SOURCE, DEAD_LETTER_SUFFIX};

/// How long a message is kept that could not be settled.
const UNSETTLED: Duration = Duration::from_secs(1);

/// A broker within the process.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queues: Queues,
    /// Held while something is written; what is told to wait is written in the same order.
    writing: Mutex<()>,
    journal: Option<Journal>,
    register: Register,
}

/// A delivery's other end. Dropping it puts the message back.
#[derive(Debug)]
pub(crate) struct Handle {
    memory: Memory,
    subscription: Subscription,
    item: Option<Item>,
    /// Whether a consumer has it; else it was not delivered yet, whatever its count.
    is_out: bool,
}

/// What a consumer takes from.
struct Consumer {
    memory: Memory,
    subscription: Subscription,
}

// === impl Memory ===

impl Memory {
    /// A broker that forgets everything when the process ends.
    pub fn new() -> Self {
        Self::default()
    }

    /// A broker that keeps everything in a file, made if it is not there, and begins with what the file holds. No other
    /// process may have it open. A killed process loses nothing; a machine without power may lose the last moments.
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
        let _turn = self.0.writing.lock().await;
        let copies = self.0.queues.number(topic, message);
        if copies.is_empty() {
            return Err(BrokerError::new(Action::Publish, topic, Fault::Unrouted));
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
        self.make(subscription).await?;
        if consume.max_attempts.is_some() {
            self.make(&self.dead_letters(subscription)).await?;
        }
        let (watch, _never_fails) = self.0.register.watch(&subscription.to_string(), Ok(()));
        let consumer = Consumer { memory: self.clone(), subscription: subscription.clone() };
        Ok(Deliveries::begin(consumer, subscription, consume, stop, watch))
    }

    #[expect(clippy::unused_self, reason = "every broker has names of its own for them")]
    pub(crate) fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        let topic = subscription.id.with(DEAD_LETTER_SUFFIX);
        Subscription { id: topic.with("-sub"), topic }
    }

    pub(crate) fn health(&self) -> Health {
        Health { publisher: Ok(()), subscribers: self.0.register.states() }
    }

    async fn make(&self, subscription: &Subscription) -> Result<(), BrokerError> {
        // A name of our own making may be too long, and the journal could not be read again.
        Subscription::new(subscription.topic.as_str(), subscription.id.as_str()).map_err(|invalid| {
            BrokerError::new(Action::Prepare, subscription, Fault::Misfit).with_detail(format!("a name {invalid}"))
        })?;
        let _turn = self.0.writing.lock().await;
        if let Some(journal) = &self.0.journal {
            journal.subscribe(subscription).await?;
        }
        self.0.queues.subscribe(subscription);
        Ok(())
    }

    async fn forget(&self, item: &Item) -> Result<(), BrokerError> {
        if let Some(journal) = &self.0.journal {
            let _turn = self.0.writing.lock().await;
            journal.remove(item).await?;
        }
        Ok(())
    }

    /// Notes that an item was delivered once more, so that it is counted across restarts too.
    async fn count(&self, item: &Item) {
        if let Some(journal) = &self.0.journal {
            let _turn = self.0.writing.lock().await;
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
        // From here on, dropping it puts it back.
        let (memory, subscription) = (self.memory.clone(), self.subscription.clone());
        let handle = Handle { memory, subscription, item: Some(item), is_out: false };
        Received { message, attempt, handle: AnyHandle::Memory(handle) }
    }

    async fn stop(&mut self) {}

    async fn close(self) {}
}

// === impl Handle ===

impl Handle {
    pub(crate) async fn hand_out(&mut self) {
        if let Some(item) = &self.item {
            self.memory.count(item).await;
        }
        self.is_out = true;
    }

    pub(crate) async fn settle(mut self, verdict: Verdict) -> Result<(), BrokerError> {
        self.is_out = true;
        let Some(item) = &self.item else { return Ok(()) };
        let (settled, wait) = match verdict {
            Verdict::Ack => (self.memory.forget(item).await, None),
            Verdict::Retry(delay) => (Ok(()), Some(delay)),
            Verdict::Bury(reason) => (self.bury(item, reason).await, None),
        };
        // What could not be settled comes again; not at once, as that would be a hot loop until the disk has room again.
        let wait = wait.or_else(|| settled.is_err().then_some(UNSETTLED));
        if let (Some(item), Some(wait)) = (self.item.take(), wait) {
            self.memory.0.queues.add_after(&self.subscription, item, wait);
        }
        settled
    }

    async fn bury(&self, item: &Item, reason: String) -> Result<(), BrokerError> {
        let mut message = Message::clone(&item.message);
        message.attributes.extend(BTreeMap::from([
            (DEAD_LETTER_REASON.to_owned(), reason),
            (DEAD_LETTER_SOURCE.to_owned(), self.subscription.id.to_string()),
        ]));
        let grave = self.memory.dead_letters(&self.subscription);
        self.memory.make(&grave).await?;
        self.memory.send(&grave.topic, &message).await?;
        self.memory.forget(item).await
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(mut item) = self.item.take() {
            item.attempt = item.attempt.saturating_sub(u32::from(!self.is_out));
            self.memory.0.queues.add(&self.subscription, item);
        }
    }
}

#[cfg(all(test, feature = "memory-journal"))]
mod tests {
    use super::*;

    /// A full disk refuses an acknowledgement as it does a publication.
    #[tokio::test]
    async fn what_cannot_be_settled_does_not_come_again_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(&folder.path().join("events.db")).await.unwrap();
        let subscription = Subscription::new("topic", "subscription").unwrap();
        memory.make(&subscription).await.unwrap();
        memory.send(&subscription.topic, &Message::default()).await.unwrap();
        let mut consumer = Consumer { memory: memory.clone(), subscription: subscription.clone() };
        for verdict in [Verdict::Ack, Verdict::Bury("it is poison".to_owned())] {
            let AnyHandle::Memory(mut handle) = consumer.receive().await.handle else { panic!("another's") };
            handle.hand_out().await;
            memory.0.journal.as_ref().unwrap().refuse_all().await;
            assert_eq!(handle.settle(verdict).await.unwrap_err().fault, Fault::Internal);
            let (ready, due, _) = memory.0.queues.look(&subscription);
            assert!(ready.is_none() && due.is_some());
        }
    }

    /// The journal could not be read again.
    #[tokio::test]
    async fn a_name_that_grows_too_long_is_refused() {
        let (broker, stop) = (crate::Broker::Memory(Memory::new()), CancellationToken::new());
        let subscription = Subscription::new("topic", &"s".repeat(250)).unwrap();
        let error = broker.subscribe(&subscription, Consume::default(), &stop).await.unwrap_err();
        assert_eq!(error.fault, Fault::Misfit);
    }
}
