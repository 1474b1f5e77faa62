//! The test rig: an API, a broker, Kubernetes with a simulated node, and adapters.

use std::collections::BTreeMap;
use std::time::Duration;

use adapter::{Adapter, Checked, Config, Parts, Stores};
use daemon::backoff::Backoff;
use hyperfleet_client::{Generation, Report, Resource, Status};
use jiff::Timestamp;
use kubernetes::leadership::Leadership;
use message_broker::memory::Memory;
use message_broker::{Broker, Consume, Deliveries, Event, Name};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use testkit::go_api::GoApi;
use testkit::hyperfleet::budget;

use crate::api::Api;
use crate::environment::{Environment, Kind};
use crate::node::Node;

/// Maximum time until an expected state is reached, also on a busy machine. A run that waits for the quota does so for a minute.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(3);

pub(crate) struct World {
    /// Declared first, as it must be dropped before the API server that it watches.
    pub(crate) node: Node,
    pub(crate) api: Api,
    /// A server that adapters ask instead of the API itself.
    pub(crate) proxy: Option<GoApi>,
    pub(crate) broker: Broker,
    pub(crate) environment: Environment,
    /// Number of deliveries after which adapters dead-letter an event.
    pub(crate) max_attempts: u32,
    /// The secret stores that adapters check; by default none.
    pub(crate) stores: Option<Stores>,
}

/// A running adapter.
pub(crate) struct Running {
    pub(crate) metrics: String,
    health: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new(kind: Kind) -> Option<Self> {
        let environment = Environment::new(kind).await?;
        Some(Self::at(environment).await)
    }

    pub(crate) async fn at(environment: Environment) -> Self {
        let node = Node::start(&environment);
        Self {
            api: Api::start().await,
            broker: Broker::Memory(Memory::new()),
            environment,
            node,
            stores: None,
            proxy: None,
            max_attempts: 1_000,
        }
    }

    /// Starts an adapter with additional settings, given as members of `spec`.
    pub(crate) async fn adapter(&self, settings: &str) -> Running {
        self.replica(settings, None).await
    }

    /// Starts an adapter as one of several replicas that share a Lease.
    pub(crate) async fn replica(&self, settings: &str, holder: Option<&str>) -> Running {
        let cluster = self.environment.cluster().await;
        let leadership = holder.map(|holder| {
            Leadership::new(
                cluster.clone(),
                self.environment.namespace.clone(),
                "adapter".to_owned(),
                holder.to_owned(),
            )
        });
        let parts = Parts { broker: self.broker.clone(), cluster, leadership, stores: self.stores.clone() };
        let adapter = Box::pin(Adapter::prepare(self.config(settings), parts, "test")).await.unwrap();
        let metrics = format!("http://{}", adapter.metrics_address());
        let health = format!("http://{}", adapter.health_address());
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let task = tokio::spawn(Box::pin(adapter.run(stopping)));
        Running { metrics, health, stop, task }
    }

    fn config(&self, settings: &str) -> Checked {
        let address = self.proxy.as_ref().map_or(&self.api.address, |proxy| &proxy.address);
        let text = format!(
            "{{apiVersion: hyperfleet.redhat.com/v1alpha1, kind: AdapterConfig, \
             metadata: {{name: pullsecret-adapter, namespace: {}}}, spec: {{adapterType: pullsecret, \
             hyperfleetAPI: {{url: 'http://{}'}}, health: {{port: 0}}, metrics: {{port: 0}}, {settings}}}}}",
            self.environment.namespace, address
        );
        let none = BTreeMap::<&str, &str>::new();
        let mut config = Config::read(Some(text), BTreeMap::new(), &none).and_then(Config::check).unwrap();
        config.client.token = Some(self.api.token());
        let backoff = Backoff::doubling(Duration::from_millis(50), Duration::from_secs(1));
        config.client.retry.backoff = backoff;
        config.consume = Consume { backoff, max_attempts: Some(self.max_attempts), ..config.consume };
        config
    }

