//! What a broker tells about itself.

use message_broker::Broker;
use message_broker::rabbitmq::{RabbitMq, Settings};
use tokio_util::sync::CancellationToken;

use crate::rig::{Part, Subject, eager, subscribe};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_is_told_of_until_it_ends() {
    for part in [Part::Memory, Part::RabbitMq, Part::PubSub] {
        let Some(subject) = Subject::new(part).await else { continue };
        let broker = subject.broker();
        let deliveries = subscribe(&broker, &subject.subscription("a"), eager(1)).await.unwrap();
        let health = broker.health().await;
        assert!(health.is_good(), "{part:?}: {health:?}");
        assert_eq!(health.subscribers.len(), 1);
        deliveries.drain(std::time::Duration::from_secs(30)).await.unwrap();
        assert!(broker.health().await.subscribers.is_empty());
    }
}

/// Nobody is there from the beginning: subscribing is no error, and health tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_broker_is_no_error_when_subscribing_and_no_good_health() {
    let broker = Broker::RabbitMq(RabbitMq::new(Settings::new("amqp://127.0.0.1:1/%2f".into())).unwrap());
    let subscription = message_broker::Subscription::new("topic", "subscription").unwrap();
    let _deliveries = broker.subscribe(&subscription, eager(1), &CancellationToken::new()).await.unwrap();
    let health = broker.health().await;
    assert!(health.publisher.is_err());
    assert!(health.subscribers.values().all(Result::is_err) && !health.subscribers.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_that_ends_in_a_slash_reaches_the_default_vhost() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let health = subject.broker_with_a_trailing_slash().health().await;
    assert!(health.is_good(), "{health:?}");
}

#[test]
fn a_wrong_url_is_not_quoted() {
    let error = RabbitMq::new(Settings::new("http://user:pa55word@host".into())).unwrap_err();
    assert!(!error.to_string().contains("pa55word"), "{error}");
}
