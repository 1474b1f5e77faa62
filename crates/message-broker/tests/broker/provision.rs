//! Topics and subscriptions that are not there, or do not fit.

use message_broker::pubsub::{Provision, PubSub, Settings};
use message_broker::rabbitmq::{self, RabbitMq};
use message_broker::{Broker, Consume, ErrorKind, Subscription};

use crate::rig::{Part, Subject, eager, emulator, subscribe, variable};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pubsub_says_what_is_missing() {
    let Some(subject) = Subject::new(Part::PubSub).await else { return };
    let checking = Broker::PubSub(PubSub::new(Settings { provision: Provision::Check, ..emulator() }));
    let subscription = subject.subscription("a");
    let buries = Consume { max_attempts: Some(7), ..eager(1) };
    let error = subscribe(&checking, &subscription, buries).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let told = error.to_string();
    assert!(
        told.contains("gcloud pubsub subscriptions create") && told.contains("--max-delivery-attempts=7"),
        "{told}"
    );

    // It is there, but without a dead-letter topic.
    let _made = subscribe(&subject.broker(), &subscription, eager(1)).await.unwrap();
    let error = subscribe(&checking, &subscription, buries).await.unwrap_err();
    assert!(error.to_string().contains("it has no dead-letter topic"), "{error}");
    let _fits = subscribe(&checking, &subscription, eager(1)).await.unwrap();

    // It is another topic's.
    let elsewhere =
        Subscription { topic: subscription.topic.as_str().replace("t-", "u-").parse().unwrap(), ..subscription };
    let error = subscribe(&subject.broker(), &elsewhere, eager(1)).await.unwrap_err();
    assert!(error.to_string().contains("it is a subscription of"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_of_another_type_is_told() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let subscription = subject.subscription("a");
    let _made = subscribe(&subject.broker(), &subscription, eager(1)).await.unwrap();
    let settings = rabbitmq::Settings {
        exchange_kind: rabbitmq::Exchange::Fanout,
        ..rabbitmq::Settings::new(variable("REAL_RABBITMQ_URL").unwrap().into())
    };
    let other = Broker::RabbitMq(RabbitMq::new(settings).unwrap());
    let error = subscribe(&other, &subscription, eager(1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Incompatible);
    assert!(error.to_string().contains("the same exchange type"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_told_and_not_shown() {
    let Some(subject) = Subject::new(Part::RabbitMq).await else { return };
    let url = variable("REAL_RABBITMQ_URL").unwrap().replace("guest:guest@", "guest:pa55word@");
    let broker = Broker::RabbitMq(RabbitMq::new(rabbitmq::Settings::new(url.into())).unwrap());
    let error = subscribe(&broker, &subject.subscription("a"), eager(1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated, "{error}");
    assert!(!format!("{error} {broker:?}").contains("pa55word"));
}
