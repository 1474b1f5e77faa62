//! A broker made of its settings.

use std::str::FromStr as _;

use anyhow::{Context as _, bail};
use daemon::environment::{Environment as _, ProcessEnvironment};
use message_broker::pubsub::{self, Endpoint, Provision, PubSub};
use message_broker::rabbitmq::{self, Exchange, RabbitMq};
use message_broker::{Broker, Name};
use secrecy::SecretString;
use sentinel::settings::{self, BrokerKind, ExchangeType};

/// The connection to a broker, from any component's settings.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) rabbitmq_url: Option<SecretString>,
    pub(crate) exchange: Option<String>,
    pub(crate) exchange_kind: Option<Exchange>,
    pub(crate) queue: Option<String>,
    pub(crate) routing_key: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) may_create: bool,
}

/// The broker that the settings name. Nothing is sent yet.
pub(crate) fn broker(settings: settings::Broker) -> anyhow::Result<Broker> {
    broker_of_queues(settings, None)
}

/// The broker that the settings name, with queues of their own prefix.
pub(crate) fn broker_of_queues(settings: settings::Broker, queue: Option<String>) -> anyhow::Result<Broker> {
    let settings::Broker { kind, rabbitmq, googlepubsub } = settings;
    let connection = Connection {
        rabbitmq_url: rabbitmq.url,
        exchange: rabbitmq.exchange,
        exchange_kind: Some(match rabbitmq.exchange_type {
            ExchangeType::Topic => Exchange::Topic,
            ExchangeType::Fanout => Exchange::Fanout,
            ExchangeType::Direct => Exchange::Direct,
            ExchangeType::Headers => Exchange::Headers,
        }),
        queue,
        routing_key: rabbitmq.routing_key,
        project: googlepubsub.project_id,
        may_create: googlepubsub.create_topic_if_missing,
    };
    match kind {
        None => bail!("broker type: missing; set BROKER_TYPE or broker.type to rabbitmq or googlepubsub"),
        Some(BrokerKind::RabbitMq) => self::rabbitmq(connection),
        Some(BrokerKind::GooglePubSub) => pubsub(connection),
    }
}

/// RabbitMQ.
pub(crate) fn rabbitmq(connection: Connection) -> anyhow::Result<Broker> {
    if connection.project.is_some() {
        bail!("broker project_id (BROKER_GOOGLEPUBSUB_PROJECT_ID): has no effect with broker type rabbitmq");
    }
    let url = connection
        .rabbitmq_url
        .context("broker url: missing; set BROKER_RABBITMQ_URL or broker.rabbitmq.url (an adapter: spec.broker.url)")?;
    let name = |name: Option<&str>| name.map(Name::from_str).transpose();
    let settings = rabbitmq::Settings {
        exchange: name(connection.exchange.as_deref()).context("the exchange's name (BROKER_RABBITMQ_EXCHANGE)")?,
        queue: name(connection.queue.as_deref()).context("the queue's name (BROKER_RABBITMQ_QUEUE)")?,
        routing_key: connection.routing_key.unwrap_or_default(),
        exchange_kind: connection.exchange_kind,
        ..rabbitmq::Settings::new(url)
    };
    Ok(Broker::RabbitMq(RabbitMq::new(settings)?))
}

/// Google Pub/Sub, or its emulator.
pub(crate) fn pubsub(connection: Connection) -> anyhow::Result<Broker> {
    if connection.rabbitmq_url.is_some() {
        bail!("broker url (BROKER_RABBITMQ_URL): has no effect with broker type googlepubsub");
    }
    let project = connection.project.context(
        "broker project_id: missing; set BROKER_GOOGLEPUBSUB_PROJECT_ID or broker.googlepubsub.project_id (an adapter: \
         spec.broker.projectId)",
    )?;
    let emulator = ProcessEnvironment.text("PUBSUB_EMULATOR_HOST")?;
    Ok(Broker::PubSub(PubSub::new(pubsub::Settings {
        endpoint: emulator.map_or(Endpoint::Google, Endpoint::Emulator),
        provision: if connection.may_create { Provision::Create } else { Provision::Check },
        ..pubsub::Settings::new(&project)
    })))
}
