//! A running API: listeners, schema migration, periodic maintenance, readiness, shutdown.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use daemon::certificates::Certificates;
use daemon::environment::Environment;
use daemon::log::causes;
use daemon::passes::{every, ticks};
use daemon::probes::Probes;
use daemon::readiness::{Readiness, ReadinessSender};
use daemon::reload::Files;
use daemon::serve::{self, Endpoint, ListenError, Listener, ServeOptions};
use database::migrate_until_applied;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::audit::Chain;
use crate::entity;
use crate::http::auth::Authentication;
use crate::http::jwt::Issuers;
use crate::http::proxies::Proxies;
use crate::http::streams::Streams;
use crate::http::{Api, Limits, Parts, router};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::openapi;
use crate::rekey::{self, Rekeyed};
use crate::reload::Source;
use crate::restore;
use crate::service::Service;
use crate::settings::{Settings, Tls, table};
use crate::spec_schema::{self, SpecSchemas};
use crate::store::{Store, StoreError};

/// Maximum delay of the first requests during the initial migration. Later ones are answered as unavailable.
const FIRST_MIGRATION: Duration = Duration::from_secs(2);
/// Maximum time to close the database connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time of one maintenance pass: a statement whose response was lost must not end maintenance.
const MAINTENANCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of readiness checks for each that writes.
const PASSES_PER_WRITE: u64 = 5;
/// Interval of the passes that remove old changes and tombstones.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of the metrics about the store.
const MEASURE_INTERVAL: Duration = Duration::from_secs(15);
/// Interval of the passes that encrypt pull secrets anew.
const RESEAL_INTERVAL: Duration = Duration::from_mins(10);

/// Identification of a build.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Version of the build.
    pub version: &'static str,
    /// Time of the build.
    pub time: &'static str,
}

/// A server whose listeners are bound and that serves nothing yet.
#[derive(Debug)]
pub struct Server {
    api: Listener,
    probes: Probes,
    parts: ServerParts,
}

#[derive(Debug)]
struct ServerParts {
    settings: Settings,
    api: Api,
    store: Store,
    metrics: Metrics,
    serve_options: ServeOptions,
    readiness: ReadinessSender,
    /// Ends change streams when shutdown begins.
    closing: CancellationToken,
    /// The source of grants and keys that are replaced, and its files; `None` keeps those of the start.
    source: Option<(Source, Files)>,
}

/// Errors that prevent a server from starting. Each names the setting and no value.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Invalid settings, one message per fault.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl Server {
    /// Checks the settings and binds the listeners. The database may be unavailable.
    pub async fn prepare(settings: Settings, environment: &impl Environment, build: Build) -> Result<Self, StartError> {
        let fault = |fault: String| StartError::Settings(vec![fault]);
        let registry = settings.registry().map_err(StartError::Settings)?;
        for note in &settings.notes.0 {
            tracing::warn!(operation = "start", "{note}");
        }
        let document =
            spec_schema::document(settings.server.openapi_schema_path.as_deref(), &registry).map_err(fault)?;
        let schemas = SpecSchemas::new(&registry, document.as_ref()).map_err(StartError::Settings)?;
        let authentication = authentication(&settings, &registry)?;
        let mut metered = Registry::default();
        let serve_options = serve_options(&settings, &Certificates::register(&mut metered))?;
        let source = settings.database.source(environment).map_err(fault)?;
        let keyring = settings.keyring().map_err(fault)?;
        let store = Store::open(&source, settings.database.pool.into()).map_err(|error| fault(error.to_string()))?;
        let openapi = openapi::document(&registry, build.version).to_string();
        let service = Service::new(store.clone(), registry, schemas, keyring).map_err(fault)?;
        let metrics = Metrics::register(&mut metered, build.version, store.database().meter());
        let closing = CancellationToken::new();
        let api = Api::new(Parts {
            service,
            authentication,
            audit: Chain::new(),
            metrics: metrics.clone(),
            openapi,
            version: build.version,
            build_time: build.time,
            limits: limits(&settings),
            streams: Streams::new(settings.changes.max_streams, settings.changes.max_streams_per_identity),
            stop: closing.clone(),
        });
        let readiness = ReadinessSender::not_ready("Application is not ready");
        let listener = serve::listen(&endpoint("server", "the API", settings.host(), settings.server.port)).await?;
        let health = endpoint("health", "probes", &settings.health.host, settings.health.port);
        let scraped = endpoint("metrics", "metrics", &settings.metrics.host, settings.metrics.port);
        let probes = Probes::listen(&health, &scraped, metered, readiness.clone()).await?;
        let parts = ServerParts { settings, api, store, metrics, serve_options, readiness, closing, source: None };
        Ok(Self { api: listener, probes, parts })
    }

    /// Replaces grants and encryption keys whenever this source has changed; the server's settings were read from these
    /// versions of its files.
    #[must_use]
    pub fn reloading(mut self, source: Source, files: Files) -> Self {
        self.parts.source = Some((source, files));
        self
    }

    /// Bound address of the API.
    pub fn address(&self) -> SocketAddr {
        self.api.address()
    }

    /// Bound address of the health listener.
    pub fn health_address(&self) -> SocketAddr {
        self.probes.health_address()
    }

    /// Bound address of the metrics listener.
    pub fn metrics_address(&self) -> SocketAddr {
        self.probes.metrics_address()
    }

    /// Serves until `stop`. Shutdown order: readiness, change streams and open requests, database connections, probes.
    /// Fails only on a database that this version cannot use.
    pub async fn run(self, stop: CancellationToken) -> Result<(), StoreError> {
        let Self { api, probes, parts } = self;
        let audited = parts.api.begin_audit();
        // The first requests wait for a short migration instead of failing.
        let prepared = tokio::time::timeout(FIRST_MIGRATION, migrate(&parts));
        let prepared = tokio::select! {
            () = stop.cancelled() => Ok(Ok(())),
            prepared = prepared => prepared,
        };
        if let Ok(Err(unusable)) = prepared {
            return Err(unusable);
        }
        let serving = async {
            tokio::select! {
                () = stop.cancelled() => Ok(()),
                failed = maintain(&parts) => failed,
            }
        };
        let api_stop = CancellationToken::new();
        let answering = api.serve(router(parts.api.clone()), parts.serve_options.clone(), api_stop.clone());
        let whole = async {
            let ((), ended) = tokio::join!(answering, async {
                let ended = Box::pin(serving).await;
                parts.readiness.set(Readiness::ShuttingDown);
                tracing::info!(operation = "shutdown", "shutting down: draining open requests");
                parts.closing.cancel();
                api_stop.cancel();
                ended
            });
            drop(audited);
            // A connection that was cut off may never close.
            let _closed_or_cut = tokio::time::timeout(CLOSE_TIMEOUT, parts.store.database().close()).await;
            ended
        };
        Box::pin(probes.serve_during(stop.clone(), whole)).await
    }
}

