//! Topics and subscriptions that are not there, or do not fit.

use std::time::Duration;

use message_broker::pubsub::{Provision, PubSub, Settings};
use message_broker::rabbitmq::{self, RabbitMq};
use message_broker::{Broker, Consume, ErrorKind, Subscription};

use crate::rig::{Part, Subject, budget, eager, emulator, event, id, next, publish, subscribe, variable};
use crate::{admin, log};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pubsub_says_what_is_missing() {
    let Some(subject) = Subject::new(Part::PubSub).await else { return };
    let checking = Broker::PubSub(PubSub::new(Settings { provision: Provision::Check, ..emulator() }));
    let subscription = subject.subscription("a");
    let buries = Consume { max_attempts: Some(7), ..eager(1) };
    let error = subscribe(&checking, &subscription, buries).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let hint = error.hint().unwrap();
    let (letters, max) =
        (format!("gcloud pubsub topics create {}-dlq ", subscription.id), "--max-delivery-attempts 7 ");
    assert!(hint.contains(&letters) && hint.contains(max) && hint.ends_with("--project real-parts"), "{hint}");

    let _made = subscribe(&subject.broker(), &subscription, eager(1)).await.unwrap();

    // It is another topic's.
    let elsewhere =
        Subscription { topic: subscription.topic.as_str().replace("t-", "u-").parse().unwrap(), ..subscription };
    let error = subscribe(&subject.broker(), &elsewhere, eager(1)).await.unwrap_err();
    assert!(error.to_string().contains("it is a subscription of"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_of_another_type_is_reported() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let subscription = subject.subscription("a");
    let _made = subscribe(&subject.broker(), &subscription, eager(1)).await.unwrap();
    let settings = rabbitmq::Settings {
        exchange_kind: Some(rabbitmq::Exchange::Fanout),
        ..rabbitmq::Settings::new(variable("REAL_RABBITMQ_URL").unwrap().into())
    };
    let other = Broker::RabbitMq(RabbitMq::new(settings).unwrap());
    let error = subscribe(&other, &subscription, eager(1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Incompatible);
    assert!(error.to_string().contains("the same exchange type"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_reported_and_not_shown() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let url = variable("REAL_RABBITMQ_URL").unwrap().replace("guest:guest@", "guest:pa55word@");
    let broker = Broker::RabbitMq(RabbitMq::new(rabbitmq::Settings::new(url.into())).unwrap());
    let error = subscribe(&broker, &subject.subscription("a"), eager(1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated, "{error}");
    assert!(!format!("{error} {broker:?}").contains("pa55word"));
}

/// A subscription that `HyperFleet`'s broker library made: it names a dead-letter topic that nothing is subscribed to, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_loses_dead_letters_is_used_with_a_warning() {
    let Some(subject) = Subject::new(Part::PubSub).await else { return };
    let checking = Broker::PubSub(PubSub::new(Settings { provision: Provision::Check, ..emulator() }));
    let admin = admin::Admin::connect().await;
    let buries = Consume { max_attempts: Some(5), ..eager(1) };
    let lost = "has no subscription, so that dead letters are lost: gcloud pubsub subscriptions create";
    let endless = "it has no dead-letter topic, so that a message that always fails is delivered for ever: gcloud pubsub topics create";
    for (name, has_topic, warning) in [("lost", true, lost), ("endless", false, endless)] {
        let subscription = subject.subscription(name);
        admin.create(&subscription, has_topic).await;
        let log = log::Log::default();
        let mut deliveries = {
            let _logged = log.here();
            subscribe(&checking, &subscription, buries).await.unwrap()
        };
        assert!(log.text().contains(warning), "{}", log.text());
        publish(&checking, &subscription.topic, name).await;
        let delivery = next(&mut deliveries).await;
        assert_eq!(id(&delivery), name);
        delivery.ack().await.unwrap();
    }
}

/// Nothing but a change of the configuration helps, so nothing is retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_vhost_or_password_is_reported_at_once() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let url = variable("REAL_RABBITMQ_URL").unwrap();
    let (server, _vhost) = url.rsplit_once('/').unwrap();
    let cases = [
        (format!("{server}/no-such-vhost"), ErrorKind::PermissionDenied, "check the vhost in the broker's URL"),
        (url.replace("guest:guest@", "guest:pa55word@"), ErrorKind::Unauthenticated, "check the credentials"),
        (url.replace("guest:guest@", "stranger:guest@"), ErrorKind::Unauthenticated, "check the credentials"),
    ];
    for (url, kind, hint) in cases {
        let broker = Broker::RabbitMq(RabbitMq::new(rabbitmq::Settings::new(url.into())).unwrap());
        let subscription = subject.subscription("a");
        let refused = subscribe(&broker, &subscription, eager(1)).await.unwrap_err();
        assert!(refused.kind == kind && refused.hint().unwrap().contains(hint), "{refused}");
        // A transient failure would be retried until the end of the budget, and end as a time-out.
        let refused = broker.publish(&subscription.topic, &event("a"), &budget(Duration::from_hours(1))).await;
        assert_eq!(refused.unwrap_err().kind, kind);
        assert_eq!(broker.health().await.publisher.unwrap_err().kind, kind);
    }
}
