//! The end of a subscription.

use std::time::Duration;

use message_broker::{Consume, ErrorKind, Undrained};
use tokio_util::sync::CancellationToken;

use crate::rig::{Part, Subject, budget, collect, eager, event, id, next, publish, publish_many, subscribe, within};

const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn a_drain_waits_for_what_is_out(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(3)).await.unwrap();
    let (many, more) = (20, 5);
    publish_many(&broker, &subscription.topic, 0..many).await;
    let mut out = Vec::new();
    for _ in 0..3 {
        out.push(next(&mut deliveries).await);
    }
    let done: Vec<usize> = out.iter().map(|delivery| id(delivery).parse().unwrap()).collect();
    let drain = tokio::spawn(deliveries.drain(TIMEOUT));
    for delivery in out {
        delivery.ack().await.unwrap();
    }
    within("the drain", drain).await.unwrap().unwrap();
    // What was acknowledged does not come again; everything else does.
    publish_many(&broker, &subscription.topic, many..many + more).await;
    let mut rest = subscribe(&broker, &subscription, eager(3)).await.unwrap();
    let mut missing: Vec<usize> = (0..many + more).filter(|id| !done.contains(id)).collect();
    while !missing.is_empty() {
        let delivery = next(&mut rest).await;
        let id: usize = id(&delivery).parse().unwrap();
        assert!(!done.contains(&id), "{id} was acknowledged");
        missing.retain(|missing| *missing != id);
        delivery.ack().await.unwrap();
    }
}

pub(crate) async fn what_is_not_drained_comes_again(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(2)).await.unwrap();
    publish(&broker, &subscription.topic, "1").await;
    let stuck = next(&mut deliveries).await;
    assert_eq!(deliveries.drain(Duration::ZERO).await, Err(Undrained(1)));
    drop(stuck);
    let mut rest = subscribe(&broker, &subscription, eager(2)).await.unwrap();
    collect(&mut rest, 1..2).await;
}

pub(crate) async fn a_stop_ends_the_deliveries(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let stop = CancellationToken::new();
    let mut deliveries = broker.subscribe(&subscription, eager(2), &stop).await.unwrap();
    stop.cancel();
    assert!(within("the end", deliveries.next()).await.is_none());
    within("the drain", deliveries.drain(TIMEOUT)).await.unwrap();
}

/// A listener that was there for a while costs the broker nothing afterwards: where topics without subscriptions are refused, this one
/// is such a topic again.
pub(crate) async fn a_temporary_subscription_leaves_nothing(subject: &Subject) {
    if matches!(subject.part, Part::Memory | Part::Journal) {
        return;
    }
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let consume = Consume { is_temporary: true, ..eager(2) };
    let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
    publish_many(&broker, &subscription.topic, 1..4).await;
    collect(&mut deliveries, 1..4).await;
    within("the drain", deliveries.drain(TIMEOUT)).await.unwrap();
    if subject.part == Part::RabbitMq {
        let published = broker.publish(&subscription.topic, &event("4"), &budget(TIMEOUT)).await;
        assert_eq!(published.unwrap_err().kind, ErrorKind::Unrouted);
    }
    // What was published meanwhile is not kept for the next one.
    let mut later = subscribe(&broker, &subscription, consume).await.unwrap();
    publish_many(&broker, &subscription.topic, 5..6).await;
    collect(&mut later, 5..6).await;
}
