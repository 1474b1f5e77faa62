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
use crate::names::{DEAD_LETTER_REASON, DEAD_LETTER_SOURCE, DEAD_LETTER_SUFFIX};
use crate::settings::Consume;

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
        let handle = Handle { memory: self.memory.clone(), subscription: self.subscription.clone(), item: Some(item) };
        if let Some(item) = &handle.item {
            self.memory.count(item).await;
        }
        Received { message, attempt, handle: AnyHandle::Memory(handle) }
    }

    async fn stop(&mut self) {}

    async fn close(self) {}
}

// === impl Handle ===

impl Handle {
    pub(crate) async fn settle(mut self, verdict: Verdict) -> Result<(), BrokerError> {
        let Some(item) = &self.item else { return Ok(()) };
        match verdict {
            Verdict::Ack => self.memory.forget(item).await?,
            Verdict::Retry(delay) => {
                if let Some(item) = self.item.take() {
                    self.memory.0.queues.add_after(&self.subscription, item, delay);
                }
            }
            Verdict::Bury(reason) => {
                let mut message = Message::clone(&item.message);
                message.attributes.extend(BTreeMap::from([
                    (DEAD_LETTER_REASON.to_owned(), reason),
                    (DEAD_LETTER_SOURCE.to_owned(), self.subscription.id.to_string()),
                ]));
                let grave = self.memory.dead_letters(&self.subscription);
                self.memory.make(&grave).await?;
                self.memory.send(&grave.topic, &message).await?;
                self.memory.forget(item).await?;
            }
        }
        self.item = None;
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.memory.0.queues.add(&self.subscription, item);
        }
    }
}
