//! The contract of a broker, and its implementations.

use std::time::Duration;

use daemon::backoff::Backoff;
use daemon::retry::{Budget, Interrupted, Transient as _};
use tokio_util::sync::CancellationToken;

use crate::deliveries::Deliveries;
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::event::{Event, Format};
use crate::health::Health;
use crate::inspection::Inspection;
use crate::memory::Memory;
use crate::message::Message;
use crate::name::{Name, Subscription};
#[cfg(feature = "pubsub")]
use crate::pubsub::PubSub;
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq::RabbitMq;
use crate::settings::Consume;

/// Back-off of a publication, which is retried as long as the caller's budget allows: soon at first, then every 5 s.
const PUBLISH: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(5)).with_jitter(20);

/// A broker of events. Cheap to clone; clones share one broker.
#[derive(Clone, Debug)]
pub enum Broker {
    /// In the process.
    Memory(Memory),
    /// Google Pub/Sub, or its emulator.
    #[cfg(feature = "pubsub")]
    PubSub(PubSub),
    /// RabbitMQ.
    #[cfg(feature = "rabbitmq")]
    RabbitMq(RabbitMq),
}

impl Broker {
    /// Publishes an event in structured form, with retries within the budget. Returns once the broker has confirmed it;
    /// after an error the event may have been published nevertheless.
    pub async fn publish(&self, topic: &Name, event: &Event, budget: &Budget) -> Result<(), BrokerError> {
        self.send(topic, &event.encode(Format::Structured), budget).await
    }

    /// Publishes a message unchanged.
    pub async fn send(&self, topic: &Name, message: &Message, budget: &Budget) -> Result<(), BrokerError> {
        let failed = |kind| BrokerError::new(Operation::Publish, topic, kind);
        let mut failures = 0_u32;
        // Not `Budget::retry`: its closure would keep publishing from being spawned.
        loop {
            let error = match budget.run(self.attempt(topic, message)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error,
                Err(Interrupted::Stopped) => return Err(failed(ErrorKind::Stopped)),
                Err(Interrupted::DeadlinePassed) => return Err(failed(ErrorKind::TimedOut)),
            };
            failures = failures.saturating_add(1);
            let wait = PUBLISH.delay(failures, rand::random());
            if !error.is_transient() || !budget.has_time_for(wait) {
                return Err(error);
            }
            tracing::warn!(failures, wait_ms = wait.as_millis(), %error, "publish failed; retrying");
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

    /// Subscribes: ensures that topic, subscription and dead-letter topic exist, and receives until `stop`.
    ///
    /// An unreachable broker is no error: [`health`](Self::health) reports it, and deliveries begin once it is reachable. A
    /// permanent problem, such as an incompatible configuration or a missing permission, is an error where it is known at
    /// once.
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

    /// Returns the subscription that holds another one's dead letters. Subscribe to it with `max_attempts: None`.
    pub fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        match self {
            Self::Memory(memory) => memory.dead_letters(subscription),
            #[cfg(feature = "pubsub")]
            Self::PubSub(pubsub) => pubsub.dead_letters(subscription),
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(rabbitmq) => rabbitmq.dead_letters(subscription),
        }
    }

    /// Inspects what a subscription needs at the broker; `None` in the process, where there is nothing to inspect from outside.
    #[cfg_attr(not(any(feature = "pubsub", feature = "rabbitmq")), expect(unused_variables, reason = "memory only"))]
    pub async fn inspect(&self, subscription: &Subscription) -> Option<Result<Inspection, BrokerError>> {
        match self {
            Self::Memory(_) => std::future::ready(None).await,
            #[cfg(feature = "pubsub")]
            Self::PubSub(pubsub) => Some(Ok(pubsub.inspect(subscription).await)),
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(rabbitmq) => Some(rabbitmq.inspect(subscription).await),
        }
    }

    /// Checks publisher and subscribers now. Takes a few seconds at most.
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

    /// A publication may run in a task of its own.
    #[expect(dead_code, reason = "the test is that it compiles")]
    fn publishing_can_be_spawned(broker: Broker, topic: Name, event: Event, budget: Budget) {
        tokio::spawn(async move { broker.publish(&topic, &event, &budget).await });
    }
}
