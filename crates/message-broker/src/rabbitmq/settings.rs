//! Settings of the client of RabbitMQ: address and names.

use std::time::Duration;

use lapin::ExchangeKind;
use secrecy::SecretString;

use crate::name::Name;

/// Settings of the client: address and names.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`. Without a vhost, or with an empty one, it is `/`. Without
    /// `?heartbeat=`, the heartbeat is 10 s.
    pub url: SecretString,
    /// Type of the exchange; must be that of the Go services that share it. `None` uses an exchange as it is, and creates a missing
    /// one as `topic`.
    pub exchange_kind: Option<Exchange>,
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

// === impl Settings ===

impl Settings {
    /// Returns the settings for the RabbitMQ at that URL, as HyperFleet's charts deploy it.
    pub fn new(url: SecretString) -> Self {
        Self {
            url,
            exchange_kind: None,
            exchange: None,
            queue: None,
            routing_key: String::new(),
            attempt_timeout: Duration::from_secs(5),
        }
    }
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn kind(self) -> ExchangeKind {
        match self {
            Self::Topic => ExchangeKind::Topic,
            Self::Fanout => ExchangeKind::Fanout,
            Self::Direct => ExchangeKind::Direct,
            Self::Headers => ExchangeKind::Headers,
        }
    }
}
