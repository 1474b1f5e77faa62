//! A fleet in a database of its own, and its pages.

use std::time::Duration;

use database::sealed::{DigestKey, KeyBytes, Keyring};
use database::{PoolSettings, Source};
use hyperfleet_api::authorization::{Identity, Scope};
use hyperfleet_api::decide::body;
use hyperfleet_api::decide::change::RequestInfo;
use hyperfleet_api::decide::report;
use hyperfleet_api::entity::Registry;
use hyperfleet_api::page::{self, OverviewRequest};
use hyperfleet_api::resource::Resource;
use hyperfleet_api::sealed::DIGEST_LABEL;
use hyperfleet_api::server::Build;
use hyperfleet_api::service::{Address, Caller, Service};
use hyperfleet_api::spec_schema::SpecSchemas;
use hyperfleet_api::store::Store;
use hyperfleet_api::tenancy::Reach;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::document::Node;
use crate::server;

/// A fleet at a fixed time.
pub(crate) struct Fleet {
    pub(crate) service: Service,
    pub(crate) now: Timestamp,
    folder: TempDir,
}

/// The API over HTTP on the same database; dropping it stops the server.
pub(crate) struct Served {
    pub(crate) base: String,
    stop: CancellationToken,
}

impl Fleet {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pool = PoolSettings {
            max_connections: 4,
            acquire_timeout: Duration::from_secs(30),
            max_lifetime: Duration::from_mins(5),
            idle_timeout: Duration::from_mins(5),
        };
        let store = Store::open(&Source::Sqlite { path: folder.path().join("fleet.db") }, pool).unwrap();
        let now = Timestamp::now();
        store.migrate(Duration::from_secs(10), now).await.unwrap();
        let keyring = Keyring::new(
            vec![KeyBytes { id: "key-1".to_owned(), bytes: vec![7; 32].into() }],
            DigestKey::Derived(DIGEST_LABEL),
        );
        Self {
            service: Service::new(store, Registry::standard(), SpecSchemas::default(), keyring).unwrap(),
            now,
            folder,
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.service.registry()
    }

    fn request(&self, seconds_ago: i64) -> RequestInfo {
        let identity = Identity { subject: "ana@example.com".to_owned(), ..Identity::default() };
        let caller = Caller { identity, reach: Reach::Unlimited, ..Caller::default() };
        RequestInfo::now(&caller, Scope::Every, self.now - seconds_ago.seconds())
    }

    /// Creates a resource of that kind, some seconds ago.
    pub(crate) async fn create(&self, kind: &str, owner: Option<&str>, body: Value, seconds_ago: i64) -> Resource {
        let mut body = body;
        body["kind"] = json!(kind);
        let creation = body::creation(body::object(body.to_string().as_bytes()).unwrap()).unwrap();
        let descriptor = self.registry().kind(kind).unwrap();
        self.service.create(descriptor, owner, creation, &self.request(seconds_ago)).await.unwrap()
    }

    pub(crate) async fn cluster(&self, name: &str, seconds_ago: i64) -> String {
        let body = json!({ "name": name, "labels": { "region": "eu" }, "spec": { "platform": { "type": "gcp" } } });
        self.create("Cluster", None, body, seconds_ago).await.id
    }

    /// Stores an adapter's report.
    pub(crate) async fn report(&self, id: &str, body: Value, seconds_ago: i64) {
        let report = report::parse(body::object(body.to_string().as_bytes()).unwrap()).unwrap();
        self.service.report(&address(id), report, &self.request(seconds_ago)).await.unwrap();
    }

    /// Changes the labels: a new generation.
    pub(crate) async fn relabel(&self, id: &str, seconds_ago: i64) {
        let patch = body::patch(body::object(br#"{"labels":{"region":"us"}}"#).unwrap()).unwrap();
        self.service.patch(&address(id), patch, None, &self.request(seconds_ago)).await.unwrap();
    }

    pub(crate) async fn delete(&self, id: &str, seconds_ago: i64) {
        self.service.delete(&address(id), &self.request(seconds_ago)).await.unwrap();
    }

    /// A reconciled cluster.
    pub(crate) async fn reconciled(&self, name: &str, seconds_ago: i64) -> String {
        let id = self.cluster(name, seconds_ago).await;
        for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
            self.report(&id, available(adapter, 1, "True", "AllIsWell", "as desired"), seconds_ago - 20).await;
        }
        id
    }

    /// A cluster whose DNS adapter fails.
    pub(crate) async fn failing(&self, name: &str, seconds_ago: i64) -> String {
        let id = self.cluster(name, seconds_ago).await;
        self.report(&id, available("validation", 1, "True", "Valid", "the spec is valid"), seconds_ago - 10).await;
        let message = "the zone eu.example.com does not exist: create it or correct spec.dns.zone";
        self.report(&id, available("dns", 1, "False", "ZoneNotFound", message), seconds_ago - 20).await;
        self.relabel(&id, seconds_ago - 40).await;
        self.report(&id, available("dns", 2, "False", "ZoneNotFound", message), seconds_ago - 60).await;
        id
    }

    /// A cluster whose deletion was requested.
    pub(crate) async fn deleting(&self, name: &str, seconds_ago: i64) -> String {
        let id = self.reconciled(name, seconds_ago).await;
        self.delete(&id, seconds_ago - 60).await;
        id
    }

    /// The overview as HTML.
    pub(crate) async fn overview_text(&self, request: &OverviewRequest<'_>) -> String {
        page::overview(&self.service, request, &Reach::Unlimited, self.now).await.unwrap()
    }

    /// The overview, parsed.
    pub(crate) async fn overview(&self, request: &OverviewRequest<'_>) -> Node {
        Node::parse(&self.overview_text(request).await)
    }

    /// A cluster's page, parsed.
    pub(crate) async fn page(&self, id: &str) -> Node {
        Node::parse(&page::resource(&self.service, &address(id), &Reach::Unlimited, false, self.now).await.unwrap())
    }

    /// Serves the fleet over HTTP.
    pub(crate) async fn serve(&self) -> Served {
        let path = self.folder.path().join("fleet.db");
        let variables = [("HYPERFLEET_DATABASE_PATH", path.to_str().unwrap())];
        let build = Build { version: "0.0.0-test", time: "1970-01-01T00:00:00Z" };
        let server = server::prepare(&variables, build).await.unwrap();
        let base = format!("http://{}", server.address());
        let stop = CancellationToken::new();
        tokio::spawn(server.run(stop.clone()));
        Served { base, stop }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The address of a resource of any kind.
pub(crate) fn address(id: &str) -> Address<'_> {
    Address { descriptor: None, owner_id: None, id }
}

/// An adapter's report.
pub(crate) fn available(adapter: &str, generation: i64, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "adapter": adapter,
        "observed_generation": generation,
        "conditions": [
            { "type": "Available", "status": status, "reason": reason, "message": message },
            { "type": "Applied", "status": "True", "reason": "JobApplied", "message": "the Job exists" },
            { "type": "Health", "status": "True", "reason": "Healthy", "message": "the adapter is healthy" },
        ],
        "data": { "job": format!("{adapter}-1"), "attempts": 1 },
        "metadata": { "job_name": format!("{adapter}-1"), "attempt": 1 },
    })
}
