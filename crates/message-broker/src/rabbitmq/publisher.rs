//! Publishing to RabbitMQ: one connection, and a channel with confirmation for each topic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection};
use tokio::sync::Mutex as Turns;

use crate::error::{Action, BrokerError, Fault};
use crate::message::Message;
use crate::name::Name;
use crate::rabbitmq::link::Connector;
use crate::rabbitmq::{Settings, link, topology};

pub(super) struct Publisher {
    settings: Settings,
    link: Mutex<Option<Arc<Link>>>,
    connecting: Turns<()>,
    connector: Connector,
}

/// A connection. A channel that fails takes no other topic's along, and a message that comes back is its topic's.
struct Link {
    connection: Connection,
    channels: Turns<BTreeMap<Name, Channel>>,
}

impl Publisher {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, link: Mutex::new(None), connecting: Turns::new(()), connector: Connector::default() }
    }

    pub(super) async fn send(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        let link = self.link().await?;
        link.refuse_if_full(Action::Publish, topic.as_str())?;
        let channel = self.channel(&link, topic).await?;
        let exchange = topology::exchange(&self.settings, topic);
        let route = (exchange.as_str(), self.settings.routing_key.as_str());
        link::publish(&channel, route, message, (Action::Publish, exchange.as_str())).await
    }

    /// Whether the broker takes messages.
    pub(super) async fn probe(&self) -> Result<(), BrokerError> {
        let link = self.link().await?;
        link.refuse_if_full(Action::Probe, "RabbitMQ")?;
        // A round trip: a connection may have gone silent.
        let channel = link.connection.create_channel().await;
        let channel = channel.map_err(|error| link::classify(Action::Probe, "RabbitMQ", &error))?;
        channel.close(200, "".into()).await.map_err(|error| link::classify(Action::Probe, "RabbitMQ", &error))
    }

    /// Gives the connection up: it has not answered in time. One that does not as the broker is full is kept: another
    /// would not be answered either, and this one could not even be closed.
    pub(super) fn forget(&self) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        *link = link.take().filter(|link| link.connection.status().blocked());
    }

    async fn link(&self) -> Result<Arc<Link>, BrokerError> {
        if let Some(link) = self.living() {
            return Ok(link);
        }
        let _turn = self.connecting.lock().await;
        if let Some(link) = self.living() {
            return Ok(link);
        }
        let connection = self.connector.connect(&self.settings, "publisher").await?;
        let link = Arc::new(Link { connection, channels: Turns::default() });
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&link));
        Ok(link)
    }

    fn living(&self) -> Option<Arc<Link>> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        link.filter(|link| link.connection.status().connected())
    }

    async fn channel(&self, link: &Link, topic: &Name) -> Result<Channel, BrokerError> {
        let mut channels = link.channels.lock().await;
        if let Some(channel) = channels.get(topic).filter(|channel| channel.status().connected()) {
            return Ok(channel.clone());
        }
        let failed = |error: lapin::Error| link::classify(Action::Publish, topic.as_str(), &error);
        let channel = link.connection.create_channel().await.map_err(failed)?;
        channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(failed)?;
        let exchange = topology::exchange(&self.settings, topic);
        let kind = topology::kind(&self.settings, topic);
        topology::declare_exchange(&channel, exchange.as_str(), kind, Action::Publish).await?;
        channels.insert(topic.clone(), channel.clone());
        Ok(channel)
    }
}

// === impl Link ===

impl Link {
    /// A broker whose memory or disk is full says so, and answers nothing until it is not.
    fn refuse_if_full(&self, action: Action, resource: &str) -> Result<(), BrokerError> {
        if !self.connection.status().blocked() {
            return Ok(());
        }
        Err(BrokerError::new(action, resource, Fault::Unavailable)
            .with_detail("it takes no messages, as its memory or disk is full"))
    }
}
