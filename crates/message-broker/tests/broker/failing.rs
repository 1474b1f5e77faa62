//! Deliveries that are not acknowledged.

use std::time::Duration;

use fleet_model::names::message::{DEAD_LETTER_REASON, DEAD_LETTER_SOURCE, WATERMILL_UUID};
use message_broker::dead_letters::{self, Disposition, Fate, Letters};
use message_broker::{Consume, ErrorKind, Message, Subscription};

use crate::rig::{Part, Subject, budget, eager, id, next, publish, subscribe, within};

/// Receives the next delivery and dies with it, with tasks and connections, so that no task can return it.
async fn die_of_the_next(subject: &Subject, subscription: &Subscription, consume: Consume) -> u32 {
    let (broker, subscription) = (subject.broker(), subscription.clone());
    let dying = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (deliveries, delivery) = runtime.block_on(async {
            let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
            let delivery = next(&mut deliveries).await;
            (deliveries, delivery)
        });
        runtime.shutdown_background();
        drop(deliveries);
        delivery.attempt()
    });
    tokio::task::spawn_blocking(|| dying.join().unwrap()).await.unwrap()
}

/// No process is left to nack the delivery.
pub(crate) async fn an_event_that_kills_its_consumers_is_a_dead_letter(subject: &Subject) {
    if subject.part == Part::PubSub {
        // It counts itself, from five deliveries on, and takes its time to notice a death.
        return;
    }
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let consume = Consume { max_attempts: Some(2), ..eager(1) };
    let stop = tokio_util::sync::CancellationToken::new();
    // So that there is a queue to publish to.
    let first = broker.subscribe(&subscription, consume, &stop).await.unwrap();
    first.drain(Duration::from_mins(1)).await.unwrap();
    publish(&broker, &subscription.topic, "killer").await;
    for attempt in 1..=2 {
        assert_eq!(within("a death", die_of_the_next(subject, &subscription, consume)).await, attempt);
    }
    let mut survivor = subscribe(&broker, &subscription, consume).await.unwrap();
    let mut buried = subscribe(&broker, &broker.dead_letters(&subscription), eager(1)).await.unwrap();
    let letter = next(&mut buried).await;
    assert_eq!(id(&letter), "killer");
    assert!(letter.message().attribute(DEAD_LETTER_REASON).unwrap().starts_with("delivered 2 times"));
    letter.ack().await.unwrap();
    publish(&broker, &subscription.topic, "healthy").await;
    let healthy = next(&mut survivor).await;
    assert_eq!(id(&healthy), "healthy");
    healthy.ack().await.unwrap();
}

/// A received but unprocessed delivery does not count as an attempt: otherwise restarts alone would dead-letter it.
pub(crate) async fn what_no_consumer_took_is_not_counted(subject: &Subject) {
    if subject.part == Part::PubSub {
        return;
    }
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let consume = Consume { max_attempts: Some(2), ..eager(5) };
    let mut first = subscribe(&broker, &subscription, consume).await.unwrap();
    for event in ["1", "2", "3"] {
        publish(&broker, &subscription.topic, event).await;
    }
    for _ in 0..4 {
        // One of them is taken, so that all have come.
        let taken = next(&mut first).await;
        assert_eq!(taken.attempt(), 1, "{}", id(&taken));
        let republished = id(&taken);
        taken.ack().await.unwrap();
        publish(&broker, &subscription.topic, &republished).await;
        within("the drain", first.drain(Duration::from_mins(1))).await.unwrap();
        first = subscribe(&broker, &subscription, consume).await.unwrap();
    }
    for _ in 0..3 {
        let delivery = next(&mut first).await;
        assert_eq!(delivery.attempt(), 1, "{}", id(&delivery));
        delivery.ack().await.unwrap();
    }
}

/// Watermill's attribute is no longer than an id, but anybody may write anything.
pub(crate) async fn an_attribute_may_be_long(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(1)).await.unwrap();
    let attributes = [(WATERMILL_UUID.to_owned(), "x".repeat(1_000))].into();
    let strange = Message { body: b"{}".to_vec(), attributes };
    broker.send(&subscription.topic, &strange, &budget(Duration::from_mins(1))).await.unwrap();
    next(&mut deliveries).await.nack().await.unwrap();
    let again = next(&mut deliveries).await;
    assert_eq!(again.message().attribute(WATERMILL_UUID), strange.attribute(WATERMILL_UUID));
    again.ack().await.unwrap();
}

