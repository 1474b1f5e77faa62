//! An inspection of a broker: what exists at it, who receives, and what the identity may do. Nothing is changed, and no message is
//! received or published.

use crate::error::BrokerError;

/// A broker, as an identity finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The broker.
    pub place: Place,
    /// An error is the cause for which there is no answer, or none for this identity.
    pub reached: Result<(), BrokerError>,
    /// The topic (RabbitMQ: its exchange).
    pub topic: Result<Topic, BrokerError>,
    /// The subscription (RabbitMQ: its queue).
    pub subscription: Result<Queue, BrokerError>,
    /// The dead letters of the subscription.
    pub dead_letters: Result<Queue, BrokerError>,
    /// The permission to publish to the topic.
    pub publish: Result<(), BrokerError>,
    /// The permission to receive from the subscription (RabbitMQ: also to declare, bind and fill its queues).
    pub receive: Result<(), BrokerError>,
}

/// The place of topics and subscriptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A virtual host of RabbitMQ.
    RabbitMq {
        /// `HOST:PORT`.
        server: String,
        /// The virtual host.
        vhost: String,
        /// The user, without the password.
        user: String,
    },
    /// A project of Google Pub/Sub, or its emulator.
    PubSub {
        /// The project.
        project: String,
    },
}

/// A topic that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    /// Number of its subscriptions; `None` where the broker does not tell clients.
    pub subscriptions: Option<usize>,
}

/// A subscription that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Number of consumers; `None` where the broker does not tell clients.
    pub consumers: Option<u32>,
    /// Number of messages that wait; `None` where the broker does not tell clients.
    pub messages: Option<u32>,
}

// === impl Inspection ===

impl Inspection {
    /// Returns the inspection of a broker that gives no answer, or none to this identity.
    #[cfg_attr(not(any(feature = "pubsub", feature = "rabbitmq")), expect(dead_code, reason = "memory is never away"))]
    pub(crate) fn unreached(place: Place, error: &BrokerError) -> Self {
        let failed = || error.clone();
        Self {
            place,
            reached: Err(failed()),
            topic: Err(failed()),
            subscription: Err(failed()),
            dead_letters: Err(failed()),
            publish: Err(failed()),
            receive: Err(failed()),
        }
    }
}
