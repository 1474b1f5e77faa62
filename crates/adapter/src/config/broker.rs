//! Which broker; the composition root makes one of it.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

/// The message broker.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Broker {
    /// Which.
    #[serde(rename = "type", default)]
    pub kind: Option<BrokerKind>,
    /// The topic that the Sentinel publishes to.
    pub topic: String,
    /// This adapter's subscription; replicas share one.
    #[serde(default)]
    pub subscription: Option<String>,
    /// Of Google Pub/Sub: the project.
    #[serde(default)]
    pub project_id: Option<String>,
    /// Of Google Pub/Sub: make what is not there.
    #[serde(default)]
    pub create_if_missing: bool,
    /// Of RabbitMQ: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`. Better given as `BROKER_RABBITMQ_URL`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub url: Option<SecretString>,
    /// Of RabbitMQ: the exchange, if it is not named as the topic.
    #[serde(default)]
    pub exchange: Option<String>,
    /// An event that failed so often goes among the dead letters.
    pub max_attempts: u32,
}

/// Which broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum BrokerKind {
    /// RabbitMQ.
    #[serde(rename = "rabbitmq")]
    RabbitMq,
    /// Google Pub/Sub.
    #[serde(rename = "gcp-pubsub", alias = "googlepubsub", alias = "pubsub")]
    GooglePubSub,
}
