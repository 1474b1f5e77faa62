//! Servers for tests: one that tests share, and separate ones; each on SQLite and on PostgreSQL.

pub(crate) mod answer;
pub(crate) mod database;
pub(crate) mod log;
pub(crate) mod raw;
pub(crate) mod stream;
pub(crate) mod tokens;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};

use hyperfleet_api::server::{Build, Server};
use reqwest::Method;
use serde_json::Value;
use testkit::api::http_client;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server;

pub(crate) use self::database::{Database, Kind};
pub(crate) use answer::Answer;

/// The base path of HyperFleet's API.
pub(crate) const BASE: &str = "/api/hyperfleet/v1";

/// The runtime of all servers and tests, since a shared server outlives the test that started it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    log::capture();
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
});

/// The shared server of each kind of database. Concurrent tests share it; the last one stops it.
static SHARED: Mutex<BTreeMap<Kind, Weak<Rig>>> = Mutex::new(BTreeMap::new());

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A running server and its client.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    pub(crate) health: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) client: reqwest::Client,
    pub(crate) database: Arc<Database>,
    /// The folder of the server's configuration.
    folder: tempfile::TempDir,
    stop: CancellationToken,
    running: Mutex<Option<JoinHandle<()>>>,
}

/// Runs each of the module's test functions once per database: `shared` ones on one server with default settings, `own` ones
/// with the kind of database, so that they start servers with other settings.
macro_rules! rules {
    (shared: $($shared:ident)*; own: $($own:ident)*;) => {
        mod sqlite {
            $(#[test] fn $shared() { crate::rig::shared(crate::rig::Kind::Sqlite, |rig| crate::rig::block_on(super::$shared(rig))); })*
            $(#[test] fn $own() { crate::rig::own(crate::rig::Kind::Sqlite, |kind| crate::rig::block_on(super::$own(kind))); })*
        }
        mod postgresql {
            $(#[test] fn $shared() { crate::rig::shared(crate::rig::Kind::Postgresql, |rig| crate::rig::block_on(super::$shared(rig))); })*
            $(#[test] fn $own() { crate::rig::own(crate::rig::Kind::Postgresql, |kind| crate::rig::block_on(super::$own(kind))); })*
        }
    };
}

pub(crate) fn block_on<F: Future>(work: F) -> F::Output {
    RUNTIME.block_on(work)
}

/// Runs a test on the shared server.
pub(crate) fn shared(kind: Kind, test: impl FnOnce(&Rig)) {
    if !kind.is_available() {
        return;
    }
    let rig = {
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        shared.get(&kind).and_then(Weak::upgrade).unwrap_or_else(|| {
            let rig = Arc::new(block_on(Rig::start(kind, "")));
            shared.insert(kind, Arc::downgrade(&rig));
            rig
        })
    };
    test(&rig);
}

/// Runs a test that starts its own servers.
pub(crate) fn own(kind: Kind, test: impl FnOnce(Kind)) {
    if kind.is_available() {
        test(kind);
    }
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    // Far more than any wait takes.
    let waited = tokio::time::timeout(std::time::Duration::from_mins(1), waiting).await;
    assert!(waited.is_ok(), "waited in vain for {what}");
}

/// A name that no other test uses.
pub(crate) fn unique(stem: &str) -> String {
    format!("{stem}-{}", COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Writes a file of a test.
pub(crate) fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    daemon::file::replace(&path, content.as_ref()).unwrap();
    path
}

/// The error with which a server refuses these settings.
pub(crate) async fn refusal(kind: Kind, yaml: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(kind).await;
    match prepare(&database, folder.path(), yaml).await {
        Ok(_) => panic!("the server starts with these settings:\n{yaml}"),
        Err(faults) => faults.join("\n"),
    }
}

/// The error with which a server ends that has these settings, on that database.
pub(crate) async fn refused_start(database: &Database, yaml: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let server = prepare(database, folder.path(), yaml).await.unwrap_or_else(|faults| panic!("{faults:?}"));
    Box::pin(server.run(CancellationToken::new())).await.unwrap_err().to_string()
}

async fn running(server: Server, stop: CancellationToken) {
    Box::pin(server.run(stop)).await.unwrap();
}

async fn prepare(database: &Database, folder: &Path, yaml: &str) -> Result<Server, Vec<String>> {
    let config = file(folder, "config.yaml", yaml);
    let (variable, value) = database.setting();
    let variables = [("HYPERFLEET_CONFIG", config.to_str().unwrap()), (variable, &value)];
    server::prepare(&variables, Build { version: "1.2.3-test", time: "2026-01-31T12:00:00Z" }).await
}

// === impl Rig ===

impl Rig {
    /// A server on an empty database, with these settings.
    pub(crate) async fn start(kind: Kind, yaml: &str) -> Self {
        Self::start_on(Arc::new(Database::create(kind).await), yaml).await
    }

    /// A server on that database.
    pub(crate) async fn start_on(database: Arc<Database>, yaml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = prepare(&database, folder.path(), yaml).await.unwrap_or_else(|faults| panic!("{faults:?}"));
        let stop = CancellationToken::new();
        let client = http_client();
        let (address, health, metrics) = (server.address(), server.health_address(), server.metrics_address());
        let running = Mutex::new(Some(tokio::spawn(running(server, stop.clone()))));
        let rig = Self { address, health, metrics, client, database, folder, stop, running };
        rig.await_ready().await;
        rig
    }

    /// Waits until the readiness probe succeeds.
    async fn await_ready(&self) {
        loop {
            let answer = self.client.get(format!("http://{}/readyz", self.health)).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Replaces the server's configuration; it is read again within seconds.
    pub(crate) fn reconfigure(&self, yaml: &str) {
        file(self.folder.path(), "config.yaml", yaml);
    }

    /// True while a changed configuration cannot be used.
    pub(crate) async fn is_stale(&self) -> bool {
        let metrics = self.client.get(format!("http://{}/metrics", self.metrics)).send().await.unwrap();
        metrics.text().await.unwrap().contains("\nhyperfleet_api_configuration_stale 1\n")
    }

    /// Stops the server without waiting.
    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the server has stopped.
    pub(crate) async fn stopped(&self) {
        self.stop.cancel();
        let running = self.running.lock().unwrap().take();
        if let Some(running) = running {
            running.await.unwrap();
        }
    }

    /// The URL of a path, below the base path unless it begins with `/api`.
    pub(crate) fn url(&self, path: &str) -> String {
        let base = if path.starts_with("/api") { "" } else { BASE };
        format!("http://{}{base}{path}", self.address)
    }

    /// `GET` of a path.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), None::<Value>).await
    }

    /// A list with these parameters.
    pub(crate) async fn list(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        self.get(&format!("{path}?{}", query.finish())).await
    }

    /// A request such as `PATCH /clusters/x`, perhaps with a body.
    pub(crate) async fn ask(&self, line: &str, body: impl Into<Option<Value>>) -> Answer {
        let body = body.into().map(|body| body.to_string()).unwrap_or_default();
        self.send(line, &[], body).await
    }

    /// A request with headers and a body that need not be JSON.
    pub(crate) async fn send(&self, line: &str, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> Answer {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !matches!(method, "GET" | "HEAD") {
            request = request.header("content-type", "application/json").body(body);
        }
        Answer::of(line, request.send().await.unwrap()).await
    }

    /// Creates a resource, which must succeed.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        self.ask(&format!("POST {path}"), body).await.is(201).body()
    }

    /// Creates a cluster with a unique name, and with `more` members.
    pub(crate) async fn cluster(&self, more: Value) -> Value {
        self.create("/clusters", merged(cluster(&unique("c")), more)).await
    }

    /// Reports about a resource by PUT.
    pub(crate) async fn report(&self, path: &str, report: Value) -> Answer {
        self.ask(&format!("PUT {path}/statuses"), report).await
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
        let running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        // The server must have stopped before the database is removed.
        if let Some(running) = running {
            database::finish(async move { drop(running.await) });
        }
    }
}

/// A cluster's body.
pub(crate) fn cluster(name: &str) -> Value {
    serde_json::json!({ "kind": "Cluster", "name": name, "spec": { "region": "europe-west3" } })
}

/// An object with the members of both; those of `more` win.
pub(crate) fn merged(mut object: Value, more: Value) -> Value {
    if let Value::Object(more) = more {
        object.as_object_mut().unwrap().extend(more);
    }
    object
}

/// A resource's path in the API, below the base.
pub(crate) fn path_of(resource: &Value) -> String {
    resource["href"].as_str().unwrap().strip_prefix(BASE).unwrap().to_owned()
}

/// Now, moved by seconds, as RFC 3339 has it.
pub(crate) fn time(seconds: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).to_string()
}

/// A report with conditions in the form `Available=True Applied=True`.
pub(crate) fn report(adapter: &str, generation: i64, conditions: &str) -> Value {
    let conditions = conditions.split_whitespace().map(|condition| {
        let (kind, status) = condition.split_once('=').unwrap();
        serde_json::json!({ "type": kind, "status": status })
    });
    serde_json::json!({
        "adapter": adapter,
        "observed_generation": generation,
        "observed_time": time(0),
        "conditions": conditions.collect::<Vec<_>>(),
    })
}

/// The conditions of an adapter that has succeeded.
pub(crate) const DONE: &str = "Available=True Applied=True Health=True";
/// The conditions of an adapter that has cleaned up.
pub(crate) const FINALIZED: &str = "Available=False Applied=False Health=True Finalized=True";
