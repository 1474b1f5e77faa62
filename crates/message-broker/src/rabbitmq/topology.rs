//! Names and declarations of exchanges and queues.

use std::time::Duration;

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ExchangeKind};

use crate::error::{BrokerError, ErrorKind, Operation};
use crate::name::{Name, Subscription};
use crate::rabbitmq::link;
use crate::rabbitmq::settings::{Exchange, Settings};
use fleet_model::names::message::{DEAD_LETTER_EXCHANGE, DEAD_LETTER_QUEUE, QUEUE, RETRY_QUEUE, WAIT_QUEUE, filled};

/// The shortest wait that has a queue; the others are its doubles.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);
/// Id of the subscription of a dead-letter exchange.
const SUBSCRIPTION_OF_DEAD_LETTERS: &str = "sub";

/// Number of waits that have a queue.
const WAITS: u32 = 13;

/// Maximum length of a name in AMQP, in bytes.
pub(super) const LONGEST_NAME: usize = 255;

/// Returns the exchange of a topic. Dead letters have an exchange of their own, whatever is set.
pub(super) fn exchange<'a>(settings: &'a Settings, topic: &'a Name) -> &'a Name {
    settings.exchange.as_ref().filter(|_| !topic.is_of_dead_letters()).unwrap_or(topic)
}

/// Returns the type of a topic's exchange; `None` if any will do. Dead letters are routed to every queue that is bound.
pub(super) fn exchange_kind(settings: &Settings, topic: &Name) -> Option<Exchange> {
    if topic.is_of_dead_letters() { Some(Exchange::Fanout) } else { settings.exchange_kind }
}

