//! An inspection of a broker, which changes nothing at it.

use message_broker::inspection::{Inspection, Place};
use message_broker::rabbitmq::{self, RabbitMq};
use message_broker::{Broker, BrokerError, Consume, ErrorKind, Subscription};
use tokio::process::Command;

use crate::rig::{Part, Subject, eager, id, next, publish, subscribe, variable};

async fn inspect(broker: &Broker, subscription: &Subscription) -> Inspection {
    broker.inspect(subscription).await.unwrap().unwrap()
}

fn buries() -> Consume {
    Consume { max_attempts: Some(5), ..eager(1) }
}

fn kind<T>(result: &Result<T, BrokerError>) -> Option<ErrorKind> {
    result.as_ref().err().map(|error| error.kind)
}

fn rabbitmq(url: &str) -> Broker {
    Broker::RabbitMq(RabbitMq::new(rabbitmq::Settings::new(url.to_owned().into())).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_are_counted_and_messages_stay() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let missing = inspect(&broker, &subscription).await;
    assert!(missing.reached.is_ok(), "{missing:?}");
    let not_found = Some(ErrorKind::NotFound);
    assert_eq!([kind(&missing.topic), kind(&missing.publish)], [not_found; 2], "{missing:?}");
    assert_eq!([kind(&missing.subscription), kind(&missing.receive)], [not_found; 2], "{missing:?}");
    // Nothing was created.
    assert_eq!(inspect(&broker, &subscription).await, missing);
    for list in ["list_queues", "list_exchanges"] {
        let output = Command::new(variable("REAL_RABBITMQ_CTL").unwrap()).args([list, "name"]).output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && !text.contains(subscription.topic.as_str()), "{text}");
    }

    let deliveries = subscribe(&broker, &subscription, buries()).await.unwrap();
    let found = inspect(&broker, &subscription).await;
    let consumers = |found: &Inspection| found.subscription.as_ref().unwrap().consumers;
    let messages = |found: &Inspection| found.subscription.as_ref().unwrap().messages;
    assert_eq!((consumers(&found), messages(&found)), (Some(1), Some(0)), "{found:?}");
    assert_eq!(found.dead_letters.as_ref().unwrap().messages, Some(0), "{found:?}");
    assert!(found.topic.is_ok() && found.publish.is_ok() && found.receive.is_ok(), "{found:?}");
    deliveries.drain(std::time::Duration::from_secs(10)).await.unwrap();

    publish(&broker, &subscription.topic, "waiting").await;
    for _ in 0..3 {
        let found = inspect(&broker, &subscription).await;
        assert_eq!((consumers(&found), messages(&found)), (Some(0), Some(1)), "{found:?}");
    }
    let mut deliveries = subscribe(&broker, &subscription, buries()).await.unwrap();
    let delivery = next(&mut deliveries).await;
    assert_eq!((id(&delivery).as_str(), delivery.attempt()), ("waiting", 1));
    delivery.ack().await.unwrap();
}