/// Migrates, then maintains readiness, retention and metrics, for as long as it is polled.
async fn maintain(parts: &ServerParts) -> Result<(), StoreError> {
    if !parts.store.is_usable() {
        migrate(parts).await?;
    }
    let reloading = async {
        if let Some((source, files)) = &parts.source {
            source.follow(parts.settings.clone(), files.clone(), &parts.api, &parts.metrics).await;
        }
    };
    let measure = every(MEASURE_INTERVAL, || measure(parts));
    let (readiness, prune) = (watch_readiness(parts), prune_changes(parts));
    let checkpoints = parts.store.database().make_checkpoints();
    tokio::join!(readiness, prune, measure, reseal(parts), parts.store.follow(), checkpoints, reloading);
    Ok(())
}

/// Migrates the schema. Waits for the database for as long as it takes.
async fn migrate(parts: &ServerParts) -> Result<(), StoreError> {
    let lock_timeout = parts.settings.database.pool.advisory_lock_timeout;
    let migrate = || parts.store.migrate(lock_timeout, Timestamp::now());
    let attempt = || async { Ok::<_, StoreError>((migrate().await?, ())) };
    let unavailable = || parts.readiness.set(Readiness::NotReady("Database connection not available".to_owned()));
    migrate_until_applied(lock_timeout, attempt, unavailable).await?;
    if let Ok(keys) = rekey::keys_in_use(&parts.store).await
        && let Some(missing) = rekey::missing(&keys, parts.api.keyring().as_deref())
    {
        return Err(StoreError::Schema(missing.to_string()));
    }
    if parts.store.is_restoring().await.unwrap_or_default() {
        return Err(StoreError::Schema(restore::UNFINISHED.to_owned()));
    }
    Ok(())
}

async fn watch_readiness(parts: &ServerParts) {
    let passes = AtomicU64::new(0);
    let check = || async {
        let is_unwritable = parts.metrics.unwritable.get() != 0 || parts.store.database().is_full();
        let writes = is_unwritable || passes.fetch_add(1, Ordering::Relaxed).is_multiple_of(PASSES_PER_WRITE);
        let timeout = parts.settings.health.db_ping_timeout;
        match tokio::time::timeout(timeout, parts.store.database().ping()).await {
            Ok(Ok(())) if writes => probe_write(parts).await,
            Ok(Ok(())) => Readiness::Ready,
            Ok(Err(_)) => Readiness::NotReady("database unavailable".to_owned()),
            Err(_elapsed) => Readiness::NotReady("database ping timeout".to_owned()),
        }
    };
    parts.readiness.poll(Duration::from_secs(1), check).await;
}

/// Probes the database by a write, and logs when it ceases or begins to accept writes.
async fn probe_write(parts: &ServerParts) -> Readiness {
    let timeout = parts.settings.health.db_ping_timeout;
    let cause =
        match tokio::time::timeout(timeout, parts.store.database().probe(Timestamp::now().as_microsecond())).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(causes(&error)),
            Err(_elapsed) => Some("the write timed out".to_owned()),
        };
    let was_unwritable = parts.metrics.unwritable.set(i64::from(cause.is_some())) != 0;
    match cause {
        None => {
            if was_unwritable {
                tracing::info!(operation = "probe", "the database accepts writes again");
            }
            Readiness::Ready
        }
        Some(cause) => {
            if !was_unwritable {
                tracing::error!(operation = "probe", cause, "the database refuses writes; is its disk full?");
            }
            Readiness::NotReady("database cannot be written".to_owned())
        }
    }
}

