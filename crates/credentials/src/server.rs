//! The running service: listeners, database, the worker, the assignment to clusters, readiness, shutdown.

mod api;
mod assign;
mod entries;
mod metered;
mod open;
mod shadow;
mod start;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use daemon::certificates::Certificates;
use daemon::connections::ClientCertificate;
use daemon::environment::Environment;
use daemon::log::{AUDIT, causes};
use daemon::passes::{every, repeat};
use daemon::probes::Probes;
use daemon::readiness::{Readiness, ReadinessSender};
use daemon::serve::{Endpoint, expose_client};
use database::migrate_until_applied;
use database::sealed::Keyring;
use futures_util::future::join_all;
use hyperfleet_client::Client;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::chain::Link;
use crate::entries::EntryDigests;
use crate::ledger::{Advanced, Ledger, LedgerError};
use crate::metrics::{Metrics, OpenRotation, PoolLevel};
use crate::publish::ApiClusters;
use crate::registry::AnyRegistry;
use crate::run::{Served, Sources, Worker};
use crate::settings::{Checked, table};
use api::ApiListener;
use assign::Assignment;
use entries::EntryPasses;
use shadow::Shadows;

pub use metered::{Failing, Metered};
pub use open::{OpenError, open, open_existing};
pub use start::{ServeError, StartError};

/// Time for which a claimed row belongs to a replica; an action has half of it.
const LEASE: Duration = Duration::from_mins(2);
/// Maximum time of one observation of a cluster, or of one publication.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time for the step at work to finish at a shutdown. What is cut off is found again.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to close the database connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for the database to answer a probe.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of the metrics about the ledger.
const MEASURE_INTERVAL: Duration = Duration::from_secs(15);
/// Interval of the steps of rotations.
const ROTATE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the links of the chain of events.
const LINK_INTERVAL: Duration = Duration::from_mins(1);
/// Interval of the passes that seal passwords anew.
const REKEY_INTERVAL: Duration = Duration::from_mins(10);

/// The problem with the API until the clusters were read once.
const UNREAD: &str = "the clusters were not read yet";

/// A service whose listeners are bound and whose database is open, and that has not started yet.
#[derive(Debug)]
pub struct Server {
    checked: Checked,
    client: Client,
    worker: Worker<Metered<AnyRegistry>, ApiClusters>,
    keyring: Arc<Keyring>,
    metrics: Metrics,
    failing: Failing,
    probes: Probes,
    /// The HTTP API, if it is served.
    api: Option<ApiListener>,
    /// Cuts off the calls of the API at a shutdown.
    closing: CancellationToken,
}

// === impl Server ===

impl Server {
    /// Binds the listeners and opens the database. Database, API and registries may be unavailable. `replica` is the actor in
    /// events.
    pub async fn prepare(
        checked: Checked,
        environment: &impl Environment,
        sources: Sources,
        replica: String,
    ) -> Result<Self, StartError> {
        let client = Client::new(checked.client.clone())?;
        let keyring = Arc::new(checked.keyring().map_err(StartError::Setting)?);
        let ledger = open(&checked, environment, Arc::clone(&keyring)).map_err(StartError::Setting)?;
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, ledger.database().meter());
        let (failing, closing) = (Failing::default(), CancellationToken::new());
        let mut registries = std::collections::BTreeMap::new();
        for configured in &checked.registries {
            let name = configured.name.clone();
            let connected = configured.connect();
            let Served { registry, image, prefix, description, policy, pool, per_minute } =
                connected.map_err(|cause| StartError::Registry { registry: name.clone(), cause })?;
            let registry = Metered::new(registry, name.clone(), metrics.clone(), failing.clone());
            registries.insert(name, Served { registry, image, prefix, description, policy, pool, per_minute });
        }
        let clusters = ApiClusters::new(client.clone(), CLUSTER_TIMEOUT, closing.clone());
        let worker = Worker { name: replica, ledger, registries, clusters, sources, lease: LEASE };
        let certificates = Certificates::register(&mut registry);
        for configured in &checked.registries {
            if let Some(ClientCertificate { cert_file, key_file }) = configured.client.certificate() {
                let setting = format!("registries.{}.cert_file", configured.name);
                expose_client(setting, cert_file, key_file, &certificates);
            }
        }
        let directory = ApiListener::directory(&client, closing.clone());
        let api = ApiListener::prepare(&checked, &worker, directory, metrics.clone(), &certificates).await?;
        let (health, scraped) = (&checked.settings.health, &checked.settings.metrics);
        let health = Endpoint::new(&table::TABLE, "health", "probes", &health.host, health.port);
        let scraped = Endpoint::new(&table::TABLE, "metrics", "metrics", &scraped.host, scraped.port);
        let readiness = ReadinessSender::not_ready("has not opened the ledger yet");
        let probes = Probes::listen(&health, &scraped, registry, readiness).await?;
        Ok(Self { checked, client, worker, keyring, metrics, failing, probes, api, closing })
    }

    /// Bound address of the health listener.
    pub fn health_address(&self) -> SocketAddr {
        self.probes.health_address()
    }

    /// Bound address of the HTTP API, if it is served.
    pub fn api_address(&self) -> Option<SocketAddr> {
        self.api.as_ref().map(ApiListener::address)
    }

    /// Bound address of the metrics listener.
    pub fn metrics_address(&self) -> SocketAddr {
        self.probes.metrics_address()
    }

    /// Serves until `stop`; the step at work is finished first. Ends before only on a ledger that cannot be used.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ServeError> {
        let Self { checked, client, worker, keyring, metrics, failing, probes, api, closing } = self;
        let readiness = probes.readiness();
        let parts = Parts {
            checked: &checked,
            client: &client,
            worker: &worker,
            keyring: &keyring,
            metrics: &metrics,
            failing: &failing,
            readiness: &readiness,
        };
        let work = async {
            let opened = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                opened = parts.open_ledger() => opened,
            };
            opened?;
            let served = async {
                if let Some(api) = api {
                    api.serve(stop.clone()).await;
                }
            };
            let worked = async {
                tokio::select! {
                    () = worker.run(&stop) => {}
                    () = parts.attend(&stop) => {}
                    () = cut_off(&stop, &closing) => {}
                }
            };
            tokio::join!(served, worked);
            // A connection that was cut off may never close.
            let _closed_or_cut = timeout(CLOSE_TIMEOUT, worker.ledger.database().close()).await;
            Ok(())
        };
        Box::pin(probes.serve_during(stop.clone(), work)).await
    }
}

