//! RabbitMQ by AMQP 0-9-1, with the exchanges and queues that HyperFleet's Go services declare, and further ones.
//!
//! The exchange is named as the topic, the queue `<topic>-<subscription>`; both are durable and have no arguments, so that
//! a Go service may share them. A message that is retried later is published, with confirmation, to a queue for its wait,
//! which forwards it when the wait is over; a dead letter is published, with confirmation, to the exchange `<queue>-dlq`.
//! RabbitMQ's own means for both would need arguments on the shared queue, and adds headers that are not strings.

mod consumer;
mod link;
mod publisher;
mod topology;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapin::ExchangeKind;
use secrecy::SecretString;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::consumer::Consumer;
pub(crate) use self::consumer::Handle;
use self::publisher::Publisher;
use crate::deliveries::Deliveries;
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::health::{Health, Register};
use crate::message::Message;
use crate::name::{Name, Subscription};
use crate::settings::Consume;
use fleet_model::names::message::DEAD_LETTER_SUFFIX;

/// Maximum time of a health check.
const PROBE: Duration = Duration::from_secs(3);

/// Settings of the client: address and names.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`. Without a vhost, or with an empty one, it is `/`. Without
    /// `?heartbeat=`, the heartbeat is 10 s.
    pub url: SecretString,
    /// Type of the exchange; must be that of the Go services that share it.
    pub exchange_kind: Exchange,
    /// The exchange, if it is not named as the topic: HyperFleet's `broker.rabbitmq.exchange`.
    pub exchange: Option<Name>,
    /// Prefix of the queues, if it is not the topic: HyperFleet's `broker.rabbitmq.queue`.
    pub queue: Option<Name>,
    /// Routing key of publications: HyperFleet's `broker.rabbitmq.routing_key`. Queues are bound with an empty one.
    pub routing_key: String,
    /// Maximum time of one attempt to connect, declare or publish.
    pub attempt_timeout: Duration,
}

/// Type of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Exchange {
    /// The type that HyperFleet's charts set.
    #[default]
    Topic,
    /// The default of HyperFleet's broker library.
    Fanout,
    /// Routes by the exact routing key.
    Direct,
    /// Routes by headers.
    Headers,
}

/// A client of RabbitMQ.
#[derive(Clone)]
pub struct RabbitMq(Arc<Inner>);

struct Inner {
    settings: Settings,
    publisher: Publisher,
    register: Register,
}

// === impl Settings ===

impl Settings {
    /// Returns the settings for the RabbitMQ at that URL, as HyperFleet's charts deploy it.
    pub fn new(url: SecretString) -> Self {
        Self {
            url,
            exchange_kind: Exchange::default(),
            exchange: None,
            queue: None,
            routing_key: String::new(),
            attempt_timeout: Duration::from_secs(5),
        }
    }
}

// === impl Exchange ===

impl Exchange {
    fn kind(self) -> ExchangeKind {
        match self {
            Self::Topic => ExchangeKind::Topic,
            Self::Fanout => ExchangeKind::Fanout,
            Self::Direct => ExchangeKind::Direct,
            Self::Headers => ExchangeKind::Headers,
        }
    }
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
        let queue = topology::queue(&self.0.settings, subscription);
        let topic = Name::derived(format!("{queue}{DEAD_LETTER_SUFFIX}"));
        Subscription { id: Name::derived("sub".to_owned()), topic }
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
