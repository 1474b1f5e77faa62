//! The brokers under test, where they are, and what every case does with them.

use std::collections::BTreeSet;
use std::time::Duration;

use daemon::backoff::Backoff;
use daemon::retry::Budget;
use jiff::Timestamp;
use message_broker::memory::Memory;
use message_broker::pubsub::{self, PubSub};
use message_broker::rabbitmq::{self, RabbitMq};
use message_broker::{Broker, BrokerError, Consume, Deliveries, Delivery, Event, Name, Subscription};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longer than anything takes, on a machine that does much else.
const TIMEOUT: Duration = Duration::from_mins(4);

/// A broker is taken away from all cases at once: such a case has it for itself.
static RABBITMQ: RwLock<()> = RwLock::const_new(());
static PUBSUB: RwLock<()> = RwLock::const_new(());

/// The broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Memory,
    Journal,
    RabbitMq,
    PubSub,
}

/// A broker under test.
pub(crate) struct Subject {
    pub(crate) part: Part,
    memory: Option<Memory>,
    held: Held,
    unique: String,
}

/// Guards that a case holds while it runs.
#[expect(dead_code, reason = "held, not read")]
enum Held {
    Nothing,
    Folder(TempDir),
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Subject {
    /// A broker, shared with other cases; `None` after having said why there is none.
    pub(crate) async fn new(part: Part) -> Option<Self> {
        let mut subject = Self::found(part).await?;
        match part {
            Part::RabbitMq => subject.held = Held::Shared(RABBITMQ.read().await),
            Part::PubSub => subject.held = Held::Shared(PUBSUB.read().await),
            Part::Memory | Part::Journal => {}
        }
        Some(subject)
    }

    /// A broker of its own, which can be stopped.
    pub(crate) async fn alone(part: Part) -> Option<Self> {
        let script = match part {
            Part::RabbitMq => "REAL_RABBITMQ_SCRIPT",
            Part::PubSub => "REAL_PUBSUB_SCRIPT",
            Part::Memory | Part::Journal => return None,
        };
        let mut subject = Self::found(part).await?;
        if variable(script).is_none() {
            absent(&format!("{script} is not set, so that the broker cannot be taken away"));
            return None;
        }
        let lock = if part == Part::RabbitMq { &RABBITMQ } else { &PUBSUB };
        subject.held = Held::Alone(lock.write().await);
        Some(subject)
    }

    async fn found(part: Part) -> Option<Self> {
        let unique = Uuid::now_v7().simple().to_string();
        let mut subject = Self { part, memory: None, held: Held::Nothing, unique };
        match part {
            Part::Memory => subject.memory = Some(Memory::new()),
            Part::Journal => {
                let folder = tempfile::tempdir().unwrap();
                subject.memory = Some(Memory::open(&folder.path().join("events.db")).await.unwrap());
                subject.held = Held::Folder(folder);
            }
            Part::RabbitMq => {
                if variable("REAL_RABBITMQ_URL").is_none() {
                    absent("REAL_RABBITMQ_URL is not set; hack/real-parts/rabbitmq.sh up");
                    return None;
                }
            }
            Part::PubSub => {
                if variable("REAL_PUBSUB_HOST").is_none() {
                    // No package registry has the emulator: where gcloud does not bring it, it cannot be had.
                    match variable("REAL_PUBSUB_ABSENT") {
                        Some(why) => eprintln!("skipped: Google's Pub/Sub emulator cannot be had: {why}"),
                        None => absent("REAL_PUBSUB_HOST is not set; hack/real-parts/pubsub.sh up"),
                    }
                    return None;
                }
            }
        }
        Some(subject)
    }

    /// The broker; a client of its own where that is possible.
    pub(crate) fn broker(&self) -> Broker {
        match self.part {
            Part::Memory | Part::Journal => Broker::Memory(self.memory.clone().unwrap()),
            Part::RabbitMq => {
                let url = variable("REAL_RABBITMQ_URL").unwrap();
                let attempt_timeout = Duration::from_mins(1);
                let settings = rabbitmq::Settings { attempt_timeout, ..rabbitmq::Settings::new(url.into()) };
                Broker::RabbitMq(RabbitMq::new(settings).unwrap())
            }
            Part::PubSub => Broker::PubSub(PubSub::new(emulator())),
        }
    }

    /// A client of RabbitMQ whose URL ends in `/`.
    #[expect(clippy::unused_self, reason = "only a subject that was found has a URL")]
    pub(crate) fn broker_with_a_trailing_slash(&self) -> Broker {
        let url = variable("REAL_RABBITMQ_URL").unwrap();
        let (server, _vhost) = url.rsplit_once('/').unwrap();
        Broker::RabbitMq(RabbitMq::new(rabbitmq::Settings::new(format!("{server}/").into())).unwrap())
    }

    /// A topic's and a subscription's names that no other case has.
    pub(crate) fn subscription(&self, id: &str) -> Subscription {
        Subscription::new(&format!("t-{}", self.unique), &format!("s-{}-{id}", self.unique)).unwrap()
    }

    pub(crate) fn topic(&self) -> Name {
        self.subscription("any").topic
    }

    /// Tells the broker's script to do something to it.
    pub(crate) async fn control(&self, action: &str) {
        let part = if self.part == Part::RabbitMq { "RABBITMQ" } else { "PUBSUB" };
        let script = variable(&format!("REAL_{part}_SCRIPT")).unwrap();
        let name = variable(&format!("REAL_{part}_NAME")).unwrap();
        let status = Command::new(script).args([action, &name]).status().await.unwrap();
        assert!(status.success(), "{action} failed");
    }
}

pub(crate) fn emulator() -> pubsub::Settings {
    pubsub::Settings {
        endpoint: pubsub::Endpoint::Emulator(variable("REAL_PUBSUB_HOST").unwrap()),
        provision: pubsub::Provision::Create,
        ..pubsub::Settings::new("real-parts")
    }
}

#[expect(clippy::disallowed_methods, reason = "what is real is named by the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn absent(why: &str) {
    assert!(variable("CI").is_none_or(|ci| ci != "true"), "{why}");
    eprintln!("skipped: {why}");
}