/// A user with rights on other names than these.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_permissions_of_a_user_are_named() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let _made = subscribe(&broker, &subscription, buries()).await.unwrap();
    let control = variable("REAL_RABBITMQ_CTL").unwrap();
    let user = subscription.id.as_str();
    let run = async |arguments: &[&str]| {
        let output = Command::new(&control).args(arguments).output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    run(&["add_user", user, "pa55word"]).await;
    let url = variable("REAL_RABBITMQ_URL").unwrap().replace("guest:guest@", &format!("{user}:pa55word@"));
    let stranger = inspect(&rabbitmq(&url), &subscription).await;
    assert_eq!(kind(&stranger.reached), Some(ErrorKind::PermissionDenied), "{stranger:?}");
    assert!(matches!(&stranger.place, Place::RabbitMq { vhost, user: name, .. } if vhost == "/" && name == user));
    run(&["set_permissions", user, "other", "other", "other"]).await;
    let limited = inspect(&rabbitmq(&url), &subscription).await;
    assert!(limited.reached.is_ok() && limited.topic.is_ok(), "{limited:?}");
    assert_eq!([kind(&limited.publish), kind(&limited.receive)], [Some(ErrorKind::PermissionDenied); 2], "{limited:?}");
    assert!(!format!("{limited:?} {stranger:?}").contains("pa55word"));

    // Each permission that the adapter needs beside reading is named with its object.
    let queue = format!("{}-{}", subscription.topic, subscription.id);
    let all = format!("^({queue}(-.*)?|amq[.]default)$");
    let read = format!("^({queue}(-.*)?|{})$", subscription.topic);
    for (configure, write, denied) in [
        ("^$", all.as_str(), format!("{queue}-dlq")),
        (&format!("^{queue}-dlq.*$"), &all, queue.clone()),
        (&format!("^{queue}(-dlq.*)?$"), &all, format!("{queue}-again")),
        (&format!("^{queue}(-dlq.*|-again)?$"), &all, format!("{queue}-wait-250")),
        (&all, &format!("^{queue}-dlq.*$"), queue.clone()),
        (&all, &format!("^{queue}$"), format!("{queue}-dlq-sub")),
        (&all, &format!("^{queue}(-dlq.*)?$"), "amq.default".to_owned()),
        (&all, &format!("^({queue}(-dlq-sub)?|amq.default)$"), format!("{queue}-dlq")),
    ] {
        run(&["set_permissions", user, configure, write, &read]).await;
        let found = inspect(&rabbitmq(&url), &subscription).await;
        let error = found.receive.as_ref().unwrap_err();
        assert_eq!((error.kind, &error.resource), (ErrorKind::PermissionDenied, &denied), "{configure} {write}");
    }
    run(&["set_permissions", user, &all, &all, &read]).await;
    let found = inspect(&rabbitmq(&url), &subscription).await;
    assert!(found.receive.is_ok() && kind(&found.publish) == Some(ErrorKind::PermissionDenied), "{found:?}");
    // Such a user makes its objects, and is not asked for more.
    let _used = subscribe(&rabbitmq(&url), &subscription, buries()).await.unwrap();
    run(&["delete_user", user]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_vhost_or_broker_is_named() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let subscription = subject.subscription("a");
    let url = variable("REAL_RABBITMQ_URL").unwrap();
    let (server, _vhost) = url.rsplit_once('/').unwrap();
    let cases = [
        (format!("{server}/no-such-vhost"), ErrorKind::PermissionDenied),
        (url.replace("guest:guest@", "guest:pa55word@"), ErrorKind::Unauthenticated),
        ("amqp://guest:guest@127.0.0.1:1/%2f".to_owned(), ErrorKind::Unavailable),
    ];
    for (url, expected) in cases {
        let found = inspect(&rabbitmq(&url), &subscription).await;
        assert_eq!([kind(&found.reached), kind(&found.topic)], [Some(expected); 2], "{found:?}");
        assert!(!format!("{found:?}").contains("pa55word"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_is_inspected() {
    let Some(subject) = Subject::new(Part::PubSub).await else { return };
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let missing = inspect(&broker, &subscription).await;
    assert!(missing.reached.is_ok(), "{missing:?}");
    assert_eq!([kind(&missing.topic), kind(&missing.subscription)].map(Option::unwrap), [ErrorKind::NotFound; 2]);
    let _made = subscribe(&broker, &subscription, buries()).await.unwrap();
    let found = inspect(&broker, &subscription).await;
    assert_eq!(found.topic.as_ref().unwrap().subscriptions, Some(1), "{found:?}");
    assert!(found.subscription.is_ok() && found.dead_letters.is_ok(), "{found:?}");
    let elsewhere = Subscription { topic: subject.subscription("b").id, ..subscription };
    let other = inspect(&broker, &elsewhere).await;
    assert_eq!(kind(&other.subscription), Some(ErrorKind::Incompatible), "{other:?}");
}
