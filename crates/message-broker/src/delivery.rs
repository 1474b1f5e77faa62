//! One delivery of a message, and the task that keeps it until it is settled.

use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::error::{Action, BrokerError, Fault};
use crate::event::{Event, Malformed};
use crate::memory;
use crate::message::Message;
#[cfg(feature = "pubsub")]
use crate::pubsub;
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq;
use crate::settings::Consume;

/// A message that was delivered to this consumer and to no other.
///
/// It is this consumer's until it is settled, or its lease ends. Dropping it hands it back, to be delivered again after
/// the back-off.
#[derive(Debug)]
pub struct Delivery {
    message: Message,
    event: Result<Event, Malformed>,
    attempt: u32,
    resource: String,
    keeper: mpsc::Sender<Command>,
}

/// What is to become of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is done.
    Ack,
    /// It is delivered again, no sooner than after this.
    Retry(Duration),
    /// It goes among the dead letters.
    Bury(String),
}

enum Command {
    Extend,
    Settle(Asked, oneshot::Sender<Result<(), BrokerError>>),
}

/// What a consumer asks for; the keeper knows the rules.
enum Asked {
    Ack,
    Retry(Option<Duration>),
    Bury(String),
}

/// What a broker hands out. It counts as delivered once it is [handed out](Handle::hand_out).
#[derive(Debug)]
pub(crate) struct Received {
    /// The message.
    pub(crate) message: Message,
    /// The first is 1.
    pub(crate) attempt: u32,
    /// Whom to tell what has become of it.
    pub(crate) handle: Handle,
}

/// The broker's end of a delivery. Dropping it hands the message back.
#[derive(Debug)]
pub(crate) enum Handle {
    /// Within the process.
    Memory(memory::Handle),
    /// At Google.
    #[cfg(feature = "pubsub")]
    PubSub(Box<pubsub::Handle>),
    /// At RabbitMQ.
    #[cfg(feature = "rabbitmq")]
    RabbitMq(Box<rabbitmq::Handle>),
}

// === impl Delivery ===

impl Delivery {
    /// Begins to keep what was received; the task ends when it is settled.
    pub(crate) fn keep(
        received: Received,
        consume: Consume,
        resource: String,
        permit: OwnedSemaphorePermit,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let Received { message, attempt, handle } = received;
        let (keeper, commands) = mpsc::channel(1);
        let event = Event::decode(&message);
        let task = keep(handle, attempt, consume, commands, permit);
        (Self { message, event, attempt, resource, keeper }, task)
    }

    /// The event; or why the message is none, in which case it should be [rejected](Self::reject).
    pub fn event(&self) -> Result<&Event, &Malformed> {
        self.event.as_ref()
    }

    /// The message as it is on the wire.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// How often the message was delivered, this one included. Brokers may count too much, and Pub/Sub without a
    /// dead-letter topic counts not at all.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Begins the lease anew.
    pub async fn extend(&self) -> Result<(), BrokerError> {
        self.keeper.send(Command::Extend).await.map_err(|_gone| self.lost())
    }

    /// Says that the message is dealt with. After an error it is delivered again.
    pub async fn ack(self) -> Result<(), BrokerError> {
        self.settle(Asked::Ack).await
    }

    /// Hands the message back, to be delivered again after the back-off, or to go among the dead letters if this was the
    /// last attempt.
    pub async fn nack(self) -> Result<(), BrokerError> {
        self.settle(Asked::Retry(None)).await
    }

    /// The same, but to be delivered again no sooner than after `delay`; no longer than the longest back-off.
    pub async fn nack_for(self, delay: Duration) -> Result<(), BrokerError> {
        self.settle(Asked::Retry(Some(delay))).await
    }

    /// Puts the message among the dead letters at once, with the reason.
    pub async fn reject(self, reason: &str) -> Result<(), BrokerError> {
        self.settle(Asked::Bury(reason.to_owned())).await
    }

    async fn settle(self, asked: Asked) -> Result<(), BrokerError> {
        let (reply, answer) = oneshot::channel();
        if self.keeper.send(Command::Settle(asked, reply)).await.is_err() {
            return Err(self.lost());
        }
        answer.await.unwrap_or_else(|_gone| Err(self.lost()))
    }

