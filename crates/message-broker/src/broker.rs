//! The promise, and who keeps it.

use std::time::Duration;

use daemon::backoff::Backoff;
use daemon::retry::{Budget, Interrupted, Transient as _};
use tokio_util::sync::CancellationToken;

use crate::deliveries::Deliveries;
use crate::error::{Action, BrokerError, Fault};
use crate::event::{Event, Format};
use crate::health::Health;
use crate::memory::Memory;
use crate::message::Message;
use crate::name::{Name, Subscription};
#[cfg(feature = "pubsub")]
use crate::pubsub::PubSub;
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq::RabbitMq;
use crate::settings::Consume;

/// A publication is tried again for as long as the caller's time allows: soon at first, then every 5 s.
const PUBLISH: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(5)).with_jitter(20);

/// By whom events travel. Cheap to clone; clones are one broker.
#[derive(Clone, Debug)]
pub enum Broker {
    /// Within the process.
    Memory(Memory),
    /// Google Pub/Sub, or its emulator.
    #[cfg(feature = "pubsub")]
    PubSub(PubSub),
    /// RabbitMQ.
    #[cfg(feature = "rabbitmq")]
    RabbitMq(RabbitMq),
}

impl Broker {
    /// Publishes an event in structured form. Returns when the broker has confirmed that it has it; tries again within
    /// the budget, and after an error it may have been published all the same.
    pub async fn publish(&self, topic: &Name, event: &Event, budget: &Budget) -> Result<(), BrokerError> {
        self.send(topic, &event.encode(Format::Structured), budget).await
    }

    /// Publishes a message as it is.
    pub async fn send(&self, topic: &Name, message: &Message, budget: &Budget) -> Result<(), BrokerError> {
        let fault = |fault| BrokerError::new(Action::Publish, topic, fault);
        let mut failures = 0_u32;
        // Not `Budget::retry`: its closure would keep publishing from being spawned.
        loop {
            let error = match budget.run(self.attempt(topic, message)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error,
                Err(Interrupted::Stopped) => return Err(fault(Fault::Stopped)),
                Err(Interrupted::DeadlinePassed) => return Err(fault(Fault::TimedOut)),
            };
            failures = failures.saturating_add(1);
            let wait = PUBLISH.delay(failures, rand::random());
            if !error.is_transient() || !budget.has_time_for(wait) {
                return Err(error);
            }
            tracing::warn!(failures, wait_ms = wait.as_millis(), %error, "publishing failed; trying again");
            if budget.pause(wait).await.is_err() {
                return Err(error);
            }
        }
    }

    async fn attempt(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        match self {
            Self::Memory(memory) => memory.send(topic, message).await,
            #[cfg(feature = "pubsub")]
            Self::PubSub(pubsub) => pubsub.send(topic, message).await,
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(rabbitmq) => rabbitmq.send(topic, message).await,
        }
    }

    /// Subscribes: makes sure that topic, subscription and dead letters are there, and begins to receive, until `stop`.
    ///
    /// An unreachable broker is no error: [`health`](Self::health) tells of it, and deliveries come when it is there. What
    /// is wrong for good, because it does not fit or is not permitted, is an error now where it can be known now.
    pub async fn subscribe(
        &self,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
    ) -> Result<Deliveries, BrokerError> {
        match self {
            Self::Memory(memory) => memory.subscribe(subscription, consume, stop).await,
            #[cfg(feature = "pubsub")]
            Self::PubSub(pubsub) => pubsub.subscribe(subscription, consume, stop).await,
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(rabbitmq) => rabbitmq.subscribe(subscription, consume, stop).await,
        }
    }

    /// The subscription that holds another one's dead letters. Subscribe to it with `max_attempts: None`.
    pub fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        match self {
            Self::Memory(memory) => memory.dead_letters(subscription),
            #[cfg(feature = "pubsub")]
            Self::PubSub(pubsub) => pubsub.dead_letters(subscription),
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(rabbitmq) => rabbitmq.dead_letters(subscription),
        }
    }

    /// Whether it works, as of now. Takes no longer than a few seconds.
    pub async fn health(&self) -> Health {
        match self {
            Self::Memory(memory) => std::future::ready(memory.health()).await,
            #[cfg(feature = "pubsub")]
            Self::PubSub(pubsub) => pubsub.health().await,
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(rabbitmq) => rabbitmq.health().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever publishes may do so in a task.
    #[expect(dead_code, reason = "that it compiles is the test")]
    fn publishing_can_be_spawned(broker: Broker, topic: Name, event: Event, budget: Budget) {
        tokio::spawn(async move { broker.publish(&topic, &event, &budget).await });
    }
}
