//! The publisher to RabbitMQ: one connection, and a channel with confirmation for each topic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection};
use tokio::sync::Mutex as AsyncMutex;

use crate::error::{BrokerError, ErrorKind, Operation};
use crate::message::Message;
use crate::name::Name;
use crate::rabbitmq::link::{Call, Connector, Route};
use crate::rabbitmq::settings::Settings;
use crate::rabbitmq::{link, topology};

pub(super) struct Publisher {
    settings: Settings,
    link: Mutex<Option<Arc<Link>>>,
    connecting: AsyncMutex<()>,
    connector: Connector,
}

/// A connection with a channel for each topic: a channel that fails, or a message that is returned, affects one topic.
struct Link {
    connection: Connection,
    channels: AsyncMutex<BTreeMap<Name, Channel>>,
}

impl Publisher {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, link: Mutex::new(None), connecting: AsyncMutex::new(()), connector: Connector::default() }
    }

    pub(super) async fn send(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        let link = self.link().await?;
        link.refuse_if_full(Operation::Publish, topic.as_str())?;
        let channel = self.channel(&link, topic).await?;
        let exchange = topology::exchange(&self.settings, topic);
        let route = Route { exchange: exchange.as_str(), routing_key: &self.settings.routing_key };
        let call = Call { operation: Operation::Publish, resource: exchange.as_str() };
        link::publish(&channel, route, message, call).await
    }

    /// Checks that the broker accepts messages.
    pub(super) async fn probe(&self) -> Result<(), BrokerError> {
        let link = self.link().await?;
        link.refuse_if_full(Operation::Probe, "RabbitMQ")?;
        // A round trip: a connection may have gone silent.
        let channel = link.connection.create_channel().await;
        let channel = channel.map_err(|error| link::classify(Operation::Probe, "RabbitMQ", &error))?;
        channel.close(200, "".into()).await.map_err(|error| link::classify(Operation::Probe, "RabbitMQ", &error))
    }

    /// Drops a connection that has not answered in time. A connection that the broker has blocked is kept: another one
    /// would be blocked too, and this one could not even be closed.
    pub(super) fn forget(&self) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        *link = link.take().filter(|link| link.connection.status().blocked());
    }

    async fn link(&self) -> Result<Arc<Link>, BrokerError> {
        if let Some(link) = self.connected() {
            return Ok(link);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(link) = self.connected() {
            return Ok(link);
        }
        let connection = self.connector.connect(&self.settings, "publisher").await?;
        let link = Arc::new(Link { connection, channels: AsyncMutex::default() });
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&link));
        Ok(link)
    }

    fn connected(&self) -> Option<Arc<Link>> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        link.filter(|link| link.connection.status().connected())
    }

    async fn channel(&self, link: &Link, topic: &Name) -> Result<Channel, BrokerError> {
        let mut channels = link.channels.lock().await;
        if let Some(channel) = channels.get(topic).filter(|channel| channel.status().connected()) {
            return Ok(channel.clone());
        }
        let failed = |error: lapin::Error| link::classify(Operation::Publish, topic.as_str(), &error);
        topology::ensure_exchange(&link.connection, &self.settings, topic, Operation::Publish).await?;
        let channel = link.connection.create_channel().await.map_err(failed)?;
        channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(failed)?;
        channels.insert(topic.clone(), channel.clone());
        Ok(channel)
    }
}

// === impl Link ===

impl Link {
    /// Fails while the broker blocks the connection, because its memory or disk is full.
    fn refuse_if_full(&self, operation: Operation, resource: &str) -> Result<(), BrokerError> {
        if !self.connection.status().blocked() {
            return Ok(());
        }
        Err(BrokerError::new(operation, resource, ErrorKind::Unavailable)
            .with_detail("it accepts no messages, as its memory or disk is full"))
    }
}
