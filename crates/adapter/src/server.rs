//! A running adapter: listeners, leader election, readiness, shutdown.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daemon::certificates::Certificates;
use daemon::probes::Probes;
use daemon::readiness::{Readiness, ReadinessSender};
use daemon::retry::Budget;
use daemon::serve::{Endpoint, ListenError};
use hyperfleet_client::{Client, ListQuery, SetupError};
use kubernetes::Cluster;
use kubernetes::leadership::{Leadership, RETRY_PERIOD};
use message_broker::{Broker, BrokerError, Deliveries};
use prometheus_client::registry::Registry;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::{Checked, table};
use crate::limits::Limits;
use crate::manifest;
use crate::metrics::{Identity, Metrics};
use crate::run::Run;
use crate::run::context::Context;
use crate::run::failures::Failures;
use crate::store::Stores;
use crate::store_check::StoreCheck;
use crate::store_check::findings::Findings;

/// Period of the broker's health check.
const HEALTH_CHECK_PERIOD: Duration = Duration::from_secs(5);

/// External systems of an adapter.
#[derive(Debug)]
pub struct Parts {
    /// Delivers events.
    pub broker: Broker,
    /// Runs Jobs.
    pub cluster: Cluster,
    /// Elects one of several replicas to report ended Jobs. Without it this replica reports them.
    pub leadership: Option<Leadership>,
    /// The secret stores that are checked against what was reported. Without them nothing is checked.
    pub stores: Option<Stores>,
}

/// An adapter whose listeners are bound and that has not started yet.
#[derive(Debug)]
pub struct Adapter {
    config: Checked,
    parts: Parts,
    client: Client,
    deliveries: Deliveries,
    probes: Probes,
    counts: Metrics,
}

/// Errors that prevent an adapter from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The client of the API cannot be set up.
    #[error(transparent)]
    Client(#[from] SetupError),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The subscription does not exist, is incompatible, or is forbidden.
    #[error("cannot subscribe: {}", .0.hint().unwrap_or_else(|| "check the subscription and the broker's settings".to_owned()))]
    Subscribe(#[from] BrokerError),
}

impl Adapter {
    /// Binds the listeners and subscribes, so that no event from here on is missed. API, broker and Kubernetes may be
    /// unavailable.
    pub async fn prepare(config: Checked, parts: Parts, version: &'static str) -> Result<Self, StartError> {
        let client = Client::new(config.client.clone())?;
        // Ended by draining.
        let deliveries =
            parts.broker.subscribe(&config.subscription, config.consume, &CancellationToken::new()).await?;
        let mut registry = Registry::default();
        let by_cluster = config.given.spec.limits.cluster_id_label;
        let identity = Identity { name: &config.name, adapter_type: &config.adapter, version, by_cluster };
        let counts = Metrics::register(&mut registry, &identity);
        if let Some(certificate) = parts.cluster.client_certificate() {
            Certificates::register(&mut registry).add_client("kubeconfig", certificate);
        }
        let readiness = ReadinessSender::not_ready("has not subscribed yet");
        let (health, metrics) = (&config.given.health, &config.given.metrics);
        let health = Endpoint::new(&table::TABLE, "health", "probes", &health.host, health.port);
        let metrics = Endpoint::new(&table::TABLE, "metrics", "metrics", &metrics.host, metrics.port);
        let probes = Probes::listen(&health, &metrics, registry, readiness).await?;
        Ok(Self { config, parts, client, deliveries, probes, counts })
    }

    /// Bound address of the health listener.
    pub fn health_address(&self) -> SocketAddr {
        self.probes.health_address()
    }

    /// Bound address of the metrics listener.
    pub fn metrics_address(&self) -> SocketAddr {
        self.probes.metrics_address()
    }

    /// Runs until `stop`. No outage of API, broker or Kubernetes ends it.
    pub async fn run(self, stop: CancellationToken) {
        let Self { config, parts, client, deliveries, probes, counts } = self;
        if config.tracks_copies && config.given.spec.destinations.is_none() {
            tracing::warn!(
                operation = "start",
                "spec.destinations is not set: pull secrets may go to every project, folder and namespace that a resource names"
            );
        }
        let Parts { broker, cluster, leadership, stores } = parts;
        let job_events = cluster.watch_jobs(
            &config.namespace,
            &manifest::selector_of_all(&config),
            fleet_model::names::LABEL_RUN_RESOURCE,
        );
        let (leads, is_leading) = watch::channel(leadership.is_none());
        let limits = Mutex::new(Limits::new(config.quota));
        let context = Context {
            config,
            client,
            cluster,
            job_cache: job_events.cache(),
            metrics: counts,
            limits,
            failures: Mutex::new(Failures::default()),
            findings: Mutex::new(Findings::default()),
        };
        let context = Arc::new(context);
        let (repairs, due) = mpsc::channel(1);
        let is_checked = context.config.tracks_copies && !context.config.given.spec.store_check.interval.is_zero();
        let check = stores.filter(|_| is_checked).map(|stores| StoreCheck::new(Arc::clone(&context), stores, repairs));
        let checks = check_stores(check, is_leading.clone());
        let run = Run::new(Arc::clone(&context), is_leading, due, stop.clone());
        let readiness = probes.readiness();
        let work = async {
            tokio::join!(
                run.run(deliveries, job_events),
                lead(leadership, &leads, &stop),
                stop.run_until_cancelled(watch_readiness(&broker, &context, &readiness)),
                stop.run_until_cancelled(checks),
            );
        };
        Box::pin(probes.serve_during(stop.clone(), work)).await;
    }
}

async fn check_stores(check: Option<StoreCheck>, leads: watch::Receiver<bool>) {
    if let Some(check) = check {
        Box::pin(check.run(leads)).await;
    }
}

/// Takes part in the election until `stop`, then releases the Lease.
async fn lead(leadership: Option<Leadership>, leads: &watch::Sender<bool>, stop: &CancellationToken) {
    let Some(mut leadership) = leadership else { return };
    let term = async {
        loop {
            leadership.acquire().await;
            leads.send_replace(true);
            leadership.renew_until_lost().await;
            leads.send_replace(false);
            sleep(RETRY_PERIOD).await;
        }
    };
    // The loop has no end of its own.
    let _never = stop.run_until_cancelled(term).await;
    if leads.send_replace(false) {
        leadership.release().await;
    }
}

/// Reports the adapter as ready while its subscriptions receive events, and Kubernetes and the API answer it. Both are asked for
/// a list with one item at most: a request for something that does not exist would be an error in their logs and metrics.
async fn watch_readiness(broker: &Broker, context: &Context, readiness: &ReadinessSender) {
    let selector = manifest::selector_of_all(&context.config);
    let one = ListQuery { size: Some(1), fields: vec!["id".to_owned()], ..ListQuery::default() };
    let check = || async {
        let health = broker.health().await;
        if let Some(problem) = health.subscribers.into_values().find_map(Result::err) {
            return Readiness::NotReady(format!("events are not received: {problem}"));
        }
        if let Err(error) = context.cluster.check_jobs(&context.config.namespace, &selector).await {
            return Readiness::NotReady(format!("Kubernetes does not let this adapter work: {error}"));
        }
        let budget = Budget::new(HEALTH_CHECK_PERIOD, CancellationToken::new());
        let asked = context.client.within(&budget).list(&context.config.resource_type, &one).await;
        asked.map_or_else(
            |error| Readiness::NotReady(format!("the HyperFleet API does not let this adapter work: {error}")),
            |_page| Readiness::Ready,
        )
    };
    readiness.poll(HEALTH_CHECK_PERIOD, check).await;
}
