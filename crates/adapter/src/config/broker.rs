//! The broker's settings; the composition root connects to it.

use daemon::settings::Row;
use schemars::JsonSchema;
use secrecy::SecretString;

daemon::settings! {
    /// The message broker.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Broker {
        /// Message broker
        #[serde(rename = "type", default)]
        pub kind: Option<BrokerKind> =
            Row::at("spec.broker.type").flag("broker-type").variable("BROKER_TYPE").unset("required"),
        /// Topic that the Sentinel publishes to
        pub topic: String = Row::at("spec.broker.topic")
            .flag("broker-topic")
            .variable("HYPERFLEET_BROKER_TOPIC")
            .default("hyperfleet-system-clusters"),
        /// Subscription of this adapter, shared by its replicas
        #[serde(default)]
        pub subscription: Option<String> = Row::at("spec.broker.subscription")
            .flag("broker-subscription-id")
            .variable("HYPERFLEET_BROKER_SUBSCRIPTION_ID")
            .unset("`{adapterType}-adapter-sub`"),
        /// Google Cloud project of Pub/Sub; `PUBSUB_EMULATOR_HOST` selects an emulator
        #[serde(default)]
        pub project_id: Option<String> = Row::at("spec.broker.projectId").variable("BROKER_GOOGLEPUBSUB_PROJECT_ID"),
        /// Google Pub/Sub: create topic, subscription and dead-letter topic where they do not exist
        #[serde(default)]
        pub create_if_missing: bool = Row::at("spec.broker.createIfMissing")
            .variable("BROKER_GOOGLEPUBSUB_CREATE_IF_MISSING")
            .default("false"),
        /// Address of RabbitMQ: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`; better given as `BROKER_RABBITMQ_URL`
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        pub url: Option<SecretString> = Row::at("spec.broker.url").variable("BROKER_RABBITMQ_URL"),
        /// RabbitMQ: name of the exchange
        #[serde(default)]
        pub exchange: Option<String> =
            Row::at("spec.broker.exchange").variable("BROKER_RABBITMQ_EXCHANGE").unset("the topic"),
        /// RabbitMQ: type of the exchange that the Sentinel publishes to
        #[serde(default)]
        pub exchange_type: Option<ExchangeType> =
            Row::at("spec.broker.exchangeType").variable("BROKER_RABBITMQ_EXCHANGE_TYPE").unset("that of the exchange; a missing one is created as `topic`"),
        /// RabbitMQ: first part of the queue's name, before `-{subscription}`
        #[serde(default)]
        pub queue: Option<String> =
            Row::at("spec.broker.queue").variable("BROKER_RABBITMQ_QUEUE").unset("the topic"),
        /// Failed deliveries of an event until it is dead-lettered
        pub max_attempts: u32 = Row::at("spec.broker.maxAttempts").default("5").within("5", "100"),
    }
}

daemon::choices! {
    /// A message broker.
    #[derive(JsonSchema)]
    pub enum BrokerKind {
        /// RabbitMQ.
        RabbitMq = "rabbitmq",
        /// Google Pub/Sub.
        GooglePubSub = "googlepubsub" | "gcp-pubsub" | "pubsub",
    }
}

daemon::choices! {
    /// Type of an exchange, by AMQP's names.
    #[derive(JsonSchema)]
    pub enum ExchangeType {
        /// By patterns of routing keys.
        Topic = "topic",
        /// To every queue.
        Fanout = "fanout",
        /// By routing keys.
        Direct = "direct",
        /// By headers.
        Headers = "headers",
    }
}
