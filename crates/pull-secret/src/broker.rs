//! A broker made of its settings.

use std::str::FromStr as _;

use anyhow::{Context as _, bail};
use daemon::environment::{Environment as _, ProcessEnvironment};
use message_broker::pubsub::{self, Endpoint, Provision, PubSub};
use message_broker::rabbitmq::{self, Exchange, RabbitMq};
use message_broker::{Broker, Name};
use sentinel::settings::{self, BrokerKind, ExchangeType};

/// The broker that the settings name. Nothing is sent yet.
pub(crate) fn broker(settings: settings::Broker) -> anyhow::Result<Broker> {
    let settings::Broker { kind, rabbitmq, googlepubsub } = settings;
    match kind {
        None => bail!("broker.type: is missing; give rabbitmq or googlepubsub in the file or as BROKER_TYPE"),
        Some(BrokerKind::RabbitMq) => {
            if googlepubsub.project_id.is_some() {
                bail!("broker.googlepubsub.project_id: has no effect with broker.type rabbitmq");
            }
            let url = rabbitmq.url.context("broker.rabbitmq.url: is missing; give it as BROKER_RABBITMQ_URL")?;
            let exchange = rabbitmq.exchange.as_deref().map(Name::from_str).transpose();
            let settings = rabbitmq::Settings {
                exchange_kind: match rabbitmq.exchange_type {
                    ExchangeType::Topic => Exchange::Topic,
                    ExchangeType::Fanout => Exchange::Fanout,
                    ExchangeType::Direct => Exchange::Direct,
                    ExchangeType::Headers => Exchange::Headers,
                },
                exchange: exchange.context("broker.rabbitmq.exchange")?,
                routing_key: rabbitmq.routing_key.unwrap_or_default(),
                ..rabbitmq::Settings::new(url)
            };
            Ok(Broker::RabbitMq(RabbitMq::new(settings)?))
        }
        Some(BrokerKind::GooglePubSub) => {
            if rabbitmq.url.is_some() {
                bail!("broker.rabbitmq.url: has no effect with broker.type googlepubsub");
            }
            let project = googlepubsub
                .project_id
                .context("broker.googlepubsub.project_id: is missing; give it as BROKER_GOOGLEPUBSUB_PROJECT_ID")?;
            let emulator = ProcessEnvironment.text("PUBSUB_EMULATOR_HOST")?;
            let may_create = googlepubsub.create_topic_if_missing;
            Ok(Broker::PubSub(PubSub::new(pubsub::Settings {
                endpoint: emulator.map_or(Endpoint::Google, Endpoint::Emulator),
                provision: if may_create { Provision::Create } else { Provision::Check },
                ..pubsub::Settings::new(&project)
            })))
        }
    }
}
