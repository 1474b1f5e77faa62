//! The HyperFleet API in this process, and the requests of users and other adapters.

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_api::server::{Build, Server};
use hyperfleet_client::{
    Client, Generation, NewCondition, NewReport, NewResource, Patch, Report, Reported, Resource, Status, TokenSettings,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Returns a pull secret whose content is searched for in logs and objects.
pub(crate) fn pull_secret(content: &str) -> Value {
    // `user:` and a password, as base64.
    let auth = match content {
        "one" => "dXNlcjpIdW50ZXIyLW9uZQ==",
        _ => "dXNlcjpIdW50ZXIyLXR3bw==",
    };
    json!({"auths": {"registry.example.com": {"auth": auth}}})
}

/// The common prefix of the credentials above.
pub(crate) const CREDENTIAL: &str = "dXNlcjpIdW50ZXIy";

/// An API server that can be stopped and restarted.
pub(crate) struct Api {
    folder: TempDir,
    pub(crate) address: String,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Api {
    pub(crate) async fn start() -> Self {
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
        ]
        .into();
        let settings = hyperfleet_api::settings::Settings::load(BTreeMap::new(), &environment).unwrap();
        let server = Server::prepare(settings, &environment, Build { version: "test", time: "now" }).await.unwrap();
        let (address, stop) = (server.address().to_string(), CancellationToken::new());
        let stopping = stop.clone();
        let running = tokio::spawn(async move { Box::pin(server.run(stopping)).await.unwrap() });
        Self { folder, address, stop, running }
    }

    /// Stops the server; the returned future restarts it.
    pub(crate) async fn stop(self) -> impl Future<Output = Self> {
        self.stop.cancel();
        self.running.await.unwrap();
        let (folder, port) = (self.folder, self.address.rsplit(':').next().unwrap().to_owned());
        async move { Self::start_in(folder, &port).await }
    }

    pub(crate) fn token(&self) -> TokenSettings {
        TokenSettings { path: self.folder.path().join("token"), cache_ttl: Duration::from_secs(30) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(hyperfleet_client::Settings::new(format!("http://{}", self.address).parse().unwrap())).unwrap()
    }

    pub(crate) async fn create(&self, id: &str) -> Resource {
        self.create_of(id, &json!({"data": pull_secret("one")})).await
    }

    pub(crate) async fn create_of(&self, id: &str, secret: &Value) -> Resource {
        let new = NewResource {
            id: Some(id.to_owned()),
            kind: "Cluster".to_owned(),
            name: id.to_owned(),
            spec: spec(secret),
            labels: BTreeMap::new(),
            references: BTreeMap::new(),
        };
        self.client().within(&budget()).create("clusters", &new).await.unwrap()
    }

    pub(crate) async fn rotate(&self, id: &str) -> Resource {
        let patch = Patch { spec: Some(spec(&json!({"data": pull_secret("two")}))), ..Patch::default() };
        self.client().within(&budget()).patch("clusters", id, &patch, None).await.unwrap()
    }

    pub(crate) async fn delete(&self, id: &str) {
        self.client().within(&budget()).delete("clusters", id).await.unwrap();
    }

    pub(crate) async fn get(&self, id: &str) -> Option<Resource> {
        self.client().within(&budget()).get("clusters", id).await.unwrap()
    }

    /// Reports as another adapter about generation 1.
    pub(crate) async fn report(&self, id: &str, adapter: &str, available: Status, data: Value) {
        let condition = |kind: &str, status| NewCondition {
            kind: kind.to_owned(),
            status,
            reason: None,
            message: None,
            last_transition_time: None,
        };
        let conditions = [("Available", available), ("Applied", Status::True), ("Health", Status::True)];
        let report = NewReport {
            adapter: adapter.to_owned(),
            observed_generation: Generation::FIRST,
            conditions: conditions.map(|(kind, status)| condition(kind, status)).to_vec(),
            data: data.as_object().cloned().unwrap_or_default(),
            observed_time: None,
            metadata: None,
        };
        let reported = self.client().within(&budget()).report("clusters", id, &report).await.unwrap();
        assert!(matches!(reported, Reported::Stored(_)), "{reported:?}");
    }

    /// Reports `Finalized` as another adapter.
    pub(crate) async fn report_finalized(&self, id: &str, adapter: &str, generation: Generation) {
        let condition = |kind: &str, status| NewCondition {
            kind: kind.to_owned(),
            status,
            reason: None,
            message: None,
            last_transition_time: None,
        };
        let conditions = [("Available", Status::False), ("Applied", Status::False), ("Health", Status::True)];
        let conditions = conditions.into_iter().chain([("Finalized", Status::True)]);
        let report = NewReport {
            adapter: adapter.to_owned(),
            observed_generation: generation,
            conditions: conditions.map(|(kind, status)| condition(kind, status)).collect(),
            data: serde_json::Map::new(),
            observed_time: None,
            metadata: None,
        };
        self.client().within(&budget()).report("clusters", id, &report).await.unwrap();
    }

    /// Reports as the adapters that the pull secret depends on.
    pub(crate) async fn make_ready(&self, id: &str, namespace: &str) {
        for adapter in ["validation", "dns"] {
            self.report(id, adapter, Status::True, json!({})).await;
        }
        self.report(id, "placement", Status::True, json!({"namespace": namespace})).await;
    }

    /// Returns the adapter's last report.
    pub(crate) async fn last_report(&self, id: &str) -> Option<Report> {
        let all = self.client().within(&budget()).statuses("clusters", id).await.unwrap();
        all.into_iter().find(|item| item.adapter == "pullsecret")
    }
}

fn spec(secret: &Value) -> serde_json::Map<String, Value> {
    let spec = json!({"provider": "gcp", "gcp": {"projectId": "redhat-prod-1"}, "pullSecret": secret});
    spec.as_object().unwrap().clone()
}

pub(crate) fn budget() -> Budget {
    Budget::new(Duration::from_secs(30), CancellationToken::new())
}
