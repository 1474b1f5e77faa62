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

/// RabbitMQ's name of the exchange that has none, in permissions.
const DEFAULT_EXCHANGE: &str = "amq.default";

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
        let dead_letters = find_queue(&connection, &letters).await;
        let receive = match (&may_declare(&connection, exchange, &queue, &letters).await, &subscription) {
            (Err(error), _) | (Ok(()), Err(error)) => Err(error.clone()),
            (Ok(()), Ok(_)) => may_receive(&connection, &queue).await,
        };
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
    let resource = if exchange.is_empty() { DEFAULT_EXCHANGE } else { exchange };
    let failed = |error: lapin::Error| match error.kind() {
        // The refusal came before the rollback was sent, and lapin does not keep it.
        LapinErrorKind::InvalidChannelState(..) => {
            BrokerError::new(Operation::Publish, resource, ErrorKind::PermissionDenied)
        }
        _ => link::classify(Operation::Publish, resource, &error),
    };
    let channel = channel(connection, Operation::Publish, resource).await?;
    channel.tx_select().await.map_err(failed)?;
    let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
    let sent = channel.basic_publish(exchange.into(), routing_key.into(), options, b"", properties).await;
    drop(sent.map_err(failed)?);
    channel.tx_rollback().await.map_err(failed)?;
    channel.close(200, "".into()).await.map_err(failed)
}

/// Checks the permissions with which the adapter declares, binds and fills the queue, and those for retries and dead letters.
async fn may_declare(connection: &Connection, exchange: &str, queue: &str, letters: &str) -> Result<(), BrokerError> {
    let dead_letter_exchange = topology::dead_letter_exchange(queue);
    may_configure_exchange(connection, &dead_letter_exchange).await?;
    for name in [queue, &topology::retry_queue(queue), &topology::shortest_wait_queue(queue), letters] {
        may_configure_queue(connection, name).await?;
    }
    may_bind(connection, queue, exchange).await?;
    may_bind(connection, letters, &dead_letter_exchange).await?;
    // Messages get to their wait by the default exchange.
    may_publish(connection, "", letters).await?;
    match find_exchange(connection, &dead_letter_exchange).await {
        Ok(_) => may_publish(connection, &dead_letter_exchange, "").await,
        Err(_not_made_yet) => Ok(()),
    }
}

/// Declares a queue that expires after no number: the server checks the permission first, and then refuses that, whether the queue
/// exists or not.
async fn may_configure_queue(connection: &Connection, name: &str) -> Result<(), BrokerError> {
    let channel = channel(connection, Operation::Prepare, name).await?;
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    refused_as_wrong(channel.queue_declare(name.into(), options, wrong("x-expires")).await, name)
}

/// Declares an exchange with an alternate one that is no name, as [`may_configure_queue`] does.
async fn may_configure_exchange(connection: &Connection, name: &str) -> Result<(), BrokerError> {
    let channel = channel(connection, Operation::Prepare, name).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("alternate-exchange".into(), AMQPValue::LongInt(0));
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    refused_as_wrong(channel.exchange_declare(name.into(), ExchangeKind::Fanout, options, arguments).await, name)
}

/// Removes a binding that does not exist: the server checks the permissions of binding, and finds nothing to remove.
async fn may_bind(connection: &Connection, queue: &str, exchange: &str) -> Result<(), BrokerError> {
    let channel = channel(connection, Operation::Prepare, queue).await?;
    let key = "pull-secret-doctor".into();
    refused_as_wrong(channel.queue_unbind(queue.into(), exchange.into(), key, FieldTable::default()).await, queue)
}

/// An argument whose value has the wrong type.
fn wrong(argument: &str) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert(argument.into(), AMQPValue::LongString("none".into()));
    arguments
}

/// The answer to a request that the server refuses for its arguments, or for an object that does not exist, once it has checked the
/// permission.
fn refused_as_wrong<T>(answer: lapin::Result<T>, resource: &str) -> Result<(), BrokerError> {
    match answer.map_err(|error| link::classify(Operation::Prepare, resource, &error)) {
        Err(error) if !matches!(error.kind, ErrorKind::Incompatible | ErrorKind::NotFound) => Err(error),
        _ => Ok(()),
    }
}

/// Requests to consume with a priority that is no number: the server checks the permission first, and then refuses the priority.
async fn may_receive(connection: &Connection, queue: &str) -> Result<(), BrokerError> {
    let channel = channel(connection, Operation::Receive, queue).await?;
    let options = BasicConsumeOptions::default();
    match channel.basic_consume(queue.into(), "doctor".into(), options, wrong("x-priority")).await {
        // The end of the channel returns what it may have received.
        Ok(_consumer) => Ok(()),
        Err(error) => match link::classify(Operation::Receive, queue, &error) {
            error if error.kind == ErrorKind::Incompatible => Ok(()),
            error => Err(error),
        },
    }
}
