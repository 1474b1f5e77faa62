//! A server for one test, on SQLite, and resources of each kind on it.

use http::Method;
use hyperfleet_api::server::Build;
use hyperfleet_api::store::StoreError;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::api::http_client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server;

/// The path at which resources of each kind are created.
pub(crate) const KINDS: &[(&str, &str)] = &[
    ("Cluster", "/api/hyperfleet/v1/clusters"),
    ("NodePool", "/api/hyperfleet/v1/clusters/cluster-1/nodepools"),
    ("Channel", "/api/hyperfleet/v1/channels"),
    ("Version", "/api/hyperfleet/v1/channels/channel-1/versions"),
    ("WifConfig", "/api/hyperfleet/v1/wifconfigs"),
];

/// A running server.
pub(crate) struct Rig {
    client: reqwest::Client,
    url: String,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), StoreError>>,
    _folder: TempDir,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("hyperfleet.db");
        let build = Build { version: hyperfleet_api::openapi::VERSION, time: "unknown" };
        let path = database.to_str().unwrap();
        let variables = [("HYPERFLEET_SERVER_HOST", "127.0.0.1"), ("HYPERFLEET_DATABASE_PATH", path)];
        let server = server::prepare(&variables, build).await.unwrap();
        let url = format!("http://{}", server.address());
        let ready = format!("http://{}/readyz", server.health_address());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(stop.clone()));
        let client = http_client();
        while !client.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()) {
            tokio::task::yield_now().await;
        }
        Self { client, url, stop, serving, _folder: folder }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let mut request = self.client.request(method, self.url(path));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, body: response.bytes().await.unwrap().to_vec() }
    }

    /// The document that is served.
    pub(crate) async fn document(&self) -> Value {
        self.ask(Method::GET, "/api/hyperfleet/v1/openapi", None).await.json()
    }

    /// Creates `cluster-1` and so on, up to that number of each kind.
    pub(crate) async fn create(&self, count: usize) {
        for number in 1..=count {
            for (kind, path) in KINDS {
                let id = format!("{}-{number}", kind.to_lowercase());
                let body = json!({ "id": id, "kind": kind, "name": id, "spec": { "count": number } });
                let answer = self.ask(Method::POST, path, Some(&body)).await;
                assert_eq!(answer.status, 201, "{}", answer.text());
            }
        }
    }

    /// An open stream of lines.
    pub(crate) async fn lines(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    pub(crate) async fn end(self) {
        // The server waits for open connections.
        drop(self.client);
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