pub(crate) async fn what_a_dead_consumer_had_comes_again(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut survivor = subscribe(&broker, &subscription, eager(1)).await.unwrap();
    // The survivor is busy while the other one gets an event and dies with all its tasks and connections.
    publish(&broker, &subscription.topic, "busy").await;
    let busy = next(&mut survivor).await;
    let doomed = subject.broker();
    let (taken, has_taken) = tokio::sync::oneshot::channel();
    let (die, death) = tokio::sync::oneshot::channel::<()>();
    let named = subscription.clone();
    let dying = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let delivery = runtime.block_on(async {
            let mut deliveries = subscribe(&doomed, &named, eager(1)).await.unwrap();
            let delivery = next(&mut deliveries).await;
            taken.send(id(&delivery)).unwrap();
            death.await.unwrap();
            (deliveries, delivery)
        });
        // First the tasks and the connections, so that no task can return the delivery.
        runtime.shutdown_background();
        drop(delivery);
    });
    publish(&broker, &subscription.topic, "orphan").await;
    assert_eq!(within("the other consumer's delivery", has_taken).await.unwrap(), "orphan");
    die.send(()).unwrap();
    busy.ack().await.unwrap();
    let again = next(&mut survivor).await;
    assert_eq!(id(&again), "orphan");
    if subject.part != Part::PubSub {
        // Without a dead-letter topic, Pub/Sub does not count.
        assert!(again.attempt() > 1);
    }
    again.ack().await.unwrap();
    tokio::task::spawn_blocking(|| dying.join().unwrap()).await.unwrap();
}

pub(crate) async fn a_dropped_delivery_comes_again(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(1)).await.unwrap();
    publish(&broker, &subscription.topic, "dropped").await;
    drop(next(&mut deliveries).await);
    let again = next(&mut deliveries).await;
    assert_eq!(id(&again), "dropped");
    again.ack().await.unwrap();
}

pub(crate) async fn a_nacked_event_lets_others_pass(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries = subscribe(&broker, &subscription, eager(1)).await.unwrap();
    publish(&broker, &subscription.topic, "nacked").await;
    next(&mut deliveries).await.nack_for(Duration::from_secs(30)).await.unwrap();
    // All of these are delivered while the other waits: it is no hot loop.
    for passing in ["p1", "p2", "p3"] {
        publish(&broker, &subscription.topic, passing).await;
        let delivery = next(&mut deliveries).await;
        assert_eq!(id(&delivery), passing);
        delivery.ack().await.unwrap();
    }
    let again = next(&mut deliveries).await;
    assert_eq!(id(&again), "nacked");
    again.ack().await.unwrap();
}

pub(crate) async fn an_event_that_fails_too_often_is_a_dead_letter(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let consume = Consume { max_attempts: Some(5), ..eager(1) };
    let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
    publish(&broker, &subscription.topic, "hopeless").await;
    for attempt in 1..=5 {
        let delivery = next(&mut deliveries).await;
        assert_eq!(delivery.attempt(), attempt);
        delivery.nack().await.unwrap();
    }
    let grave = broker.dead_letters(&subscription);
    let mut buried = subscribe(&broker, &grave, eager(1)).await.unwrap();
    let letter = next(&mut buried).await;
    assert_eq!(id(&letter), "hopeless");
    if subject.part != Part::PubSub {
        assert_eq!(letter.message().attribute(DEAD_LETTER_REASON), Some("delivered 5 times"));
        assert_eq!(letter.message().attribute(DEAD_LETTER_SOURCE), Some(subscription.id.as_str()));
    }
    letter.ack().await.unwrap();
}

pub(crate) async fn a_poison_message_is_a_dead_letter(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let consume = Consume { max_attempts: Some(5), ..eager(1) };
    let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
    let poison = Message { body: b"\xff{{".to_vec(), ..Message::default() };
    broker.send(&subscription.topic, &poison, &budget(Duration::from_mins(1))).await.unwrap();
    publish(&broker, &subscription.topic, "healthy").await;
    let mut healthy = false;
    let mut rejected = false;
    while !(healthy && rejected) {
        let delivery = next(&mut deliveries).await;
        if delivery.event().is_ok() {
            healthy = true;
            delivery.ack().await.unwrap();
        } else {
            let why = delivery.event().unwrap_err().to_string();
            rejected = true;
            delivery.reject(&why).await.unwrap();
        }
    }
    let mut buried = subscribe(&broker, &broker.dead_letters(&subscription), eager(1)).await.unwrap();
    let letter = next(&mut buried).await;
    assert_eq!(letter.message().body, poison.body);
    assert!(letter.message().attribute(DEAD_LETTER_REASON).unwrap().starts_with("not an event"));
    letter.ack().await.unwrap();
}

pub(crate) async fn a_delivery_outstays_its_lease(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let brief = Consume { lease: Duration::from_millis(300), ..eager(1) };
    let mut deliveries = subscribe(&broker, &subscription, brief).await.unwrap();
    publish(&broker, &subscription.topic, "slow").await;
    let slow = next(&mut deliveries).await;
    let again = next(&mut deliveries).await;
    assert_eq!(id(&again), "slow");
    assert_eq!(slow.extend().await.unwrap_err().kind, ErrorKind::Lost);
    assert_eq!(slow.ack().await.unwrap_err().kind, ErrorKind::Lost);
    // The second one may be late too, on a busy machine.
    let _comes_again = again.ack().await;
}