    fn lost(&self) -> BrokerError {
        BrokerError::new(Action::Settle, &self.resource, Fault::Lost)
    }
}

/// Holds the broker's end until the consumer settles, drops or outstays its delivery.
async fn keep(
    handle: Handle,
    attempt: u32,
    consume: Consume,
    mut commands: mpsc::Receiver<Command>,
    permit: OwnedSemaphorePermit,
) {
    let mut end = Instant::now() + consume.lease;
    let (asked, reply) = loop {
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(Command::Extend) => end = Instant::now() + consume.lease,
                Some(Command::Settle(asked, reply)) => break (asked, Some(reply)),
                None => break (Asked::Retry(None), None),
            },
            () = sleep_until(end) => {
                tracing::warn!(attempt, "a delivery has outstayed its lease and is taken back");
                // From here on the consumer is told that the delivery is lost.
                commands.close();
                break (Asked::Retry(None), None);
            }
        }
    };
    let verdict = match asked {
        Asked::Ack => Verdict::Ack,
        Asked::Bury(reason) => Verdict::Bury(shortened(reason)),
        Asked::Retry(delay) => match consume.max_attempts {
            Some(most) if attempt >= most && !handle.is_counted_by_broker() => {
                Verdict::Bury(format!("delivered {attempt} times"))
            }
            _ => Verdict::Retry(
                delay.unwrap_or_else(|| consume.backoff.nominal(attempt.max(1))).min(consume.backoff.cap),
            ),
        },
    };
    let settled = handle.settle(verdict).await;
    drop(permit);
    match reply {
        // Whoever has stopped waiting does not want to know.
        Some(reply) => drop(reply.send(settled)),
        None => {
            if let Err(error) = settled {
                tracing::warn!(%error, "a delivery could not be handed back; the broker delivers it again");
            }
        }
    }
}

/// No longer than Pub/Sub takes an attribute's value.
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
    /// Whether it was delivered as often as it may be, and nobody has answered for the last time: its consumers may have
    /// died of it. The next one would, too.
    pub(crate) fn is_spent(&self, consume: &Consume) -> bool {
        consume.max_attempts.is_some_and(|most| self.attempt > most) && !self.handle.is_counted_by_broker()
    }

    /// Puts it among the dead letters instead of delivering it.
    pub(crate) async fn bury(self, permit: OwnedSemaphorePermit) {
        let reason = format!("delivered {} times, the last time without an answer", self.attempt.saturating_sub(1));
        if let Err(error) = self.handle.settle(Verdict::Bury(reason)).await {
            tracing::warn!(%error, "a message could not be put among the dead letters; the broker delivers it again");
        }
        drop(permit);
    }
}

// === impl Handle ===

impl Handle {
    /// A consumer is about to get it: from here on it counts as delivered.
    pub(crate) async fn hand_out(&mut self) {
        match self {
            Self::Memory(handle) => handle.hand_out().await,
            // They count at the broker.
            #[cfg(feature = "pubsub")]
            Self::PubSub(_) => {}
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(_) => {}
        }
    }

    /// No consumer gets it here: it is delivered again, as if it had not been received.
    pub(crate) async fn hand_back(self) {
        match self {
            Self::Memory(handle) => {
                drop(handle);
                std::future::ready(()).await;
            }
            #[cfg(feature = "pubsub")]
            Self::PubSub(handle) => drop(handle),
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(handle) => handle.hand_back().await,
        }
    }

    async fn settle(self, verdict: Verdict) -> Result<(), BrokerError> {
        match self {
            Self::Memory(handle) => handle.settle(verdict).await,
            #[cfg(feature = "pubsub")]
            Self::PubSub(handle) => handle.settle(verdict).await,
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(handle) => handle.settle(verdict).await,
        }
    }

    /// Whether the broker itself puts a message among the dead letters after its last attempt.
    fn is_counted_by_broker(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            #[cfg(feature = "pubsub")]
            Self::PubSub(_) => true,
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(_) => false,
        }
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
        // The clock goes on when nothing else does: to the lease's end, and to the next delivery.
        let again = deliveries.next().await.unwrap();
        assert_eq!(late.ack().await.unwrap_err().fault, Fault::Lost);
        assert_eq!(again.attempt(), 2);
    }
}
