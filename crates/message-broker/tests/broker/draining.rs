//! The end of a subscription.

use std::time::Duration;

use message_broker::Undrained;
use tokio_util::sync::CancellationToken;

use crate::rig::{Subject, collect, eager, id, next, publish, publish_many, subscribe, within};

const PATIENCE: Duration = Duration::from_mins(1);

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
    let drain = tokio::spawn(deliveries.drain(PATIENCE));
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
    within("the drain", deliveries.drain(PATIENCE)).await.unwrap();
}
