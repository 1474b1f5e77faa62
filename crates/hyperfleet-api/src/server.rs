//! A running API: its parts put together, its listeners, its housekeeping, its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use daemon::environment::Environment;
use daemon::log::causes;
use daemon::probes::{self, Readiness, ReadinessSender};
use daemon::serve::{self, Listener, Manners};
use jiff::Timestamp;
use prometheus_client::registry::Registry as Metered;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::http::auth::Authentication;
use crate::http::jwt::Issuers;
use crate::http::{Api, Limits, Parts, router};
use crate::metrics::Metrics;
use crate::openapi;
use crate::service::Service;
use crate::settings::Settings;
use crate::spec_schema::SpecSchemas;
use crate::store::{Store, StoreError};

/// Requests wait so long for the first migration; after that they are answered as unavailable.
const FIRST_MIGRATION: Duration = Duration::from_secs(2);
/// Connections have so long to say goodbye.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// One round of housekeeping takes no longer: a statement whose answer was lost must not end it for good.
const HOUSEKEEPING_TIMEOUT: Duration = Duration::from_secs(30);

/// What a build calls itself.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Its version.
    pub version: &'static str,
    /// When it was built.
    pub time: &'static str,
}

/// A server whose addresses are taken and that answers nothing yet.
#[derive(Debug)]
pub struct Server {
    api: Listener,
    health: Listener,
    metrics: Listener,
    parts: ServerParts,
}

#[derive(Debug)]
struct ServerParts {
    settings: Settings,
    api: Api,
    store: Store,
    metered: Arc<Metered>,
    metrics: Metrics,
    manners: Manners,
    readiness: ReadinessSender,
    /// Ends streams when the server begins to stop.
    closing: CancellationToken,
}

/// Why a server does not start; every fault has its place and no value.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings are wrong.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
    /// An address is taken or not ours.
    #[error("cannot listen at {what}.host and {what}.port: {kind}")]
    Listen {
        /// Which of the listeners.
        what: &'static str,
        /// Why not.
        kind: io::ErrorKind,
    },
}

impl Server {
    /// Puts a server together and takes its addresses.
    pub async fn prepare(settings: Settings, environment: &impl Environment, build: Build) -> Result<Self, StartError> {
        let fault = |fault: String| StartError::Settings(vec![fault]);
        let registry = settings.registry().map_err(StartError::Settings)?;
        let document = schema_document(&settings).map_err(fault)?;
        let schemas = SpecSchemas::new(&registry, document.as_ref()).map_err(StartError::Settings)?;
        let authentication = authentication(&settings)?;
        let manners = manners(&settings)?;
        let source = settings.source(environment).map_err(fault)?;
        let keyring = settings.keyring().map_err(fault)?;
        let store = Store::open(&source, settings.pool()).map_err(|error| fault(error.to_string()))?;
        let openapi = openapi::document(&registry, build.version).to_string();
        let service = Service::new(store.clone(), registry, schemas, keyring).map_err(fault)?;
        let mut metered = Metered::default();
        let metrics = Metrics::register(&mut metered, build.version, store.database().meter());
        let closing = CancellationToken::new();
        let api = Api::new(Parts {
            service,
            authentication,
            metrics: metrics.clone(),
            openapi,
            version: build.version,
            build_time: build.time,
            limits: limits(&settings),
            stop: closing.clone(),
        });
        let (readiness, _) = watch::channel(Readiness::NotReady("Application is not ready".to_owned()));
        Ok(Self {
            api: listen("server", &settings.server.host, settings.server.port).await?,
            health: listen("health", &settings.health.host, settings.health.port).await?,
            metrics: listen("metrics", &settings.metrics.host, settings.metrics.port).await?,
            parts: ServerParts {
                settings,
                api,
                store,
                metered: Arc::new(metered),
                metrics,
                manners,
                readiness,
                closing,
            },
        })
    }

    /// Where the API listens.
    pub fn address(&self) -> SocketAddr {
        self.api.address()
    }

    /// Where probes are answered.
    pub fn health_address(&self) -> SocketAddr {
        self.health.address()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics.address()
    }

    /// Serves until `stop`: readiness goes first, then open requests end, then connections. Fails only where the database
    /// is not one that this program can use.
    pub async fn run(self, stop: CancellationToken) -> Result<(), StoreError> {
        let Self { api, health, metrics, parts } = self;
        let probes_stop = CancellationToken::new();
        let plain = Manners { tls: None, drain_timeout: Duration::from_secs(1), ..parts.manners.clone() };
        let health_router = probes::health(parts.readiness.subscribe());
        let metrics_router = probes::metrics(Arc::clone(&parts.metered));
        let probes = async {
            tokio::join!(
                health.serve(health_router, plain.clone(), probes_stop.clone()),
                metrics.serve(metrics_router, plain.clone(), probes_stop.clone()),
            )
        };
        // The first requests need not be turned away while a database that is there is being prepared.
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
                failed = keep_house(&parts) => failed,
            }
        };
        let api_stop = CancellationToken::new();
        let answering = api.serve(router(parts.api.clone()), parts.manners.clone(), api_stop.clone());
        let whole = async {
            let ((), ended) = tokio::join!(answering, async {
                let ended = serving.await;
                parts.readiness.send_replace(Readiness::ShuttingDown);
                tracing::info!(operation = "shutdown", "shutting down: open requests may end");
                parts.closing.cancel();
                api_stop.cancel();
                ended
            });
            // A connection that is cut off does not know it; nobody waits for it.
            let _closed_or_cut = tokio::time::timeout(CLOSE_TIMEOUT, parts.store.database().close()).await;
            probes_stop.cancel();
            ended
        };
        tokio::join!(probes, whole).1
    }
}

