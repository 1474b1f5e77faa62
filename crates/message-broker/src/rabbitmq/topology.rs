//! Exchanges and queues: what they are called, and how they are declared.

use std::time::Duration;

use lapin::Channel;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};

use crate::error::{Action, BrokerError, Fault};
use crate::name::{Name, Subscription};
use crate::rabbitmq::{Exchange, Settings, link};
use fleet_model::names::message::DEAD_LETTER_SUFFIX;

/// The waits that there are queues for: a quarter of a second, doubled twelve times.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);
const WAITS: u32 = 13;

/// What AMQP can hold of a name.
pub(super) const LONGEST_NAME: usize = 255;

/// The exchange of a topic. Dead letters have one of their own, whatever is set.
pub(super) fn exchange<'a>(settings: &'a Settings, topic: &'a Name) -> &'a Name {
    settings.exchange.as_ref().filter(|_| !topic.is_of_dead_letters()).unwrap_or(topic)
}

/// What kind an exchange is of. Dead letters all go to whoever wants them.
pub(super) fn kind(settings: &Settings, topic: &Name) -> Exchange {
    if topic.is_of_dead_letters() { Exchange::Fanout } else { settings.exchange_kind }
}

/// The queue of a subscription.
pub(super) fn queue(settings: &Settings, subscription: &Subscription) -> String {
    let beginning = settings.queue.as_ref().filter(|_| !subscription.topic.is_of_dead_letters());
    format!("{}-{}", beginning.unwrap_or(&subscription.topic), subscription.id)
}

/// Whether AMQP can name what belongs to a subscription: the names of the longest wait's queue is the longest.
pub(super) fn check(settings: &Settings, subscription: &Subscription) -> Result<(), BrokerError> {
    let longest = wait_queue(&queue(settings, subscription), wait(Duration::MAX)).len();
    if longest <= LONGEST_NAME {
        return Ok(());
    }
    let over = longest - LONGEST_NAME;
    Err(BrokerError::new(Action::Prepare, subscription, Fault::Misfit).with_detail(format!(
        "RabbitMQ's names are no longer than {LONGEST_NAME} bytes: shorten topic or subscription by {over}"
    )))
}

/// The queue that messages come back to after their wait. It is not the subscription's own: RabbitMQ adds a header that is
/// no string.
pub(super) fn again(queue: &str) -> String {
    format!("{queue}-again")
}

/// The exchange of a queue's dead letters.
pub(super) fn grave(queue: &str) -> String {
    format!("{queue}{DEAD_LETTER_SUFFIX}")
}

fn wait_queue(queue: &str, wait: Duration) -> String {
    format!("{queue}-wait-{}", wait.as_millis())
}

/// The shortest wait with a queue that is not shorter than this; the longest if there is none.
pub(super) fn wait(delay: Duration) -> Duration {
    let waits = (0..WAITS).map(|doubled| SHORTEST_WAIT * 2_u32.pow(doubled));
    let longest = SHORTEST_WAIT * 2_u32.pow(WAITS - 1);
    waits.into_iter().find(|wait| *wait >= delay).unwrap_or(longest)
}

pub(super) async fn declare_exchange(
    channel: &Channel,
    name: &str,
    kind: Exchange,
    action: Action,
) -> Result<(), BrokerError> {
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declared = channel.exchange_declare(name.into(), kind.kind(), options, FieldTable::default()).await;
    declared.map_err(|error| explain(link::classify(action, name, &error)))
}

/// The exchange, the queue and what belongs to them.
pub(super) async fn declare(
    channel: &Channel,
    settings: &Settings,
    subscription: &Subscription,
    buries: bool,
) -> Result<(), BrokerError> {
    let topic = &subscription.topic;
    let (exchange, queue) = (exchange(settings, topic), queue(settings, subscription));
    declare_exchange(channel, exchange.as_str(), kind(settings, topic), Action::Prepare).await?;
    declare_queue(channel, &queue, FieldTable::default()).await?;
    bind(channel, &queue, exchange.as_str()).await?;
    declare_queue(channel, &again(&queue), FieldTable::default()).await?;
    if buries {
        let grave = grave(&queue);
        let grave_queue = format!("{grave}-sub");
        declare_exchange(channel, &grave, Exchange::Fanout, Action::Prepare).await?;
        declare_queue(channel, &grave_queue, FieldTable::default()).await?;
        bind(channel, &grave_queue, &grave).await?;
    }
    Ok(())
}

/// The queue for one wait. A quorum queue hands a message on as safely as a publisher that waits for confirmation; a
/// classic one would lose it if the broker were killed at that moment.
pub(super) async fn declare_wait(channel: &Channel, queue: &str, wait: Duration) -> Result<String, BrokerError> {
    let name = wait_queue(queue, wait);
    let text = |text: &str| AMQPValue::LongString(text.into());
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(&again(queue)));
    let milliseconds = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    arguments.insert("x-message-ttl".into(), AMQPValue::LongLongInt(milliseconds));
    declare_queue(channel, &name, arguments).await?;
    Ok(name)
}

async fn declare_queue(channel: &Channel, name: &str, arguments: FieldTable) -> Result<(), BrokerError> {
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(name.into(), options, arguments).await;
    declared.map(drop).map_err(|error| explain(link::classify(Action::Prepare, name, &error)))
}

async fn bind(channel: &Channel, queue: &str, exchange: &str) -> Result<(), BrokerError> {
    let options = QueueBindOptions::default();
    let bound = channel.queue_bind(queue.into(), exchange.into(), "".into(), options, FieldTable::default()).await;
    bound.map_err(|error| link::classify(Action::Prepare, queue, &error))
}

fn explain(error: BrokerError) -> BrokerError {
    if error.fault != Fault::Misfit {
        return error;
    }
    let words = error.detail.clone().unwrap_or_default();
    error.with_detail(format!(
        "what is there was declared otherwise; all who share it must have the same exchange type: {words}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_amqp_cannot_name_is_told_before_it_is_tried() {
        let settings = Settings::new("amqp://localhost".to_owned().into());
        let check =
            |length: usize| check(&settings, &Subscription::new(&"t".repeat(120), &"s".repeat(length)).unwrap());
        assert_eq!(check(121), Ok(()));
        assert_eq!(check(122).unwrap_err().fault, Fault::Misfit);
        assert!(check(255).is_err());
    }

    #[test]
    fn a_wait_is_never_shorter_than_asked_for() {
        let waited = |milliseconds| wait(Duration::from_millis(milliseconds)).as_millis();
        assert_eq!([waited(0), waited(250), waited(251), waited(600_000)], [250, 250, 500, 1_024_000]);
        assert_eq!(waited(u64::MAX), 1_024_000);
    }
}