/// Ends some time after `stop`, when the calls at work have been cut off.
async fn cut_off(stop: &CancellationToken, closing: &CancellationToken) {
    stop.cancelled().await;
    sleep(FINISH_TIMEOUT).await;
    closing.cancel();
    sleep(FINISH_TIMEOUT).await;
}

/// The parts of a running service.
#[derive(Clone, Copy)]
struct Parts<'a> {
    checked: &'a Checked,
    client: &'a Client,
    worker: &'a Worker<Metered<AnyRegistry>, ApiClusters>,
    keyring: &'a Keyring,
    metrics: &'a Metrics,
    failing: &'a Failing,
    readiness: &'a ReadinessSender,
}

// === impl Parts ===

impl Parts<'_> {
    fn ledger(&self) -> &Ledger {
        &self.worker.ledger
    }

    /// Applies the missing migrations and checks that the keys of all passwords are known. Waits for the database.
    async fn open_ledger(&self) -> Result<(), ServeError> {
        let lock_timeout = self.checked.settings.database.pool.advisory_lock_timeout;
        let attempt = || async {
            let steps = self.ledger().migrate(lock_timeout, self.worker.sources.now()).await?;
            Ok::<_, LedgerError>((steps, self.missing_keys().await?))
        };
        let unavailable = || self.readiness.set(Readiness::NotReady("the database is not available".to_owned()));
        let missing = migrate_until_applied(lock_timeout, attempt, unavailable).await?;
        missing.map_or(Ok(()), |missing| Err(ServeError::MissingKeys(missing)))
    }

    /// Returns the keys that passwords are sealed with and that are not configured, and shows the number on old keys.
    async fn missing_keys(&self) -> Result<Option<String>, LedgerError> {
        let keys = self.ledger().keys_in_use().await?;
        let old = keys.iter().filter(|(key, _)| self.keyring.first() != Some(key.as_str()));
        self.metrics.show_old_keys(old.map(|(_, number)| *number).sum());
        let missing = keys.iter().filter(|(key, _)| !self.keyring.has(key));
        let missing: Vec<String> = missing.map(|(key, number)| format!("`{key}` ({number} passwords)")).collect();
        Ok(Some(missing.join(", ")).filter(|missing| !missing.is_empty()))
    }

    /// Assigns, measures, and keeps readiness up to date until the service stops.
    async fn attend(&self, stop: &CancellationToken) {
        let problems: Vec<_> =
            self.checked.registries.iter().map(|_each| watch::Sender::new(Some(UNREAD.to_owned()))).collect();
        let assignments = self.checked.registries.iter().zip(&problems).map(|(configured, problem)| async move {
            let assignment = Assignment {
                worker: self.worker,
                registry: &configured.name,
                search: configured.search.clone(),
                client: self.client,
                metrics: self.metrics,
                resync: self.checked.settings.clusters.resync,
                problem,
            };
            assignment.run(stop).await;
        });
        let passes = EntryPasses {
            ledger: self.ledger(),
            clusters: &self.worker.clusters,
            client: self.client,
            digests: EntryDigests::new(self.keyring.digest_key().clone()),
            resync: self.checked.settings.clusters.resync,
            sources: &self.worker.sources,
            metrics: self.metrics,
        };
        let shadows = async {
            if let Some(ams) = &self.checked.ams {
                let (ledger, client, sources) = (self.ledger(), self.client, &self.worker.sources);
                Shadows { ledger, client, ams, sources, metrics: self.metrics }.run(stop).await;
            }
        };
        let links = repeat("link-events", LINK_INTERVAL, stop, || self.link());
        let check = || self.check(&problems);
        let ready = self.readiness.poll(Duration::from_secs(1), check);
        let checkpoints = self.ledger().database().make_checkpoints();
        let (assigned, passed) = (join_all(assignments), passes.run(stop));
        tokio::join!(
            assigned,
            passed,
            shadows,
            links,
            ready,
            checkpoints,
            every(MEASURE_INTERVAL, || self.measure()),
            every(REKEY_INTERVAL, || self.reseal()),
            every(ROTATE_INTERVAL, || self.rotate())
        );
    }

    /// A registry that fails is shown by a metric: what the HTTP API serves, and the clusters of other registries, do not need it.
    async fn check(&self, problems: &[watch::Sender<Option<String>>]) -> Readiness {
        let ping = timeout(PING_TIMEOUT, self.ledger().database().ping()).await;
        if !matches!(ping, Ok(Ok(()))) {
            return Readiness::NotReady("the database is not available".to_owned());
        }
        if let Some(problem) = problems.iter().find_map(|problem| problem.borrow().clone()) {
            return Readiness::NotReady(format!("the API cannot be read: {problem}"));
        }
        Readiness::Ready
    }

    /// Links the new events, and writes the link to the log, where it outlives the ledger.
    async fn link(&self) -> Result<(), LedgerError> {
        if let Some(Link { number, through, hash, .. }) = self.ledger().link_events(self.worker.sources.now()).await? {
            let link = format!("{number}:{hash}");
            tracing::info!(target: AUDIT, operation = "link-events", link, through, "events linked");
        }
        Ok(())
    }

    async fn measure(&self) {
        if let Err(error) = self.update_metrics().await {
            tracing::debug!(
                operation = "measure",
                cause = causes(&error),
                "cannot update metrics; keeping the last values"
            );
        }
    }

    async fn update_metrics(&self) -> Result<(), LedgerError> {
        let (ledger, registries) = (self.ledger(), &self.checked.registries);
        let levels =
            registries.iter().map(|configured| PoolLevel { registry: &configured.name, target: configured.pool });
        self.metrics.show_ledger(&ledger.counts().await?, &levels.collect::<Vec<_>>());
        for configured in registries {
            let name = &configured.name;
            self.metrics.show_unadopted(name, ledger.oldest_unadopted(name).await?, self.worker.sources.now());
            self.metrics.show_waiting(name, &ledger.work(name).await?);
            self.metrics.show_failing(name, self.failing.has(name));
        }
        let mut open = Vec::new();
        for rotation in ledger.rotations().await?.into_iter().filter(|rotation| !rotation.phase.is_final()) {
            let counts = ledger.rotation_counts(&rotation).await?;
            open.push(OpenRotation { registry: rotation.registry, phase: rotation.phase, counts });
        }
        self.metrics.show_rotations(&open);
        Ok(())
    }

    /// Advances the rotations.
    async fn rotate(&self) {
        for registry in self.checked.registries.iter().map(|configured| &configured.name) {
            match self.worker.rotate(registry).await {
                Ok(advanced) if advanced == Advanced::default() => {}
                Ok(Advanced { begun, ended, .. }) => {
                    tracing::info!(operation = "rotate", %registry, begun, ended, "rotation advanced");
                }
                Err(error) => {
                    tracing::warn!(operation = "rotate", %registry, cause = causes(&error), "cannot advance; retrying");
                }
            }
        }
    }

    /// Seals passwords anew whose key is not the first, until an old key can be withdrawn.
    async fn reseal(&self) {
        match self.ledger().rekey().await {
            Ok(done) => {
                self.metrics.show_old_keys(u64::try_from(done.unopened.len()).unwrap_or(u64::MAX));
                for credential in &done.unopened {
                    tracing::warn!(operation = "rekey", %credential, "its password cannot be opened: replace it");
                }
                if done.resealed > 0 || !done.unopened.is_empty() {
                    let (resealed, unopened) = (done.resealed, done.unopened.len());
                    tracing::info!(operation = "rekey", resealed, unopened, "passwords sealed with the first key");
                }
            }
            Err(error) => tracing::warn!(operation = "rekey", cause = causes(&error), "cannot seal anew; retrying"),
        }
    }
}
