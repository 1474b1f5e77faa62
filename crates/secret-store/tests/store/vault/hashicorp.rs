//! A server with what HashiCorp's does otherwise: OpenBao behind a proxy that knows no condition for metadata, no number of
//! a metadata's version, and no detailed lists.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Request, Response};
use reqwest::Client;
use secret_store::{VaultSettings, VaultStore};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::server::OpenBao;

/// The proxy; it ends when it is dropped.
pub(crate) struct HashiCorp {
    address: SocketAddr,
    pub(crate) behind: OpenBao,
    task: JoinHandle<()>,
}

// === impl HashiCorp ===

impl HashiCorp {
    pub(crate) async fn before(behind: OpenBao) -> Self {
        let (target, http) = (behind.address.clone(), Client::new());
        let handler = async move |request: Request<Body>| forward(&http, &target, request).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        Self { address, behind, task }
    }

    pub(crate) fn settings(&self) -> VaultSettings {
        VaultSettings { address: format!("http://{}", self.address).parse().unwrap(), ..self.behind.settings() }
    }

    pub(crate) fn store(&self) -> VaultStore {
        VaultStore::connect(&self.settings()).unwrap()
    }
}

impl Drop for HashiCorp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(http: &Client, target: &str, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let uri = head.uri.to_string();
    if uri.contains("/detailed-metadata/") {
        let warning = "Invalid path for a versioned K/V secrets engine. See the API docs for the appropriate API \
            endpoints to use. If using the Vault CLI, use 'vault kv list' for this operation.";
        return answer(404, json!({"data": null, "warnings": [warning], "auth": null}).to_string());
    }
    let body = to_bytes(body, 1024 * 1024).await.unwrap();
    let body = match serde_json::from_slice::<Value>(&body) {
        Ok(mut document) => {
            document.as_object_mut().unwrap().remove("metadata_cas");
            document.to_string()
        }
        Err(_no_body) => String::new(),
    };
    let request = http.request(head.method, format!("{target}{uri}")).body(body);
    let token = head.headers.get("x-vault-token").cloned();
    let request = token.into_iter().fold(request, |request, token| request.header("x-vault-token", token));
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let Ok(mut document) = serde_json::from_str::<Value>(&text) else { return answer(status, text) };
    if let Some(data) = document.get_mut("data").and_then(Value::as_object_mut) {
        data.remove("current_metadata_version");
        data.remove("metadata_cas_required");
    }
    answer(status, document.to_string())
}

fn answer(status: u16, body: String) -> Response<Body> {
    Response::builder().status(status).header("content-type", "application/json").body(body.into()).unwrap()
}