async fn prune_changes(parts: &ServerParts) {
    let mut failed = false;
    let mut ticks = ticks(PRUNE_INTERVAL);
    loop {
        ticks.tick().await;
        // The next pass prunes what this one could not.
        let pruning = prune(parts, Timestamp::now());
        let failure = match tokio::time::timeout(MAINTENANCE_TIMEOUT, pruning).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(causes(&error)),
            Err(_elapsed) => Some("timed out".to_owned()),
        };
        if let (Some(cause), false) = (&failure, failed) {
            tracing::warn!(operation = "prune", cause, "cannot remove old changes and tombstones; retrying");
        }
        failed = failure.is_some();
    }
}

/// Removes changes and tombstones beyond their retention.
async fn prune(parts: &ServerParts, now: Timestamp) -> Result<(), StoreError> {
    parts.store.prune(parts.settings.retention(), now).await?;
    let oldest = now.checked_sub(parts.settings.tombstones.retention).unwrap_or(Timestamp::MIN);
    parts.store.prune_tombstones(oldest).await.map(drop)
}

/// Encrypts pull secrets anew whose key is not the first, until an old key can be withdrawn.
async fn reseal(parts: &ServerParts) {
    let mut replaced = parts.api.service().keyring_changes();
    let mut tick = ticks(RESEAL_INTERVAL);
    loop {
        tokio::select! {
            _now = tick.tick() => {}
            Ok(()) = replaced.changed() => {}
        }
        let Some(keyring) = parts.api.keyring() else { continue };
        match rekey::rekey(&parts.store, &keyring).await {
            Ok(Rekeyed { resealed, unopened }) if resealed > 0 || !unopened.is_empty() => {
                let unopened = unopened.join(",");
                tracing::info!(operation = "rekey", resealed, unopened, "pull secrets encrypted with the first key");
            }
            Ok(_nothing) => {}
            // The next pass goes on.
            Err(error) => tracing::warn!(operation = "rekey", cause = causes(&error), "cannot encrypt anew; retrying"),
        }
    }
}

async fn measure(parts: &ServerParts) {
    let (open, used) = parts.store.database().connections();
    parts.metrics.connections_open.set(i64::from(open));
    parts.metrics.connections_in_use.set(i64::from(used));
    let threshold = parts.settings.metrics.reconciliation_stuck_threshold;
    let pending = parts.store.pending(Timestamp::now(), threshold);
    if let Ok(Ok(keys)) = tokio::time::timeout(MAINTENANCE_TIMEOUT, rekey::keys_in_use(&parts.store)).await {
        let first = parts.api.keyring().and_then(|keyring| keyring.first().map(str::to_owned));
        parts.metrics.set_keys(&keys, first.as_deref());
    }
    if let Ok(Ok(pending)) = tokio::time::timeout(MAINTENANCE_TIMEOUT, pending).await {
        parts.metrics.set_pending(&pending);
    }
}

fn authentication(settings: &Settings, registry: &entity::Registry) -> Result<Authentication, StartError> {
    let fault = |fault: String| StartError::Settings(vec![fault]);
    let issuers = settings.server.jwt.enabled.then(|| Issuers::new(settings.server.jwt.configs.clone()));
    Ok(Authentication {
        issuers: issuers.transpose().map_err(StartError::Settings)?,
        grants: Live::new(settings.grants(registry).map_err(StartError::Settings)?),
        tenants: settings.tenants(),
        proxies: Proxies::new(&settings.server.proxies).map_err(fault)?,
        reader_token: settings.reader_token().map_err(fault)?,
    })
}

fn serve_options(settings: &Settings, certificates: &Certificates) -> Result<ServeOptions, StartError> {
    let Tls { enabled, cert_file, key_file } = &settings.server.tls;
    let tls = match (cert_file, key_file) {
        (Some(certificate), Some(key)) if *enabled => Some(serve::tls(certificate, key, certificates)),
        _ => None,
    };
    Ok(ServeOptions {
        head_timeout: settings.server.timeouts.read,
        drain_timeout: settings.health.shutdown_timeout,
        tls: tls.transpose().map_err(|error| StartError::Settings(vec![format!("server.tls: {error}")]))?,
    })
}

fn limits(settings: &Settings) -> Limits {
    Limits {
        body: settings.server.max_body,
        read: settings.server.timeouts.read,
        request: settings.server.timeouts.write,
        bookmark: settings.changes.bookmark_interval,
        stall: settings.changes.stall_timeout,
    }
}

fn endpoint<'a>(section: &str, purpose: &'static str, host: &'a str, port: u16) -> Endpoint<'a> {
    Endpoint::new(&table::TABLE, section, purpose, host, port)
}