/// Waits for what must happen.
pub(crate) async fn within<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, event).await.unwrap_or_else(|_elapsed| panic!("waited in vain for {what}"))
}

pub(crate) fn budget(time: Duration) -> Budget {
    Budget::new(time, CancellationToken::new())
}

/// Short back-off between deliveries, and no dead letters.
pub(crate) fn eager(concurrency: u16) -> Consume {
    Consume {
        concurrency,
        lease: Duration::from_mins(10),
        backoff: Backoff::doubling(Duration::from_millis(100), Duration::from_mins(1)),
        max_attempts: None,
        is_temporary: false,
    }
}

pub(crate) fn event(id: &str) -> Event {
    let data = json!({"id": id, "kind": "Cluster", "generation": 1});
    let mut event = Event::new("tests", "com.redhat.hyperfleet.cluster.reconcile", Timestamp::UNIX_EPOCH, data);
    id.clone_into(&mut event.id);
    event
}

pub(crate) async fn publish(broker: &Broker, topic: &Name, id: &str) {
    let published = broker.publish(topic, &event(id), &budget(TIMEOUT)).await;
    published.unwrap_or_else(|error| panic!("{id}: {error}"));
}

/// Publishes many, some at a time.
pub(crate) async fn publish_many(broker: &Broker, topic: &Name, ids: std::ops::Range<usize>) {
    use futures_util::StreamExt as _;
    let each = futures_util::stream::iter(ids);
    each.for_each_concurrent(50, async |id| publish(broker, topic, &id.to_string()).await).await;
}

pub(crate) async fn subscribe(
    broker: &Broker,
    subscription: &Subscription,
    consume: Consume,
) -> Result<Deliveries, BrokerError> {
    broker.subscribe(subscription, consume, &CancellationToken::new()).await
}

pub(crate) async fn next(deliveries: &mut Deliveries) -> Delivery {
    within("a delivery", deliveries.next()).await.expect("deliveries go on")
}

pub(crate) fn id(delivery: &Delivery) -> String {
    delivery.event().unwrap().id.clone()
}

/// Acknowledges everything until all of `ids` have come at least once.
pub(crate) async fn collect(deliveries: &mut Deliveries, ids: std::ops::Range<usize>) {
    let mut missing: BTreeSet<String> = ids.map(|id| id.to_string()).collect();
    while !missing.is_empty() {
        let delivery = next(deliveries).await;
        missing.remove(&id(&delivery));
        // What cannot be acknowledged, as its connection is gone, comes again.
        let _comes_again = delivery.ack().await;
    }
}
