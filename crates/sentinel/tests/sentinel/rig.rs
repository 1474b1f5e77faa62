//! The test rig: an API server with its own database, an in-process broker, and Sentinels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperfleet_client::{NewResource, Resource};
use message_broker::memory::Memory;
use message_broker::{Broker, BrokerError, Consume, Deliveries, ErrorKind, Event, Operation, Subscription};
use sentinel::leader::Election;
use sentinel::position::PositionStore;
use sentinel::publisher::{Publisher, TopicPublisher};
use sentinel::run::Progress;
use sentinel::{Checked, Sentinel};
use serde_json::{Value, json};
use testkit::api_server::until;
use testkit::hyperfleet::{self, HyperFleetApi};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const TOPIC: &str = "hyperfleet-clusters";

/// A running Sentinel.
pub(crate) struct Running {
    pub(crate) progress: watch::Receiver<Progress>,
    pub(crate) health: String,
    pub(crate) metrics: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// A broker that can be switched off.
#[derive(Clone)]
pub(crate) struct FlakyBroker {
    to: TopicPublisher,
    is_down: Arc<AtomicBool>,
    /// The refused events in short form, in order.
    refused: watch::Sender<Vec<String>>,
}

/// Creates a cluster with labels.
pub(crate) async fn create_labelled(api: &HyperFleetApi, id: &str, labels: &[(&str, &str)]) -> Resource {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    api.create_cluster(&NewResource { labels, ..hyperfleet::cluster(id) }).await
}

/// Starts a Sentinel of this API with additional settings.
pub(crate) async fn start_sentinel(
    api: &HyperFleetApi,
    settings: &str,
    publisher: impl Publisher,
    election: Election,
) -> Running {
    sentinel_at(&api.address, settings, publisher, election).await
}

/// Starts a Sentinel of the API at this address.
pub(crate) async fn sentinel_at(api: &str, settings: &str, publisher: impl Publisher, election: Election) -> Running {
    prepared(api, settings, publisher, election, None).await
}

/// Starts a Sentinel of this API that keeps its position for a successor.
pub(crate) async fn start_with(
    api: &HyperFleetApi,
    settings: &str,
    publisher: impl Publisher,
    election: Election,
    positions: Option<PositionStore>,
) -> Running {
    prepared(&api.address, settings, publisher, election, positions).await
}

async fn prepared(
    api: &str,
    settings: &str,
    publisher: impl Publisher,
    election: Election,
    positions: Option<PositionStore>,
) -> Running {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        "{{resource_type: clusters, clients: {{hyperfleet_api: {{base_url: 'http://{api}'}}, broker: {{topic: {TOPIC}}}}}, \
         health: {{port: 0}}, metrics: {{port: 0}}, {settings}}}"
    );
    daemon::file::replace(file.path(), text.as_bytes()).unwrap();
    let flags = [("config", file.path().to_string_lossy().into_owned())].into();
    let checked = Checked::load(flags, &BTreeMap::<&str, &str>::new()).unwrap();
    let sentinel = Sentinel::prepare(checked, publisher, election, "test").await.unwrap().with_positions(positions);
    let (progress, stop) = (sentinel.progress(), CancellationToken::new());
    let address = |address| format!("http://{address}");
    let (health, metrics) = (address(sentinel.health_address()), address(sentinel.metrics_address()));
    let task = tokio::spawn(Box::pin(sentinel.run(stop.clone())));
    Running { progress, health, metrics, stop, task }
}

impl Running {
    /// Waits until the progress fulfils the condition.
    pub(crate) async fn until(&mut self, is_expected: impl FnMut(&Progress) -> bool) {
        self.progress.wait_for(is_expected).await.unwrap();
    }

    /// Waits until it leads and has read the whole fleet.
    pub(crate) async fn complete(mut self) -> Self {
        self.until(|progress| progress.is_complete).await;
        self
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Ends the Sentinel without a shutdown, as `kill -9` does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _aborted = self.task.await;
    }

    pub(crate) async fn metrics(&self) -> String {
        reqwest::get(format!("{}/metrics", self.metrics)).await.unwrap().text().await.unwrap()
    }

    /// Waits for this status of the readiness probe, which follows the progress with a delay.
    pub(crate) async fn until_readyz(&self, status: u16) {
        let event = format!("/readyz answers {status}");
        until(&event, async || (self.probe("/readyz").await.0 == status).then_some(())).await;
    }

    pub(crate) async fn probe(&self, path: &str) -> (u16, Value) {
        let answer = reqwest::get(format!("{}{path}", self.health)).await.unwrap();
        (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }
}

impl FlakyBroker {
    pub(crate) fn new(to: TopicPublisher) -> Self {
        Self { to, is_down: Arc::default(), refused: watch::Sender::default() }
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Waits until an event was refused.
    pub(crate) async fn refused_one(&self) {
        self.refused.subscribe().wait_for(|refused| !refused.is_empty()).await.unwrap();
    }

    /// Waits until each of these events was refused.
    pub(crate) async fn refused(&self, expected: &[String]) {
        let mut refused = self.refused.subscribe();
        refused.wait_for(|refused| expected.iter().all(|event| refused.contains(event))).await.unwrap();
    }
}

impl Publisher for FlakyBroker {
    fn publish(&self, event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
        let this = self.clone();
        async move {
            if this.is_down.load(Ordering::SeqCst) {
                this.refused.send_modify(|refused| refused.push(in_short(&event)));
                return Err(BrokerError::new(Operation::Publish, TOPIC, ErrorKind::Unavailable));
            }
            this.to.publish(event).await
        }
    }

    async fn health(&self) -> Result<(), BrokerError> {
        self.to.health().await
    }
}

/// Returns an in-process broker and a subscriber.
pub(crate) async fn broker() -> (TopicPublisher, Deliveries) {
    let broker = Broker::Memory(Memory::new());
    let listener = listen(&broker, "listener").await;
    (TopicPublisher { broker, topic: TOPIC.parse().unwrap() }, listener)
}

pub(crate) async fn listen(broker: &Broker, id: &str) -> Deliveries {
    let subscription = Subscription::new(TOPIC, id).unwrap();
    broker.subscribe(&subscription, Consume::default(), &CancellationToken::new()).await.unwrap()
}

/// Acks the next events and returns them in short form.
pub(crate) async fn received(deliveries: &mut Deliveries, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(in_short(&next(deliveries).await));
    }
    all
}

fn in_short(event: &Event) -> String {
    let generation = &event.json().unwrap()["generation"];
    format!("{} {} {generation}", event.kind, event.subject.as_deref().unwrap())
}

/// Acks the next event and returns it.
pub(crate) async fn next(deliveries: &mut Deliveries) -> Event {
    let delivery = deliveries.next().await.unwrap();
    let event = delivery.event().unwrap().clone();
    delivery.ack().await.unwrap();
    event
}

pub(crate) fn reconcile(id: &str, generation: i64) -> String {
    format!("com.redhat.hyperfleet.cluster.reconcile {id} {}", json!(generation))
}
