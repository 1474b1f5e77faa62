//! Brokers that are taken away in the middle, and given back.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use message_broker::rabbitmq::{RabbitMq, Settings};
use message_broker::{Broker, ErrorKind, Subscription};
use tokio::process::Command;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::rig::{Part, Subject, budget, collect, eager, event, publish, publish_many, subscribe, variable, within};

const MANY: usize = 10_000;

/// Publishes and consumes many; `interrupt` happens when a third has been confirmed.
async fn many_arrive(subject: &Subject, interrupt: &[&str]) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(100)).await.unwrap();
    let (confirmed, third) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let publishing = tokio::spawn({
        let (topic, confirmed, third) = (subscription.topic.clone(), Arc::clone(&confirmed), Arc::clone(&third));
        let publisher = subject.broker();
        async move {
            let mut publishing = JoinSet::new();
            for lane in 0..50 {
                let (publisher, topic) = (publisher.clone(), topic.clone());
                let (confirmed, third) = (Arc::clone(&confirmed), Arc::clone(&third));
                publishing.spawn(async move {
                    for id in (lane..MANY).step_by(50) {
                        publish(&publisher, &topic, &id.to_string()).await;
                        if confirmed.fetch_add(1, Ordering::Relaxed) == MANY / 3 {
                            third.notify_one();
                        }
                    }
                });
            }
            publishing.join_all().await;
        }
    });
    let collecting = tokio::spawn(async move { collect(&mut deliveries, 0..MANY).await });
    within("a third", third.notified()).await;
    for action in interrupt {
        subject.control(action).await;
    }
    publishing.await.unwrap();
    collecting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_is_killed_among_ten_thousand_events_and_loses_none() {
    if let Some(subject) = Subject::alone(Part::RabbitMq).await {
        many_arrive(&subject, &["crash", "start"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_is_restarted_among_ten_thousand_events_and_loses_none() {
    if let Some(subject) = Subject::alone(Part::RabbitMq).await {
        many_arrive(&subject, &["restart"]).await;
    }
}

/// The emulator keeps nothing over a restart, so that it is only kept from answering.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pubsub_falls_silent_among_ten_thousand_events_and_none_is_lost() {
    if let Some(subject) = Subject::alone(Part::PubSub).await {
        many_arrive(&subject, &["pause", "resume"]).await;
    }
}

/// Delayed deliveries survive a kill of the broker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_is_killed_while_events_wait_and_loses_none() {
    let Some(subject) = Subject::alone(Part::RabbitMq).await else { return };
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(10)).await.unwrap();
    publish_many(&broker, &subscription.topic, 0..200).await;
    for _ in 0..200 {
        let delivery = crate::rig::next(&mut deliveries).await;
        delivery.nack_for(Duration::from_secs(1)).await.unwrap();
    }
    subject.control("crash").await;
    subject.control("start").await;
    collect(&mut deliveries, 0..200).await;
}

/// No answer, or no broker: a publication ends with the budget and names the cause, and a later one succeeds.
async fn publishing_is_bounded(subject: &Subject, broker: &Broker, (away, back): (&str, &str)) {
    let subscription = subject.subscription("a");
    let mut deliveries = subscribe(broker, &subscription, eager(10)).await.unwrap();
    publish(broker, &subscription.topic, "0").await;
    subject.control(away).await;
    let published = broker.publish(&subscription.topic, &event("lost"), &budget(Duration::from_secs(2))).await;
    let health = broker.health().await;
    subject.control(back).await;
    let error = published.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TimedOut), "{error}");
    assert!(health.publisher.is_err());
    publish(broker, &subscription.topic, "1").await;
    collect(&mut deliveries, 0..2).await;
    within("good health", async {
        while !broker.health().await.is_good() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishing_to_a_stopped_rabbitmq_is_bounded() {
    if let Some(subject) = Subject::alone(Part::RabbitMq).await {
        publishing_is_bounded(&subject, &subject.broker(), ("stop", "start")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishing_to_a_silent_rabbitmq_is_bounded() {
    if let Some(subject) = Subject::alone(Part::RabbitMq).await {
        publishing_is_bounded(&subject, &subject.broker(), ("pause", "resume")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishing_to_a_silent_pubsub_is_bounded() {
    if let Some(subject) = Subject::alone(Part::PubSub).await {
        publishing_is_bounded(&subject, &subject.broker(), ("pause", "resume")).await;
    }
}

/// A connection that is being opened is a thread and a socket, until the other side answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_rabbitmq_is_not_besieged() {
    let subscription = Subscription::new("topic", "subscription").unwrap();
    // It accepts connections, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    silent.set_nonblocking(true).unwrap();
    let settings = Settings::new(format!("amqp://{address}/%2f").into());
    let settings = Settings { attempt_timeout: Duration::from_millis(200), ..settings };
    let broker = Broker::RabbitMq(RabbitMq::new(settings).unwrap());
    let _deliveries = subscribe(&broker, &subscription, eager(10)).await.unwrap();
    let error = broker.publish(&subscription.topic, &event("lost"), &budget(Duration::from_secs(5))).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    let connections = std::iter::from_fn(|| silent.accept().ok()).count();
    assert_eq!(connections, 2, "one to publish and one to consume");
}

/// It says so; to wait for an answer, and to connect again, would be in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_rabbitmq_is_reported() {
    let Some(subject) = Subject::alone(Part::RabbitMq).await else { return };
    let control = async |watermark: &str| {
        let mut control = Command::new(variable("REAL_RABBITMQ_CTL").unwrap());
        control.args(["set_vm_memory_high_watermark", watermark]).stdout(Stdio::null());
        assert!(control.status().await.unwrap().success());
    };
    let settings = Settings::new(variable("REAL_RABBITMQ_URL").unwrap().into());
    let broker =
        Broker::RabbitMq(RabbitMq::new(Settings { attempt_timeout: Duration::from_secs(1), ..settings }).unwrap());
    let subscription = subject.subscription("a");
    let mut deliveries = subscribe(&broker, &subscription, eager(10)).await.unwrap();
    publish(&broker, &subscription.topic, "0").await;
    control("0.000001").await;
    // It may accept some more before it learns that its memory is full.
    let mut count = 1;
    let publishing = async {
        loop {
            let more = event(&count.to_string());
            if let Err(error) = broker.publish(&subscription.topic, &more, &budget(Duration::from_secs(5))).await {
                return error;
            }
            count += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let refused = tokio::time::timeout(Duration::from_mins(1), publishing).await;
    control("0.4").await;
    let error = refused.unwrap();
    assert!(error.to_string().contains("its memory or disk is full"), "{error}");
    publish(&broker, &subscription.topic, &count.to_string()).await;
    count += 1;
    collect(&mut deliveries, 0..count).await;
}

/// The emulator forgets everything; topic and subscription are made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pubsub_forgets_is_made_again() {
    let Some(subject) = Subject::alone(Part::PubSub).await else { return };
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(10)).await.unwrap();
    publish(&broker, &subscription.topic, "0").await;
    collect(&mut deliveries, 0..1).await;
    subject.control("crash").await;
    subject.control("start").await;
    // Events from before the subscription exists again are not delivered.
    let publishing = async {
        loop {
            publish(&broker, &subscription.topic, "1").await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        () = publishing => {}
        () = collect(&mut deliveries, 1..2) => {}
    }
}