    /// Publishes an event as the Sentinel does.
    pub(crate) async fn publish_event(&self, id: &str) {
        let data = json!({"id": id, "kind": "Cluster", "generation": 1});
        self.publish(Event::new(
            "hyperfleet-sentinel",
            "com.redhat.hyperfleet.cluster.reconcile",
            Timestamp::now(),
            data,
        ))
        .await;
    }

    pub(crate) async fn publish(&self, event: Event) {
        self.broker.publish(&topic(), &event, &budget()).await.unwrap();
    }

    /// Subscribes to the dead letters.
    pub(crate) async fn dead_letters(&self) -> Deliveries {
        let subscription = self.broker.dead_letters(&self.config("").subscription);
        let consume = Consume { max_attempts: None, ..Consume::default() };
        self.broker.subscribe(&subscription, consume, &CancellationToken::new()).await.unwrap()
    }

    /// Waits until the adapter's report fulfils the condition.
    pub(crate) async fn until(&self, id: &str, is_expected: impl Fn(&Report) -> bool) -> Report {
        let waiting = async {
            loop {
                if let Some(report) = self.api.last_report(id).await.filter(&is_expected) {
                    return report;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(TIMEOUT, waiting).await {
            Ok(report) => report,
            Err(tokio::time::error::Elapsed { .. }) => {
                panic!("{id}: the last report is {:#?}", self.api.last_report(id).await)
            }
        }
    }

    /// Waits until the adapter reports the pull secret of this generation as available.
    pub(crate) async fn until_available(&self, id: &str, generation: impl Into<Generation>) -> Report {
        let generation = generation.into();
        self.until(id, |report| report.observed_generation == generation && is(report, "Available", Status::True)).await
    }

    /// Waits until `Available` has this reason.
    pub(crate) async fn until_reason(&self, id: &str, reason: &str) -> Report {
        self.until(id, |report| report.condition("Available").and_then(|found| found.reason.as_deref()) == Some(reason))
            .await
    }

    /// Waits until the API has deleted the cluster.
    pub(crate) async fn until_gone(&self, id: &str) {
        eventually(async || self.api.get(id).await.is_none()).await;
    }

    /// A cluster for which everything is done that comes before its pull secret.
    pub(crate) async fn ready(&self, id: &str) -> Resource {
        let created = self.api.create(id).await;
        self.api.make_ready(id, &self.environment.management).await;
        created
    }

    pub(crate) async fn end(self) {
        drop(self.node);
        self.environment.end().await;
    }
}

pub(crate) fn topic() -> Name {
    "hyperfleet-system-clusters".parse().unwrap()
}

pub(crate) fn is(report: &Report, kind: &str, status: Status) -> bool {
    report.condition(kind).is_some_and(|condition| condition.status == status)
}

pub(crate) fn message<'a>(report: &'a Report, kind: &str) -> &'a str {
    report.condition(kind).and_then(|condition| condition.message.as_deref()).unwrap_or_default()
}

/// Waits until the condition is true.
pub(crate) async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, waiting).await.is_ok(), "the expected state was not reached in time");
}

impl Running {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Ends the adapter without a shutdown, as `kill -9` does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _aborted = self.task.await;
    }

    /// The answer of the readiness probe: true if ready, and why not.
    pub(crate) async fn readiness(&self) -> (bool, String) {
        let answer = reqwest::get(format!("{}/readyz", self.health)).await.unwrap();
        (answer.status().is_success(), answer.text().await.unwrap())
    }

    pub(crate) async fn metrics(&self) -> String {
        reqwest::get(format!("{}/metrics", self.metrics)).await.unwrap().text().await.unwrap()
    }

    /// The sum of a metric's samples whose labels contain this.
    pub(crate) async fn count(&self, metric: &str, labels: &str) -> u64 {
        let text = self.metrics().await;
        let lines = text.lines().filter(|line| line.starts_with(metric) && line.contains(labels));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }
}
