//! The HyperFleet API in this process, on a database of its own, and the requests of users and adapters.

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_api::server::{Build, Server};
use hyperfleet_api::settings::Settings;
use hyperfleet_client::{
    Client, Error, Generation, NewCondition, NewReport, NewResource, Patch, Report, Reported, Resource, Status,
    TokenSettings,
};
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::http::exchange;

/// An API server that can be stopped and restarted.
pub struct HyperFleetApi {
    folder: TempDir,
    pub address: String,
    metrics: String,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl HyperFleetApi {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        daemon::file::replace(&folder.path().join("token"), b"adapters-token").unwrap();
        Self::start_in(folder, "0").await
    }

    async fn start_in(folder: TempDir, port: &str) -> Self {
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (database, token) = (path("api.db"), path("token"));
        let environment: BTreeMap<&str, &str> = [
            ("HYPERFLEET_SERVER_PORT", port),
            ("HYPERFLEET_HEALTH_PORT", "0"),
            ("HYPERFLEET_METRICS_PORT", "0"),
            ("HYPERFLEET_DATABASE_PATH", &database),
            ("HYPERFLEET_PULL_SECRET_READER_TOKEN_FILE", &token),
            // A disk of a busy machine may keep the one writer for seconds.
            ("HYPERFLEET_DATABASE_POOL_ACQUIRE_TIMEOUT", "1m"),
        ]
        .into();
        let settings = Settings::load(BTreeMap::new(), &environment).unwrap();
        let server = Server::prepare(settings, &environment, Build { version: "test", time: "now" }).await.unwrap();
        let (address, stop) = (server.address().to_string(), CancellationToken::new());
        let metrics = server.metrics_address().to_string();
        let stopping = stop.clone();
        let running = tokio::spawn(async move { Box::pin(server.run(stopping)).await.unwrap() });
        Self { folder, address, metrics, stop, running }
    }

    /// Stops the server; the returned future restarts it at the same address.
    pub async fn stop(self) -> impl Future<Output = Self> {
        self.stop.cancel();
        self.running.await.unwrap();
        let (folder, port) = (self.folder, self.address.rsplit(':').next().unwrap().to_owned());
        async move { Self::start_in(folder, &port).await }
    }

    /// The metrics of the server.
    pub async fn metrics(&self) -> String {
        let reply = exchange(self.metrics.parse().unwrap(), "GET", "/metrics", "", "").await.unwrap();
        reply.body.as_str().unwrap().to_owned()
    }

    /// The token of a caller that may read pull secrets.
    pub fn token(&self) -> TokenSettings {
        TokenSettings { path: self.folder.path().join("token"), cache_ttl: Duration::from_secs(30) }
    }

    pub fn client(&self) -> Client {
        Client::new(hyperfleet_client::Settings::new(format!("http://{}", self.address).parse().unwrap())).unwrap()
    }

    /// Creates a cluster with an empty spec.
    pub async fn create(&self, id: &str) -> Resource {
        self.create_cluster(&cluster(id)).await
    }

    pub async fn create_cluster(&self, new: &NewResource) -> Resource {
        let (client, budget) = (self.client(), budget());
        patiently(async || client.within(&budget).create("clusters", new).await).await.unwrap()
    }

    pub async fn patch(&self, id: &str, spec: Value) -> Resource {
        let Value::Object(spec) = spec else { panic!("a spec is an object") };
        let patch = Patch { spec: Some(spec), ..Patch::default() };
        let (client, budget) = (self.client(), budget());
        patiently(async || client.within(&budget).patch("clusters", id, &patch, None).await).await.unwrap()
    }

    pub async fn delete(&self, id: &str) {
        let (client, budget) = (self.client(), budget());
        patiently(async || client.within(&budget).delete("clusters", id).await).await.unwrap();
    }

    pub async fn get(&self, id: &str) -> Option<Resource> {
        self.client().within(&budget()).get("clusters", id).await.unwrap()
    }

    pub async fn report(&self, id: &str, report: &NewReport) {
        let reported = self.client().within(&budget()).report("clusters", id, report).await.unwrap();
        assert!(matches!(reported, Reported::Stored(_)), "{reported:?}");
    }

    /// The last report of an adapter.
    pub async fn last_report(&self, id: &str, adapter: &str) -> Option<Report> {
        let all = self.client().within(&budget()).statuses("clusters", id).await.unwrap();
        all.into_iter().find(|item| item.adapter == adapter)
    }
}

/// Writes. On a busy machine the server may have no connection in time, and has done nothing then; it says that it can be
/// tried again.
pub async fn patiently<T>(write: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match write().await {
            Err(error) if error.status() == Some(503) => sleep(Duration::from_millis(100)).await,
            result => return result,
        }
    }
}

/// A cluster with that id and name, without spec and labels.
pub fn cluster(id: &str) -> NewResource {
    NewResource {
        id: Some(id.to_owned()),
        kind: "Cluster".to_owned(),
        name: id.to_owned(),
        spec: Map::new(),
        labels: BTreeMap::new(),
        references: BTreeMap::new(),
    }
}

/// A report of a healthy adapter that has applied its resources.
pub fn report(adapter: &str, generation: impl Into<Generation>, available: Status) -> NewReport {
    let conditions = [("Available", available), ("Applied", Status::True), ("Health", Status::True)];
    NewReport {
        adapter: adapter.to_owned(),
        observed_generation: generation.into(),
        conditions: conditions.map(|(kind, status)| condition(kind, status)).to_vec(),
        data: Map::new(),
        observed_time: None,
        metadata: None,
    }
}

/// A report of an adapter that has removed everything.
pub fn finalized_report(adapter: &str, generation: impl Into<Generation>) -> NewReport {
    let mut report = report(adapter, generation, Status::False);
    report.conditions[1].status = Status::False;
    report.conditions.push(condition("Finalized", Status::True));
    report
}

fn condition(kind: &str, status: Status) -> NewCondition {
    NewCondition { kind: kind.to_owned(), status, reason: None, message: None, last_transition_time: None }
}

/// The time that one request may take.
pub fn budget() -> Budget {
    Budget::new(Duration::from_secs(30), CancellationToken::new())
}
