//! An inspection of a virtual host, by requests that change nothing.

use lapin::options::{BasicConsumeOptions, BasicPublishOptions, ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ErrorKind as LapinErrorKind, ExchangeKind};
use tokio::time::timeout;

use crate::error::{BrokerError, ErrorKind, Operation};
use crate::inspection::{Inspection, Place, Queue, Topic};
use crate::name::Subscription;
use crate::rabbitmq::link::{self, Connector};
use crate::rabbitmq::settings::Settings;
use crate::rabbitmq::topology;

/// Inspects the virtual host of the URL.
pub(super) async fn inspect(settings: &Settings, subscription: &Subscription) -> Result<Inspection, BrokerError> {
    let address = link::address(settings)?;
    let authority = address.authority;
    let place = Place::RabbitMq {
        server: format!("{}:{}", authority.host, authority.port),
        vhost: address.vhost,
        user: authority.userinfo.username,
    };
    let connector = Connector::default();
    let silent = |operation| BrokerError::new(operation, "RabbitMQ", ErrorKind::TimedOut);
    let connected = timeout(settings.attempt_timeout, connector.connect(settings, "doctor")).await;
    let connection = match connected.unwrap_or_else(|_elapsed| Err(silent(Operation::Connect))) {
        Ok(connection) => connection,
        Err(error) => return Ok(Inspection::unreached(place, &error)),
    };
    let exchange = topology::exchange(settings, &subscription.topic).as_str();
    let queue = topology::queue(settings, subscription);
    let letters = topology::dead_letters(&queue);
    let letters = topology::queue(settings, &letters);
    let look = async {
        let topic = find_exchange(&connection, exchange).await;
        let subscription = find_queue(&connection, &queue).await;
        let publish = match &topic {
            Ok(_) => may_publish(&connection, exchange, &settings.routing_key).await,
            Err(error) => Err(error.clone()),
        };
        let receive = match &subscription {
            Ok(_) => may_receive(&connection, &queue).await,
            Err(error) => Err(error.clone()),
        };
        let dead_letters = find_queue(&connection, &letters).await;
        Inspection { place: place.clone(), reached: Ok(()), topic, subscription, dead_letters, publish, receive }
    };
    let found = timeout(settings.attempt_timeout, look).await;
    let found = found.unwrap_or_else(|_elapsed| Inspection::unreached(place, &silent(Operation::Probe)));
    let _it_ends_anyway = timeout(settings.attempt_timeout, connection.close(200, "".into())).await;
    Ok(found)
}

/// A channel for one request, as the server closes a channel on which one failed.
async fn channel(connection: &Connection, operation: Operation, resource: &str) -> Result<Channel, BrokerError> {
    connection.create_channel().await.map_err(|error| link::classify(operation, resource, &error))
}

async fn find_exchange(connection: &Connection, name: &str) -> Result<Topic, BrokerError> {
    let channel = channel(connection, Operation::Probe, name).await?;
    let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    let found = channel.exchange_declare(name.into(), ExchangeKind::Topic, options, FieldTable::default()).await;
    found.map_err(|error| link::classify(Operation::Probe, name, &error))?;
    Ok(Topic { subscriptions: None })
}

async fn find_queue(connection: &Connection, name: &str) -> Result<Queue, BrokerError> {
    let channel = channel(connection, Operation::Probe, name).await?;
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let found = channel.queue_declare(name.into(), options, FieldTable::default()).await;
    let found = found.map_err(|error| link::classify(Operation::Probe, name, &error))?;
    Ok(Queue { consumers: Some(found.consumer_count()), messages: Some(found.message_count()) })
}

/// Publishes to an exchange that exists in a transaction that is rolled back: the server checks the permission at once, and routes
/// nothing before a commit.
async fn may_publish(connection: &Connection, exchange: &str, routing_key: &str) -> Result<(), BrokerError> {
    let failed = |error: lapin::Error| match error.kind() {
        // The refusal came before the rollback was sent, and lapin does not keep it.
        LapinErrorKind::InvalidChannelState(..) => {
            BrokerError::new(Operation::Publish, exchange, ErrorKind::PermissionDenied)
        }
        _ => link::classify(Operation::Publish, exchange, &error),
    };
    let channel = channel(connection, Operation::Publish, exchange).await?;
    channel.tx_select().await.map_err(failed)?;
    let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
    let sent = channel.basic_publish(exchange.into(), routing_key.into(), options, b"", properties).await;
    drop(sent.map_err(failed)?);
    channel.tx_rollback().await.map_err(failed)?;
    channel.close(200, "".into()).await.map_err(failed)
}

/// Requests to consume with a priority that is no number: the server checks the permission first, and then refuses the priority.
async fn may_receive(connection: &Connection, queue: &str) -> Result<(), BrokerError> {
    let channel = channel(connection, Operation::Receive, queue).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-priority".into(), AMQPValue::LongString("none".into()));
    let options = BasicConsumeOptions::default();
    match channel.basic_consume(queue.into(), "doctor".into(), options, arguments).await {
        // The end of the channel returns what it may have received.
        Ok(_consumer) => Ok(()),
        Err(error) => match link::classify(Operation::Receive, queue, &error) {
            error if error.kind == ErrorKind::Incompatible => Ok(()),
            error => Err(error),
        },
    }
}
