//! One delivery of a message, and the task that holds its lease until it is settled.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::error::{BrokerError, ErrorKind, Operation};
use crate::event::{Event, Malformed};
use crate::message::Message;
use crate::settings::Consume;

/// A message that was delivered to this consumer only.
///
/// The consumer owns it until it is settled or its lease ends. Dropping it releases it, to be delivered again after the
/// back-off.
#[derive(Debug)]
pub struct Delivery {
    message: Message,
    event: Result<Event, Malformed>,
    attempt: u32,
    resource: String,
    commands: mpsc::Sender<Command>,
}

/// Final state of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// The message is acknowledged.
    Ack,
    /// The message is delivered again, after this time at the earliest.
    Retry(Duration),
    /// The message is delivered again, after this time at the earliest, and this delivery is not counted.
    Postpone(Duration),
    /// The message is dead-lettered, with this reason.
    DeadLetter(String),
}

enum Command {
    Extend,
    Settle(SettleRequest, oneshot::Sender<Result<(), BrokerError>>),
}

/// A consumer's request; the task that holds the lease applies the rules to it.
enum SettleRequest {
    Ack,
    Retry(Option<Duration>),
    Postpone(Duration),
    DeadLetter(String),
}

/// A message from a broker. It counts as delivered from [`Lease::mark_delivered`] on.
#[derive(Debug)]
pub(crate) struct Received {
    /// The message.
    pub(crate) message: Message,
    /// Number of the delivery, from 1.
    pub(crate) attempt: u32,
    /// The broker's end of the delivery.
    pub(crate) lease: Box<dyn Lease>,
}

/// The number of messages that were dead-lettered, whatever the cause.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadLetters(Arc<AtomicU64>);

impl DeadLetters {
    /// Counts a message if it was dead-lettered.
    fn count(&self, is_dead: bool) {
        self.0.fetch_add(u64::from(is_dead), Ordering::Relaxed);
    }

    /// Returns the number so far.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The broker's end of a delivery. Dropping it releases the message.
pub(crate) trait Lease: fmt::Debug + Send {
    /// Counts the message as delivered: a consumer is about to receive it. Does nothing for brokers that count themselves.
    fn mark_delivered(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Returns a message that no consumer received: it is delivered again without being counted.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Settles the delivery with the broker.
    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, Result<(), BrokerError>>;

    /// Returns true if the broker itself dead-letters a message after its last attempt.
    fn is_counted_by_broker(&self) -> bool {
        false
    }
}

// === impl Delivery ===

impl Delivery {
    /// Starts the lease of a received message; the task ends when the delivery is settled.
    pub(crate) fn hold(
        received: Received,
        consume: Consume,
        resource: String,
        permit: OwnedSemaphorePermit,
        dead_letters: DeadLetters,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let Received { message, attempt, lease } = received;
        let (sender, commands) = mpsc::channel(1);
        let event = Event::decode(&message);
        let task = async move {
            hold_lease(lease, attempt, consume, commands, &dead_letters).await;
            drop(permit);
        };
        (Self { message, event, attempt, resource, commands: sender }, task)
    }

    /// Returns the event, or the reason why the message is none; such a message should be [rejected](Self::reject).
    pub fn event(&self) -> Result<&Event, &Malformed> {
        self.event.as_ref()
    }

    /// Returns the message as it is on the wire.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Returns the number of deliveries of the message, this one included. Brokers may count too many, and Pub/Sub without
    /// a dead-letter topic does not count.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Renews the lease.
    pub async fn extend(&self) -> Result<(), BrokerError> {
        self.commands.send(Command::Extend).await.map_err(|_gone| self.lost())
    }

    /// Acknowledges the message. After an error it is delivered again.
    pub async fn ack(self) -> Result<(), BrokerError> {
        self.settle(SettleRequest::Ack).await
    }

    /// Returns the message to the broker, to be delivered again after the back-off, or dead-lettered after the last
    /// attempt.
    pub async fn nack(self) -> Result<(), BrokerError> {
        self.settle(SettleRequest::Retry(None)).await
    }

    /// Returns the message to the broker, to be delivered again after `delay`, or after the longest back-off if that is
    /// shorter.
    pub async fn nack_for(self, delay: Duration) -> Result<(), BrokerError> {
        self.settle(SettleRequest::Retry(Some(delay))).await
    }

    /// Returns the message to the broker, to be delivered again after `delay`, without having spent an attempt: what failed is not
    /// the message. Pub/Sub counts each delivery itself, so that a message should rather be held there
    /// ([`extend`](Self::extend)).
    pub async fn postpone(self, delay: Duration) -> Result<(), BrokerError> {
        self.settle(SettleRequest::Postpone(delay)).await
    }

    /// Dead-letters the message at once, with the reason.
    pub async fn reject(self, reason: &str) -> Result<(), BrokerError> {
        self.settle(SettleRequest::DeadLetter(reason.to_owned())).await
    }

    async fn settle(self, request: SettleRequest) -> Result<(), BrokerError> {
        let (reply, answer) = oneshot::channel();
        if self.commands.send(Command::Settle(request, reply)).await.is_err() {
            return Err(self.lost());
        }
        answer.await.unwrap_or_else(|_gone| Err(self.lost()))
    }

