//! The queues of the broker in the process: ready items, delayed items and waiting consumers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::message::Message;
use crate::name::{Name, Subscription};

/// A message in the queue of one subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Unique number, which orders the items.
    pub(super) number: u64,
    /// The message.
    pub(super) message: Arc<Message>,
    /// Number of deliveries.
    pub(super) attempt: u32,
}

#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    queues: BTreeMap<Subscription, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    ready: BTreeMap<u64, Item>,
    delayed: BTreeMap<(Instant, u64), Item>,
    changed: Arc<Notify>,
}

/// A consumer that waits for a delayed item. If it is dropped, it notifies another consumer, which may not know the due
/// time.
struct Waiting<'a>(Option<&'a Notify>);

// === impl Waiting ===

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(changed) = self.0 {
            changed.notify_one();
        }
    }
}

// === impl Queues ===

impl Queues {
    pub(super) fn subscribe(&self, subscription: &Subscription) {
        self.state().queues.entry(subscription.clone()).or_default();
    }

    /// Returns an item for each subscription of the topic; they are not in the queues yet.
    pub(super) fn number(&self, topic: &Name, message: &Message) -> Vec<(Subscription, Item)> {
        let mut state = self.state();
        let subscriptions: Vec<Subscription> =
            state.queues.keys().filter(|subscription| subscription.topic == *topic).cloned().collect();
        let message = Arc::new(message.clone());
        let number = |subscription| {
            state.last += 1;
            (subscription, Item { number: state.last, message: Arc::clone(&message), attempt: 0 })
        };
        subscriptions.into_iter().map(number).collect()
    }

    /// Adds an item to its queue, to be delivered at once.
    pub(super) fn add(&self, subscription: &Subscription, item: Item) {
        let mut state = self.state();
        state.last = state.last.max(item.number);
        let queue = state.queues.entry(subscription.clone()).or_default();
        queue.ready.insert(item.number, item);
        queue.changed.notify_one();
    }

    /// Adds an item to its queue, to be delivered after the delay.
    pub(super) fn add_after(&self, subscription: &Subscription, item: Item, delay: Duration) {
        let mut state = self.state();
        let queue = state.queues.entry(subscription.clone()).or_default();
        queue.delayed.insert((Instant::now() + delay, item.number), item);
        queue.changed.notify_one();
    }

    /// Takes the next item out of a queue; waits for one.
    pub(super) async fn take(&self, subscription: &Subscription) -> Item {
        loop {
            let (item, due, changed) = self.poll(subscription);
            if let Some(item) = item {
                return item;
            }
            match due {
                None => changed.notified().await,
                Some(due) => {
                    let mut waiting = Waiting(Some(&changed));
                    tokio::select! {
                        () = changed.notified() => {}
                        () = sleep_until(due) => {}
                    }
                    waiting.0 = None;
                }
            }
        }
    }

    /// Takes a ready item; returns also the due time of the next delayed one and the notification of changes.
    pub(super) fn poll(&self, subscription: &Subscription) -> (Option<Item>, Option<Instant>, Arc<Notify>) {
        let mut state = self.state();
        let queue = state.queues.entry(subscription.clone()).or_default();
        let now = Instant::now();
        while let Some(entry) = queue.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let item = entry.remove();
            queue.ready.insert(item.number, item);
        }
        let item = queue.ready.pop_first().map(|(_, mut item)| {
            item.attempt += 1;
            item
        });
        // A notification wakes one consumer, which notifies the next while there is more.
        if item.is_some() && !(queue.ready.is_empty() && queue.delayed.is_empty()) {
            queue.changed.notify_one();
        }
        (item, queue.delayed.first_key_value().map(|((due, _), _)| *due), Arc::clone(&queue.changed))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_consumer_that_stops_waiting_leaves_a_delayed_item_to_another() {
        let (queues, subscription) = (Queues::default(), Subscription::new("topic", "subscription").unwrap());
        queues.subscribe(&subscription);
        let (mut first, mut second) = (Box::pin(queues.take(&subscription)), Box::pin(queues.take(&subscription)));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        let item = Item { number: 1, message: Arc::default(), attempt: 1 };
        queues.add_after(&subscription, item, Duration::from_secs(10));
        // One of the two is notified, and is dropped.
        assert!(first.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(tokio::time::timeout(Duration::from_mins(1), second).await.unwrap().number, 1);
    }
}
