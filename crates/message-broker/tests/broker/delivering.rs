//! Distribution of deliveries.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use message_broker::{ErrorKind, Message};
use serde_json::json;

use crate::rig::{Part, Subject, budget, collect, eager, event, id, next, publish, publish_many, subscribe};

pub(crate) async fn an_event_arrives_as_it_was_published(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(10)).await.unwrap();
    let mut sent = event("0197-ä");
    sent.subject = Some("clusters/1".to_owned());
    sent.extensions.insert("traceparent".to_owned(), format!("00-{}-{}-01", "1".repeat(32), "2".repeat(16)));
    broker.publish(&subscription.topic, &sent, &budget(std::time::Duration::from_mins(1))).await.unwrap();
    let delivery = next(&mut deliveries).await;
    assert_eq!(delivery.event(), Ok(&sent));
    assert_eq!(delivery.attempt(), 1);
    delivery.ack().await.unwrap();
}

pub(crate) async fn every_subscription_gets_every_event(subject: &Subject) {
    let broker = subject.broker();
    let mut first = subscribe(&broker, &subject.subscription("a"), eager(10)).await.unwrap();
    let mut second = subscribe(&broker, &subject.subscription("b"), eager(10)).await.unwrap();
    publish_many(&broker, &subject.topic(), 0..100).await;
    collect(&mut first, 0..100).await;
    collect(&mut second, 0..100).await;
}

pub(crate) async fn consumers_of_one_subscription_share_its_events(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut first = subscribe(&broker, &subscription, eager(1)).await.unwrap();
    let mut second = subscribe(&subject.broker(), &subscription, eager(1)).await.unwrap();
    publish_many(&broker, &subscription.topic, 0..20).await;
    let mut seen = BTreeSet::new();
    // The emulator hands all that is there to one stream, however little that has asked for.
    if subject.part != Part::PubSub {
        // Each has one out, and they are not the same.
        let (one, other) = (next(&mut first).await, next(&mut second).await);
        assert_ne!(id(&one), id(&other));
        seen.extend([id(&one), id(&other)]);
        one.ack().await.unwrap();
        other.ack().await.unwrap();
    }
    while seen.len() < 20 {
        let delivery = tokio::select! {
            delivery = next(&mut first) => delivery,
            delivery = next(&mut second) => delivery,
        };
        assert!(seen.insert(id(&delivery)), "delivered to both");
        delivery.ack().await.unwrap();
    }
}

pub(crate) async fn no_more_is_out_than_may_be(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(1000)).await.unwrap();
    publish_many(&broker, &subscription.topic, 0..1500).await;
    let mut out = Vec::new();
    let mut missing: BTreeSet<String> = (0..1500).map(|id| id.to_string()).collect();
    for _ in 0..1000 {
        out.push(next(&mut deliveries).await);
    }
    assert_eq!(deliveries.in_flight(), 1000);
    assert!(deliveries.next().now_or_never().is_none(), "the 1001st must wait");
    // Room for one is room for one.
    let first = out.pop().unwrap();
    missing.remove(&id(&first));
    first.ack().await.unwrap();
    out.push(next(&mut deliveries).await);
    for delivery in out {
        missing.remove(&id(&delivery));
        delivery.ack().await.unwrap();
    }
    while !missing.is_empty() {
        let delivery = next(&mut deliveries).await;
        missing.remove(&id(&delivery));
        delivery.ack().await.unwrap();
    }
}

/// As the Go Sentinel writes it: structured, without saying so, and with Watermill's attribute only.
pub(crate) async fn what_hyperfleet_writes_is_read(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(1)).await.unwrap();
    let body = include_bytes!("../golden/go-sentinel.json").to_vec();
    let uuid = "01977a5c-7e3b-7d3f-9d0e-0d5d0f6a1b2c".to_owned();
    let attributes = [("_watermill_message_uuid".to_owned(), uuid.clone())].into();
    let time = budget(std::time::Duration::from_mins(1));
    broker.send(&subscription.topic, &Message { body, attributes }, &time).await.unwrap();
    let delivery = next(&mut deliveries).await;
    let event = delivery.event().unwrap();
    assert_eq!((event.id.as_str(), event.source.as_str()), (uuid.as_str(), "hyperfleet-sentinel"));
    assert_eq!(event.json().unwrap()["kind"], json!("Cluster"));
    delivery.ack().await.unwrap();
}

/// Pub/Sub does not report it.
pub(crate) async fn a_topic_without_subscription_is_an_error(subject: &Subject) {
    let (broker, topic) = (subject.broker(), subject.topic());
    let published = broker.publish(&topic, &event("1"), &budget(std::time::Duration::from_mins(1))).await;
    if subject.part == Part::PubSub {
        published.unwrap();
    } else {
        assert_eq!(published.unwrap_err().kind, ErrorKind::Unrouted);
        let _subscribed = subscribe(&broker, &subject.subscription("a"), eager(1)).await.unwrap();
        publish(&broker, &topic, "2").await;
    }
}