    fn lost(&self) -> BrokerError {
        BrokerError::new(Operation::Settle, &self.resource, ErrorKind::Lost)
    }
}

/// Holds the broker's end until the consumer settles or drops the delivery, or its lease ends.
async fn hold_lease(
    lease: Box<dyn Lease>,
    attempt: u32,
    consume: Consume,
    mut commands: mpsc::Receiver<Command>,
    dead_letters: &DeadLetters,
) {
    let mut end = Instant::now() + consume.lease;
    let (request, reply) = loop {
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(Command::Extend) => end = Instant::now() + consume.lease,
                Some(Command::Settle(request, reply)) => break (request, Some(reply)),
                None => break (SettleRequest::Retry(None), None),
            },
            () = sleep_until(end) => {
                tracing::warn!(attempt, "the lease of a delivery has ended; it is delivered again");
                // From here on the consumer's calls fail with `Lost`.
                commands.close();
                break (SettleRequest::Retry(None), None);
            }
        }
    };
    let settlement = match request {
        SettleRequest::Ack => Settlement::Ack,
        SettleRequest::DeadLetter(reason) => Settlement::DeadLetter(shortened(reason)),
        SettleRequest::Postpone(delay) => Settlement::Postpone(delay.min(consume.backoff.cap)),
        SettleRequest::Retry(delay) => match consume.max_attempts {
            Some(most) if attempt >= most && !lease.is_counted_by_broker() => {
                Settlement::DeadLetter(format!("delivered {attempt} times"))
            }
            _ => Settlement::Retry(
                delay.unwrap_or_else(|| consume.backoff.nominal(attempt.max(1))).min(consume.backoff.cap),
            ),
        },
    };
    let is_last = consume.max_attempts.is_some_and(|most| attempt >= most);
    let is_dead = match &settlement {
        Settlement::DeadLetter(_) => true,
        // The broker dead-letters it itself.
        Settlement::Retry(_) | Settlement::Postpone(_) => is_last && lease.is_counted_by_broker(),
        Settlement::Ack => false,
    };
    let settled = lease.settle(settlement).await;
    dead_letters.count(is_dead && settled.is_ok());
    match reply {
        // A caller that has stopped waiting does not need the result.
        Some(reply) => drop(reply.send(settled)),
        None => {
            if let Err(error) = settled {
                tracing::warn!(%error, "a delivery could not be released; the broker delivers it again");
            }
        }
    }
}

/// Cuts a reason to the maximum length of an attribute's value in Pub/Sub.
fn shortened(mut reason: String) -> String {
    const LONGEST: usize = 1_024;
    if reason.len() > LONGEST {
        reason.truncate(reason.floor_char_boundary(LONGEST - '…'.len_utf8()));
        reason.push('…');
    }
    reason
}

// === impl Received ===

impl Received {
    /// Returns true if the maximum number of deliveries is reached and the last one was never settled: the message may
    /// have crashed its consumers, and would crash the next one.
    pub(crate) fn is_spent(&self, consume: &Consume) -> bool {
        consume.max_attempts.is_some_and(|most| self.attempt > most) && !self.lease.is_counted_by_broker()
    }

    /// Dead-letters the message instead of delivering it.
    pub(crate) async fn dead_letter(self, permit: OwnedSemaphorePermit, dead_letters: DeadLetters) {
        let reason = format!("delivered {} times, the last time without an answer", self.attempt.saturating_sub(1));
        let settled = self.lease.settle(Settlement::DeadLetter(reason)).await;
        dead_letters.count(settled.is_ok());
        if let Err(error) = settled {
            tracing::warn!(%error, "a message could not be dead-lettered; the broker delivers it again");
        }
        drop(permit);
    }
}

#[cfg(test)]
mod tests {
    use daemon::retry::Budget;
    use jiff::Timestamp;
    use serde_json::Value;
    use tokio::time::advance;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::memory::Memory;
    use crate::{Broker, Subscription};

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_extended_does_not_end() {
        let broker = Broker::Memory(Memory::new());
        let subscription = Subscription::new("topic", "subscription").unwrap();
        let consume = Consume { lease: Duration::from_secs(10), ..Consume::default() };
        let stop = CancellationToken::new();
        let mut deliveries = broker.subscribe(&subscription, consume, &stop).await.unwrap();
        let budget = Budget::new(Duration::from_secs(1), stop);
        let event = Event::new("source", "type", Timestamp::UNIX_EPOCH, Value::Null);
        broker.publish(&subscription.topic, &event, &budget).await.unwrap();

        let delivery = deliveries.next().await.unwrap();
        for _ in 0..10 {
            advance(Duration::from_secs(6)).await;
            delivery.extend().await.unwrap();
        }
        delivery.ack().await.unwrap();

        broker
            .publish(&subscription.topic, &event, &Budget::new(Duration::from_secs(1), CancellationToken::new()))
            .await
            .unwrap();
        let late = deliveries.next().await.unwrap();
        // The paused clock advances when every task is idle: to the end of the lease, then to the next delivery.
        let again = deliveries.next().await.unwrap();
        assert_eq!(late.ack().await.unwrap_err().kind, ErrorKind::Lost);
        assert_eq!(again.attempt(), 2);
    }
}