/// An event does not die of an outage that is not its own.
pub(crate) async fn a_postponed_event_spends_no_attempt(subject: &Subject) {
    if subject.part == Part::PubSub {
        // It counts every delivery itself.
        return;
    }
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let consume = Consume { max_attempts: Some(2), ..eager(1) };
    let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
    publish(&broker, &subscription.topic, "patient").await;
    for _ in 0..4 {
        let delivery = next(&mut deliveries).await;
        assert_eq!((id(&delivery).as_str(), delivery.attempt()), ("patient", 1));
        delivery.postpone(Duration::from_millis(1)).await.unwrap();
    }
    next(&mut deliveries).await.nack_for(Duration::ZERO).await.unwrap();
    let second = next(&mut deliveries).await;
    assert_eq!(second.attempt(), 2);
    second.postpone(Duration::from_millis(1)).await.unwrap();
    let again = next(&mut deliveries).await;
    assert_eq!(again.attempt(), 2);
    again.ack().await.unwrap();
}

/// A look at dead letters changes nothing; one that is deleted does not come again.
pub(crate) async fn dead_letters_are_looked_at_and_deleted(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let mut deliveries =
        subscribe(&broker, &subscription, Consume { max_attempts: Some(5), ..eager(1) }).await.unwrap();
    for name in ["one", "two"] {
        publish(&broker, &subscription.topic, name).await;
        next(&mut deliveries).await.reject("an outage").await.unwrap();
    }
    let stop = tokio_util::sync::CancellationToken::new();
    let look = async |disposition: Disposition| {
        let mut seen = Vec::new();
        let each = |letter: &message_broker::Delivery, fate| {
            let described = dead_letters::describe(letter);
            assert_eq!(described.get("reason"), Some(&"an outage".into()));
            assert_eq!(described.get("id"), Some(&id(letter).into()));
            seen.push((id(letter), fate));
        };
        let disposition =
            |letter: &message_broker::Delivery| if id(letter) == "one" { disposition } else { Disposition::Keep };
        let letters =
            Letters { broker: &broker, subscription: &subscription, idle: Duration::from_secs(10), stop: &stop };
        assert!(letters.walk(disposition, each).await.unwrap());
        seen.sort_by(|one, other| one.0.cmp(&other.0));
        seen
    };
    let kept = |name: &str| (name.to_owned(), Fate::Kept);
    assert_eq!(look(Disposition::Keep).await, [kept("one"), kept("two")]);
    assert_eq!(look(Disposition::Drop).await, [("one".to_owned(), Fate::Dropped), kept("two")]);
    assert_eq!(look(Disposition::Keep).await, [kept("two")]);
}

/// An event comes again as it was; what is no event stays a dead letter.
pub(crate) async fn dead_letters_are_replayed(subject: &Subject) {
    let (broker, subscription) = (subject.broker(), subject.subscription("a"));
    let consume = Consume { max_attempts: Some(5), ..eager(1) };
    let mut deliveries = subscribe(&broker, &subscription, consume).await.unwrap();
    let poison = Message { body: b"{{".to_vec(), ..Message::default() };
    broker.send(&subscription.topic, &poison, &budget(Duration::from_mins(1))).await.unwrap();
    next(&mut deliveries).await.reject("no event").await.unwrap();
    publish(&broker, &subscription.topic, "unlucky").await;
    let before = next(&mut deliveries).await;
    let message = before.message().clone();
    before.reject("an outage").await.unwrap();

    let mut fates = Vec::new();
    let stop = tokio_util::sync::CancellationToken::new();
    let each = |letter: &message_broker::Delivery, fate| fates.push((letter.event().is_ok(), fate));
    let idle = Duration::from_secs(10);
    let letters = Letters { broker: &broker, subscription: &subscription, idle, stop: &stop };
    assert!(letters.walk(|_| Disposition::Replay, each).await.unwrap());
    fates.sort_by_key(|(is_event, _)| *is_event);
    assert_eq!(fates, [(false, Fate::Kept), (true, Fate::Replayed)]);

    let again = next(&mut deliveries).await;
    assert_eq!((id(&again).as_str(), again.attempt(), again.message()), ("unlucky", 1, &message));
    again.ack().await.unwrap();
    let mut buried = subscribe(&broker, &broker.dead_letters(&subscription), eager(1)).await.unwrap();
    let letter = next(&mut buried).await;
    assert_eq!(letter.message().body, poison.body);
    letter.ack().await.unwrap();
}
