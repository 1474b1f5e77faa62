//! The whole service without a listener, on SQLite.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use database::sealed::{DigestKey, KeyBytes, Keyring};
use database::{PoolSettings, Source};
use http::Request;
use hyperfleet_api::audit::Chain;
use hyperfleet_api::entity::Registry;
use hyperfleet_api::http::auth::Authentication;
use hyperfleet_api::http::streams::Streams;
use hyperfleet_api::http::{Api, Limits, Parts, router};
use hyperfleet_api::metrics::Metrics;
use hyperfleet_api::sealed::DIGEST_LABEL;
use hyperfleet_api::service::Service;
use hyperfleet_api::spec_schema::SpecSchemas;
use hyperfleet_api::store::Store;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// A service with a cluster `cls-fuzz` and a `WifConfig` `wif-fuzz`.
pub(crate) struct Served {
    router: Router,
    _folder: tempfile::TempDir,
}

impl Served {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pool = PoolSettings {
            max_connections: 4,
            acquire_timeout: Duration::from_secs(30),
            max_lifetime: Duration::from_hours(24),
            idle_timeout: Duration::from_hours(24),
        };
        let store = Store::open(&Source::Sqlite { path: folder.path().join("fuzz.db") }, pool).unwrap();
        store.migrate(Duration::from_secs(30), jiff::Timestamp::now()).await.unwrap();
        let metrics =
            Metrics::register(&mut prometheus_client::registry::Registry::default(), "0", store.database().meter());
        let keyring = Keyring::new(
            vec![KeyBytes { id: "key".to_owned(), bytes: vec![7; 32].into() }],
            DigestKey::Derived(DIGEST_LABEL),
        );
        let api = Api::new(Parts {
            audit: Chain::new(),
            service: Service::new(store, Registry::standard(), SpecSchemas::default(), keyring).unwrap(),
            authentication: Authentication::default(),
            metrics,
            openapi: String::new(),
            version: "0",
            build_time: "0",
            limits: Limits::default(),
            streams: Arc::clone(&Streams::new(1, 1)),
            stop: CancellationToken::new(),
        });
        let served = Self { router: router(api), _folder: folder };
        for (path, kind, id) in [("/wifconfigs", "WifConfig", "wif-fuzz"), ("/clusters", "Cluster", "cls-fuzz")] {
            let body = serde_json::json!({ "kind": kind, "id": id, "name": id, "spec": {} });
            let (status, answer) = served.ask("POST", path, body.to_string().into_bytes()).await;
            assert_eq!(status, 201, "{answer}");
        }
        served
    }

    /// Asks for a path below the base; returns status and text.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Vec<u8>) -> (u16, String) {
        let request = Request::builder().method(method).uri(format!("/api/hyperfleet/v1{path}")).body(Body::from(body));
        let response = self.router.clone().oneshot(request.unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }
}
