//! RabbitMQ by AMQP 0-9-1, with the exchanges and queues that HyperFleet's Go services declare, and further ones.
//!
//! The exchange is named as the topic, the queue `<topic>-<subscription>`; both are durable and have no arguments, so that
//! a Go service may share them. A message that is retried later is published, with confirmation, to a queue for its wait,
//! which forwards it when the wait is over; a dead letter is published, with confirmation, to the exchange `<queue>-dlq`.
//! RabbitMQ's own means for both would need arguments on the shared queue, and adds headers that are not strings.

mod consumer;
mod inspect;
mod link;
mod publisher;
mod settings;
mod topology;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::consumer::Consumer;
use self::publisher::Publisher;
pub use self::settings::{Exchange, Settings};
use crate::deliveries::Deliveries;
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::health::{Health, Register};
use crate::inspection::Inspection;
use crate::message::Message;
use crate::name::{Name, Subscription};
use crate::settings::Consume;

/// Maximum time of a health check.
const PROBE: Duration = Duration::from_secs(3);

/// A client of RabbitMQ.
#[derive(Clone)]
pub struct RabbitMq(Arc<Inner>);

struct Inner {
    settings: Settings,
    publisher: Publisher,
    register: Register,
}

// === impl RabbitMq ===

impl RabbitMq {
    /// Sets up the client without sending a request.
    pub fn new(settings: Settings) -> Result<Self, BrokerError> {
        link::address(&settings)?;
        if settings.routing_key.len() > topology::LONGEST_NAME {
            return Err(BrokerError::new(Operation::Connect, "RabbitMQ", ErrorKind::Incompatible)
                .with_detail("the routing key must not be longer than 255 bytes"));
        }
        let publisher = Publisher::new(settings.clone());
        Ok(Self(Arc::new(Inner { settings, publisher, register: Register::default() })))
    }

    pub(crate) async fn send(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        let attempt = timeout(self.0.settings.attempt_timeout, self.0.publisher.send(topic, message));
        attempt.await.unwrap_or_else(|_elapsed| {
            self.0.publisher.forget();
            Err(BrokerError::new(Operation::Publish, topic, ErrorKind::TimedOut))
        })
    }

    pub(crate) async fn subscribe(
        &self,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
    ) -> Result<Deliveries, BrokerError> {
        topology::check(&self.0.settings, subscription)?;
        let (entry, reporter) = self.0.register.add(
            &subscription.to_string(),
            Err(BrokerError::new(Operation::Connect, subscription, ErrorKind::Unavailable)
                .with_detail("not connected yet")),
        );
        let mut consumer = Consumer::new(self.0.settings.clone(), subscription.clone(), consume, reporter);
        consumer.try_to_begin().await?;
        Ok(Deliveries::begin(consumer, subscription, consume, stop, entry))
    }

    pub(crate) fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        topology::dead_letters(&topology::queue(&self.0.settings, subscription))
    }

    pub(crate) async fn inspect(&self, subscription: &Subscription) -> Result<Inspection, BrokerError> {
        inspect::inspect(&self.0.settings, subscription).await
    }

    pub(crate) async fn health(&self) -> Health {
        let probe = timeout(PROBE, self.0.publisher.probe()).await;
        let publisher =
            probe.unwrap_or_else(|_elapsed| Err(BrokerError::new(Operation::Probe, "RabbitMQ", ErrorKind::TimedOut)));
        Health { publisher, subscribers: self.0.register.states() }
    }
}

impl fmt::Debug for RabbitMq {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RabbitMq").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
