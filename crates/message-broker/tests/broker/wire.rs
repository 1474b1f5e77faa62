//! RabbitMQ as another program sees it: names and messages as in HyperFleet's Go services.

use std::time::Duration;

use lapin::options::{BasicGetOptions, BasicPublishOptions, ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};
use message_broker::rabbitmq::{self, RabbitMq};
use message_broker::{Broker, Consume, Format};
use rstest::rstest;

use crate::rig::{Part, Subject, collect, eager, event, id, next, publish, subscribe, variable};

async fn channel() -> Channel {
    let url = variable("REAL_RABBITMQ_URL").unwrap();
    Connection::connect(&url, ConnectionProperties::default()).await.unwrap().create_channel().await.unwrap()
}

/// Declares what Watermill declares, with the charts' settings: a difference would be refused.
async fn declare_as_watermill(channel: &Channel, topic: &str, queue: &str) {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(topic.into(), ExchangeKind::Topic, durable, FieldTable::default()).await.unwrap();
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), durable, FieldTable::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_go_service_can_share_exchange_queue_and_messages() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let (topic, queue) = (subscription.topic.as_str(), format!("{}-{}", subscription.topic, subscription.id));
    let channel = channel().await;
    declare_as_watermill(&channel, topic, &queue).await;

    // Ours fits theirs, and its message that failed once does not come back to the queue that they share.
    let consume = Consume { max_attempts: Some(5), ..eager(1) };
    let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
    publish(&broker, &subscription.topic, "failed").await;
    next(&mut deliveries).await.nack_for(Duration::ZERO).await.unwrap();
    let again = next(&mut deliveries).await;
    assert_eq!((id(&again).as_str(), again.attempt()), ("failed", 2));
    again.ack().await.unwrap();

    // Theirs is read.
    let mut headers = FieldTable::default();
    headers.insert("_watermill_message_uuid".into(), AMQPValue::LongString("7".into()));
    let properties = BasicProperties::default().with_delivery_mode(2).with_headers(headers);
    let body = include_bytes!("../golden/go-sentinel.json");
    let sent = channel.basic_publish(topic.into(), "".into(), BasicPublishOptions::default(), body, properties).await;
    sent.unwrap().await.unwrap();
    let theirs = next(&mut deliveries).await;
    assert_eq!(theirs.event().unwrap().source, "hyperfleet-sentinel");
    theirs.ack().await.unwrap();
    deliveries.drain(Duration::from_mins(1)).await.unwrap();

    // Ours can be read by them.
    publish(&broker, &subscription.topic, "8").await;
    let got = channel.basic_get(queue.as_str().into(), BasicGetOptions { no_ack: true }).await.unwrap();
    let got = got.expect("a confirmed message is in the queue").delivery;
    assert_eq!(got.data, event("8").encode(Format::Structured).body);
    assert_eq!(got.properties.delivery_mode(), &Some(2));
    let headers = got.properties.headers().as_ref().unwrap().inner();
    assert!(headers.values().all(|value| matches!(value, AMQPValue::LongString(_))), "{headers:?}");
    assert!(headers.contains_key("_watermill_message_uuid"));
}

/// The queue of a subscription that is there before anybody consumes keeps what is published.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_keeps_events_without_a_consumer() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    subscribe(&broker, &subscription, eager(1)).await.unwrap().drain(Duration::from_mins(1)).await.unwrap();
    publish(&broker, &subscription.topic, "0").await;
    collect(&mut subscribe(&broker, &subscription, eager(1)).await.unwrap(), 0..1).await;
}

/// The defaults of `HyperFleet`'s broker library (`fanout`), its other types, and exchange and queue names of one's own: an adapter
/// that sets no type uses the exchange as it is.
#[rstest]
#[case::the_default(ExchangeKind::Fanout)]
#[case::of_the_charts(ExchangeKind::Topic)]
#[case::direct(ExchangeKind::Direct)]
#[case::headers(ExchangeKind::Headers)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_of_any_type_and_name_is_shared(#[case] kind: ExchangeKind) {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let subscription = subject.subscription("a");
    let (exchange, prefix) = (format!("x-{}", subscription.topic), format!("q-{}", subscription.topic));
    let channel = channel().await;
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(exchange.as_str().into(), kind, durable, FieldTable::default()).await.unwrap();
    let settings = rabbitmq::Settings {
        exchange: Some(exchange.parse().unwrap()),
        queue: Some(prefix.parse().unwrap()),
        ..rabbitmq::Settings::new(variable("REAL_RABBITMQ_URL").unwrap().into())
    };
    let broker = Broker::RabbitMq(RabbitMq::new(settings).unwrap());
    let consume = Consume { max_attempts: Some(5), ..eager(1) };
    let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
    let (properties, options) = (BasicProperties::default().with_delivery_mode(2), BasicPublishOptions::default());
    let body = include_bytes!("../golden/go-sentinel.json");
    let sent = channel.basic_publish(exchange.as_str().into(), "".into(), options, body, properties).await;
    sent.unwrap().await.unwrap();
    let theirs = next(&mut deliveries).await;
    assert_eq!(theirs.event().unwrap().source, "hyperfleet-sentinel");
    theirs.ack().await.unwrap();
    publish(&broker, &subscription.topic, "ours").await;
    let ours = next(&mut deliveries).await;
    assert_eq!(id(&ours), "ours");
    ours.ack().await.unwrap();
    deliveries.drain(Duration::from_mins(1)).await.unwrap();
    // The queue has the name that the library gives it.
    let queue = format!("{prefix}-{}", subscription.id);
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await.unwrap();
}