/// Ensures that a topic's exchange exists, with the type that is set. Without one, an exchange that exists is used as it is.
pub(super) async fn ensure_exchange(
    connection: &Connection,
    settings: &Settings,
    topic: &Name,
    operation: Operation,
) -> Result<(), BrokerError> {
    let name = exchange(settings, topic).as_str();
    let failed = |error: lapin::Error| link::classify(operation, name, &error);
    // The server closes a channel on which a declaration failed.
    let channel = connection.create_channel().await.map_err(failed)?;
    let kind = exchange_kind(settings, topic);
    if kind.is_none() {
        let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        let found = channel.exchange_declare(name.into(), ExchangeKind::Topic, options, FieldTable::default()).await;
        match found.map_err(failed) {
            Ok(()) => return close(channel).await,
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let channel = if kind.is_none() { connection.create_channel().await.map_err(failed)? } else { channel };
    declare_exchange(&channel, name, kind.unwrap_or_default(), operation).await?;
    close(channel).await
}

async fn close(channel: Channel) -> Result<(), BrokerError> {
    // What it was opened for is done.
    let _it_ends_with_the_connection = channel.close(200, "".into()).await;
    Ok(())
}

/// Returns the queue of a subscription.
pub(super) fn queue(settings: &Settings, subscription: &Subscription) -> String {
    let prefix = settings.queue.as_ref().filter(|_| !subscription.topic.is_of_dead_letters());
    let topic = prefix.unwrap_or(&subscription.topic);
    filled(QUEUE, &[("topic", topic.as_str()), ("subscription", subscription.id.as_str())])
}

/// Checks that AMQP can hold the names that belong to a subscription; that of the longest wait's queue is the longest.
pub(super) fn check(settings: &Settings, subscription: &Subscription) -> Result<(), BrokerError> {
    let longest = wait_queue(&queue(settings, subscription), wait(Duration::MAX)).len();
    if longest <= LONGEST_NAME {
        return Ok(());
    }
    let over = longest - LONGEST_NAME;
    Err(BrokerError::new(Operation::Prepare, subscription, ErrorKind::Incompatible).with_detail(format!(
        "RabbitMQ's names are no longer than {LONGEST_NAME} bytes: shorten topic or subscription by {over}"
    )))
}

/// Returns the queue to which messages return after their wait. It is not the subscription's own, as RabbitMQ adds a
/// header that is not a string.
pub(super) fn retry_queue(queue: &str) -> String {
    filled(RETRY_QUEUE, &[("queue", queue)])
}

/// Returns the exchange of a queue's dead letters.
pub(super) fn dead_letter_exchange(queue: &str) -> String {
    filled(DEAD_LETTER_EXCHANGE, &[("queue", queue)])
}

/// Returns the subscription that keeps a queue's dead letters.
pub(super) fn dead_letters(queue: &str) -> Subscription {
    Subscription {
        topic: Name::derived(dead_letter_exchange(queue)),
        id: Name::derived(SUBSCRIPTION_OF_DEAD_LETTERS.to_owned()),
    }
}

fn wait_queue(queue: &str, wait: Duration) -> String {
    filled(WAIT_QUEUE, &[("queue", queue), ("milliseconds", &wait.as_millis().to_string())])
}

/// Returns the queue of the shortest wait.
pub(super) fn shortest_wait_queue(queue: &str) -> String {
    wait_queue(queue, SHORTEST_WAIT)
}

/// Returns the shortest wait with a queue that is at least `delay`; the longest wait if there is none.
pub(super) fn wait(delay: Duration) -> Duration {
    let waits = (0..WAITS).map(|doubled| SHORTEST_WAIT * 2_u32.pow(doubled));
    let longest = SHORTEST_WAIT * 2_u32.pow(WAITS - 1);
    waits.into_iter().find(|wait| *wait >= delay).unwrap_or(longest)
}

async fn declare_exchange(
    channel: &Channel,
    name: &str,
    kind: Exchange,
    operation: Operation,
) -> Result<(), BrokerError> {
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declared = channel.exchange_declare(name.into(), kind.kind(), options, FieldTable::default()).await;
    declared.map_err(|error| explain(link::classify(operation, name, &error)))
}

/// Declares the queue of a subscription, whose exchange exists, and those for retries and dead letters.
pub(super) async fn declare(
    channel: &Channel,
    settings: &Settings,
    subscription: &Subscription,
    has_dead_letters: bool,
) -> Result<(), BrokerError> {
    let topic = &subscription.topic;
    let (exchange, queue) = (exchange(settings, topic), queue(settings, subscription));
    declare_queue(channel, &queue, FieldTable::default()).await?;
    bind(channel, &queue, exchange.as_str()).await?;
    declare_queue(channel, &retry_queue(&queue), FieldTable::default()).await?;
    if has_dead_letters {
        let dead_letter_exchange = dead_letter_exchange(&queue);
        let dead_letter_queue = filled(DEAD_LETTER_QUEUE, &[("queue", &queue)]);
        declare_exchange(channel, &dead_letter_exchange, Exchange::Fanout, Operation::Prepare).await?;
        declare_queue(channel, &dead_letter_queue, FieldTable::default()).await?;
        bind(channel, &dead_letter_queue, &dead_letter_exchange).await?;
    }
    Ok(())
}

/// Declares the queue of a temporary subscription, whose exchange exists: it ends with the connection.
pub(super) async fn declare_temporary(
    channel: &Channel,
    settings: &Settings,
    subscription: &Subscription,
) -> Result<String, BrokerError> {
    // The queue of a connection that was lost a moment ago may be there still.
    let queue = format!("{}-{:08x}", queue(settings, subscription), rand::random::<u32>());
    let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(queue.as_str().into(), options, FieldTable::default()).await;
    declared.map_err(|error| explain(link::classify(Operation::Prepare, &queue, &error)))?;
    bind(channel, &queue, exchange(settings, &subscription.topic).as_str()).await?;
    Ok(queue)
}

/// Declares the queue for one wait. A quorum queue forwards a message as safely as a publisher that waits for
/// confirmation; a classic one would lose it if the broker were killed at that moment.
pub(super) async fn declare_wait(channel: &Channel, queue: &str, wait: Duration) -> Result<String, BrokerError> {
    let name = wait_queue(queue, wait);
    let text = |text: &str| AMQPValue::LongString(text.into());
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(&retry_queue(queue)));
    let milliseconds = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    arguments.insert("x-message-ttl".into(), AMQPValue::LongLongInt(milliseconds));
    declare_queue(channel, &name, arguments).await?;
    Ok(name)
}

async fn declare_queue(channel: &Channel, name: &str, arguments: FieldTable) -> Result<(), BrokerError> {
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(name.into(), options, arguments).await;
    declared.map(drop).map_err(|error| explain(link::classify(Operation::Prepare, name, &error)))
}

async fn bind(channel: &Channel, queue: &str, exchange: &str) -> Result<(), BrokerError> {
    let options = QueueBindOptions::default();
    let bound = channel.queue_bind(queue.into(), exchange.into(), "".into(), options, FieldTable::default()).await;
    bound.map_err(|error| link::classify(Operation::Prepare, queue, &error))
}

fn explain(error: BrokerError) -> BrokerError {
    if error.kind != ErrorKind::Incompatible {
        return error;
    }
    let detail = error.detail.clone().unwrap_or_default();
    error
        .with_detail(format!("it exists with other properties; every client must use the same exchange type: {detail}"))
}

#[cfg(test)]
mod tests {
    use fleet_model::names::message::EXCHANGE;

    use super::*;

    #[test]
    fn names_too_long_for_amqp_are_refused_before_they_are_declared() {
        let settings = Settings::new("amqp://localhost".to_owned().into());
        let check =
            |length: usize| check(&settings, &Subscription::new(&"t".repeat(120), &"s".repeat(length)).unwrap());
        assert_eq!(check(121), Ok(()));
        assert_eq!(check(122).unwrap_err().kind, ErrorKind::Incompatible);
        assert!(check(255).is_err());
    }

    /// The names of `docs/reference/names.md`.
    #[test]
    fn objects_have_the_names_of_the_reference() {
        let settings = Settings::new("amqp://localhost".to_owned().into());
        let subscription = Subscription::new("clusters", "pullsecret").unwrap();
        assert_eq!(exchange(&settings, &subscription.topic).as_str(), filled(EXCHANGE, &[("topic", "clusters")]));
        let of = |settings: &Settings| {
            let queue = queue(settings, &subscription);
            let letters = dead_letters(&queue);
            let buried = super::queue(settings, &letters);
            [retry_queue(&queue), wait_queue(&queue, SHORTEST_WAIT), letters.topic.to_string(), buried, queue]
        };
        let expect = |queue: &str| ["-again", "-wait-250", "-dlq", "-dlq-sub", ""].map(|end| format!("{queue}{end}"));
        assert_eq!(of(&settings), expect("clusters-pullsecret"));
        let own = Settings { queue: Some("own".parse().unwrap()), ..settings };
        assert_eq!(of(&own), expect("own-pullsecret"));
    }

    #[test]
    fn a_wait_is_never_shorter_than_asked_for() {
        let waited = |milliseconds| wait(Duration::from_millis(milliseconds)).as_millis();
        assert_eq!([waited(0), waited(250), waited(251), waited(600_000)], [250, 250, 500, 1_024_000]);
        assert_eq!(waited(u64::MAX), 1_024_000);
    }
}