/// Migrates, then watches over readiness, retention and metrics, for as long as it is polled.
async fn keep_house(parts: &ServerParts) -> Result<(), StoreError> {
    if !parts.store.is_usable() {
        migrate(parts).await?;
    }
    tokio::join!(watch_readiness(parts), forget_changes(parts), measure(parts));
    Ok(())
}

/// Brings the schema up to date, however long the database takes to be there.
async fn migrate(parts: &ServerParts) -> Result<(), StoreError> {
    let timeout = parts.settings.database.pool.advisory_lock_timeout;
    let mut wait = interval(Duration::from_secs(1));
    wait.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        wait.tick().await;
        let migration = parts.store.migrate(timeout, Timestamp::now());
        let Ok(migrated) = tokio::time::timeout(timeout + HOUSEKEEPING_TIMEOUT, migration).await else {
            tracing::warn!(operation = "migrate", "the database has not answered; trying again");
            continue;
        };
        match migrated {
            Ok(taken) => {
                if !taken.is_empty() {
                    tracing::info!(operation = "migrate", steps = taken.join(","), "brought the schema up to date");
                }
                return Ok(());
            }
            Err(error @ (StoreError::Unavailable(_) | StoreError::Contended(_))) => {
                let cause = causes(&error);
                tracing::warn!(operation = "migrate", cause, "the database is not there yet; trying again");
                parts.readiness.send_replace(Readiness::NotReady("Database connection not available".to_owned()));
            }
            Err(error) => return Err(error),
        }
    }
}

async fn watch_readiness(parts: &ServerParts) {
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let ping = tokio::time::timeout(parts.settings.health.db_ping_timeout, parts.store.ping()).await;
        let readiness = match ping {
            Ok(Ok(())) => Readiness::Ready,
            Ok(Err(_)) => Readiness::NotReady("database unavailable".to_owned()),
            Err(_elapsed) => Readiness::NotReady("database ping timeout".to_owned()),
        };
        parts.readiness.send_if_modified(|before| {
            let changed = *before != readiness;
            if changed {
                tracing::info!(operation = "readiness", readiness = format!("{readiness:?}"), "readiness has changed");
                *before = readiness;
            }
            changed
        });
    }
}

async fn forget_changes(parts: &ServerParts) {
    let mut tick = interval(Duration::from_secs(10));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        // An outage is told by readiness; what is not forgotten now is forgotten later.
        let forgetting = parts.store.prune(parts.settings.retention(), Timestamp::now());
        let _later = tokio::time::timeout(HOUSEKEEPING_TIMEOUT, forgetting).await;
    }
}

async fn measure(parts: &ServerParts) {
    let mut tick = interval(Duration::from_secs(15));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (open, used) = parts.store.database().connections();
        parts.metrics.connections_open.set(i64::from(open));
        parts.metrics.connections_in_use.set(i64::from(used));
        let threshold = parts.settings.metrics.reconciliation_stuck_threshold;
        let pending = parts.store.pending(Timestamp::now(), threshold);
        if let Ok(Ok(pending)) = tokio::time::timeout(HOUSEKEEPING_TIMEOUT, pending).await {
            parts.metrics.set_pending(&pending);
        }
    }
}

fn authentication(settings: &Settings) -> Result<Authentication, StartError> {
    let issuers = settings.server.jwt.enabled.then(|| Issuers::new(settings.server.jwt.configs.clone()));
    Ok(Authentication {
        issuers: issuers.transpose().map_err(StartError::Settings)?,
        tenancy: settings.tenancy(),
        pull_secret_readers: settings.pull_secret.readers.clone(),
        pull_secret_token: settings.reader_token().map_err(|fault| StartError::Settings(vec![fault]))?,
    })
}

fn manners(settings: &Settings) -> Result<Manners, StartError> {
    let tls = match (&settings.server.tls.cert_file, &settings.server.tls.key_file) {
        (Some(certificate), Some(key)) => Some(serve::tls(certificate, key)),
        _ => None,
    };
    Ok(Manners {
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
    }
}

async fn listen(what: &'static str, host: &str, port: u16) -> Result<Listener, StartError> {
    serve::listen(host, port).await.map_err(|error| StartError::Listen { what, kind: error.kind() })
}

fn schema_document(settings: &Settings) -> Result<Option<Value>, String> {
    let Some(path) = &settings.server.openapi_schema_path else { return Ok(None) };
    let fault = |what: &str| format!("server.openapi_schema_path: {what}");
    let text = std::fs::read_to_string(path).map_err(|error| fault(&format!("cannot be read: {}", error.kind())))?;
    serde_saphyr::from_str(&text).map(Some).map_err(|_no_yaml| fault("is neither JSON nor YAML"))
}
