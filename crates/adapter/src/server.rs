//! A running adapter: its parts put together, its probes, its election, its end.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daemon::probes::{self, Readiness, ReadinessSender};
use daemon::serve::{self, Listener, Manners};
use hyperfleet_client::{Client, SetupError};
use kubernetes::Cluster;
use kubernetes::leadership::{Leadership, RETRY_PERIOD};
use message_broker::{Broker, BrokerError, Deliveries};
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::{Address, Plan};
use crate::limits::Limits;
use crate::manifest;
use crate::metrics::{Identity, Metrics};
use crate::run::{Context, Counted, Run};

/// So often the broker is asked whether it is there.
const PROBE: Duration = Duration::from_secs(5);

/// What an adapter works with.
#[derive(Debug)]
pub struct Parts {
    /// By whom events come.
    pub broker: Broker,
    /// Where Jobs run.
    pub cluster: Cluster,
    /// How one of several replicas is chosen to report the ends of Jobs; without it this one does.
    pub leadership: Option<Leadership>,
}

/// An adapter whose addresses are taken and that does nothing yet.
#[derive(Debug)]
pub struct Adapter {
    plan: Plan,
    parts: Parts,
    client: Client,
    deliveries: Deliveries,
    health: Listener,
    metrics: Listener,
    metered: Arc<Registry>,
    counts: Metrics,
    readiness: ReadinessSender,
}

/// Why an adapter does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The client of the API could not be set up.
    #[error(transparent)]
    Client(#[from] SetupError),
    /// An address is taken or not ours.
    #[error("cannot listen at spec.{what}.host and spec.{what}.port: {kind}")]
    Listen {
        /// Which of the listeners.
        what: &'static str,
        /// Why not.
        kind: io::ErrorKind,
    },
    /// The subscription is not there, does not fit, or is not ours to use.
    #[error("cannot subscribe")]
    Subscribe(#[from] BrokerError),
}

impl Adapter {
    /// Puts an adapter together, takes its addresses and subscribes, so that no event from here on is missed. Neither API,
    /// broker nor Kubernetes need be there.
    pub async fn prepare(plan: Plan, parts: Parts, version: &'static str) -> Result<Self, StartError> {
        let client = Client::new(plan.client.clone())?;
        // Draining ends it.
        let deliveries = parts.broker.subscribe(&plan.subscription, plan.consume, &CancellationToken::new()).await?;
        let mut registry = Registry::default();
        let by_cluster = plan.config.spec.limits.cluster_id_label;
        let identity = Identity { name: &plan.name, adapter_type: &plan.adapter, version, by_cluster };
        let counts = Metrics::register(&mut registry, &identity);
        let (readiness, _) = watch::channel(Readiness::NotReady("has not subscribed yet".to_owned()));
        Ok(Self {
            health: listen("health", &plan.config.health).await?,
            metrics: listen("metrics", &plan.config.metrics).await?,
            metered: Arc::new(registry),
            plan,
            parts,
            client,
            deliveries,
            counts,
            readiness,
        })
    }

    /// Where probes are answered.
    pub fn health_address(&self) -> SocketAddr {
        self.health.address()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics.address()
    }

    /// Works until `stop`. No outage of API, broker or Kubernetes ends it.
    pub async fn run(self, stop: CancellationToken) {
        let Self { plan, parts, client, deliveries, health, metrics, metered, counts, readiness } = self;
        let Parts { broker, cluster, leadership } = parts;
        let news = cluster.watch_jobs(
            &plan.namespace,
            &manifest::selector_of_all(&plan),
            fleet_model::names::LABEL_RUN_RESOURCE,
        );
        let served = CancellationToken::new();
        let second = Duration::from_secs(1);
        let manners = Manners { head_timeout: second * 5, drain_timeout: second, tls: None };
        let probes = async {
            tokio::join!(
                health.serve(probes::health(readiness.subscribe()), manners.clone(), served.clone()),
                metrics.serve(probes::metrics(metered), manners.clone(), served.clone()),
            )
        };
        let (leads, is_leading) = watch::channel(leadership.is_none());
        let limits = Mutex::new(Limits::new(plan.quota));
        let context =
            Context { config: plan, client, cluster, metrics: counts, limits, counted: Mutex::new(Counted::default()) };
        let run = Run::new(Arc::new(context), is_leading, stop.clone());
        let work = async {
            let housekeeping = async {
                tokio::join!(lead(leadership, &leads, &stop), watch_over(&broker, &readiness, &stop));
            };
            tokio::join!(run.run(deliveries, news), housekeeping);
            served.cancel();
        };
        tokio::join!(probes, work);
    }
}

/// Leads while elected; gives the Lease back at the end.
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

/// Tells by readiness whether events come.
async fn watch_over(broker: &Broker, readiness: &ReadinessSender, stop: &CancellationToken) {
    let watching = async {
        loop {
            let health = broker.health().await;
            let problem = health.subscribers.into_values().find_map(Result::err);
            let now = match problem {
                None => Readiness::Ready,
                Some(problem) => Readiness::NotReady(format!("events do not come: {problem}")),
            };
            readiness.send_if_modified(|shown| {
                let changes = *shown != now;
                if changes {
                    tracing::info!(operation = "readiness", readiness = format!("{now:?}"), "readiness has changed");
                    *shown = now;
                }
                changes
            });
            sleep(PROBE).await;
        }
    };
    let _never = stop.run_until_cancelled(watching).await;
    readiness.send_replace(Readiness::ShuttingDown);
}

async fn listen(what: &'static str, address: &Address) -> Result<Listener, StartError> {
    serve::listen(&address.host, address.port).await.map_err(|error| StartError::Listen { what, kind: error.kind() })
}
