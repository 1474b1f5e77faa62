//! RabbitMQ, by AMQP 0-9-1: exchanges and queues as HyperFleet's Go services declare them, and what they lack beside.
//!
//! The exchange is named as the topic, the queue `<topic>-<subscription>`; both are durable and have no arguments, so that
//! a Go service may share them. A message to be tried later goes, confirmed, to a queue of its own for each wait, which
//! hands it on when the wait is over; what cannot be handled goes, confirmed, to the exchange `<queue>-dlq`. RabbitMQ's
//! own means for both would need arguments on the shared queue, and adds headers that are no strings.

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
use crate::error::{Action, BrokerError, Fault};
use crate::health::{Health, Register};
use crate::message::Message;
use crate::name::{Name, Subscription};
use crate::settings::Consume;
use fleet_model::names::message::DEAD_LETTER_SUFFIX;

/// How long a probe may take.
const PROBE: Duration = Duration::from_secs(3);

/// Which RabbitMQ, and what things are called there.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`. Without `?heartbeat=`, it is 10 s.
    pub url: SecretString,
    /// What kind of exchange; must be that of the Go services that share it.
    pub exchange_kind: Exchange,
    /// The exchange, if it is not named as the topic: HyperFleet's `broker.rabbitmq.exchange`.
    pub exchange: Option<Name>,
    /// What queues begin with, if not with the topic: HyperFleet's `broker.rabbitmq.queue`.
    pub queue: Option<Name>,
    /// What events are published with: HyperFleet's `broker.rabbitmq.routing_key`. Queues are bound with an empty one.
    pub routing_key: String,
    /// How long one attempt at connecting, declaring or publishing may take.
    pub attempt_timeout: Duration,
}

/// What kind of exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Exchange {
    /// What HyperFleet's charts set.
    #[default]
    Topic,
    /// What HyperFleet's broker library has when nothing is set.
    Fanout,
    /// By the exact routing key.
    Direct,
    /// By headers.
    Headers,
}

/// A RabbitMQ.
#[derive(Clone)]
pub struct RabbitMq(Arc<Inner>);

struct Inner {
    settings: Settings,
    publisher: Publisher,
    register: Register,
}

// === impl Settings ===

impl Settings {
    /// What HyperFleet's charts deploy, at that URL.
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
    /// Sets the client up. Nothing is sent.
    pub fn new(settings: Settings) -> Result<Self, BrokerError> {
        link::address(&settings)?;
        if settings.routing_key.len() > topology::LONGEST_NAME {
            return Err(BrokerError::new(Action::Connect, "RabbitMQ", Fault::Misfit)
                .with_detail("the routing key must not be longer than 255 bytes"));
        }
        let publisher = Publisher::new(settings.clone());
        Ok(Self(Arc::new(Inner { settings, publisher, register: Register::default() })))
    }

    pub(crate) async fn send(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        let attempt = timeout(self.0.settings.attempt_timeout, self.0.publisher.send(topic, message));
        attempt.await.unwrap_or_else(|_elapsed| {
            self.0.publisher.forget();
            Err(BrokerError::new(Action::Publish, topic, Fault::TimedOut))
        })
    }

    pub(crate) async fn subscribe(
        &self,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
    ) -> Result<Deliveries, BrokerError> {
        topology::check(&self.0.settings, subscription)?;
        let (watch, teller) = self.0.register.watch(
            &subscription.to_string(),
            Err(BrokerError::new(Action::Connect, subscription, Fault::Unavailable).with_detail("not connected yet")),
        );
        let mut consumer = Consumer::new(self.0.settings.clone(), subscription.clone(), consume, teller);
        consumer.try_to_begin().await?;
        Ok(Deliveries::begin(consumer, subscription, consume, stop, watch))
    }

    pub(crate) fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        let queue = topology::queue(&self.0.settings, subscription);
        let topic = Name::derived(format!("{queue}{DEAD_LETTER_SUFFIX}"));
        Subscription { id: Name::derived("sub".to_owned()), topic }
    }

    pub(crate) async fn health(&self) -> Health {
        let probe = timeout(PROBE, self.0.publisher.probe()).await;
        let publisher =
            probe.unwrap_or_else(|_elapsed| Err(BrokerError::new(Action::Probe, "RabbitMQ", Fault::TimedOut)));
        Health { publisher, subscribers: self.0.register.states() }
    }
}

impl fmt::Debug for RabbitMq {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RabbitMq").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
