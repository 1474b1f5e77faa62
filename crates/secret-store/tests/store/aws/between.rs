//! A proxy before moto, with which a test refuses requests, loses answers and hides versions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use http::{HeaderMap, Request, Response};
use reqwest::Client;
use secret_store::{AwsSettings, AwsStore};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::moto::Moto;

/// A request, as a test decides about it.
pub(super) struct Asked {
    /// Such as `PutSecretValue`.
    pub(super) operation: String,
    /// Number of requests before it.
    pub(super) before: usize,
}

/// Treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is carried out.
    Pass,
    /// It is not carried out; the answer has this code.
    Refuse(&'static str),
    /// It is carried out; the answer is that of a failing service.
    LoseAnswer,
    /// It is carried out; the answer names no versions.
    HideVersions,
    /// It is carried out; then the version that it names loses the labels of its record.
    TakeRecord,
}

/// The proxy; it ends when it is dropped.
pub(super) struct Between {
    pub(super) store: AwsStore,
    pub(super) settings: AwsSettings,
    received: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

// === impl Between ===

impl Between {
    pub(super) async fn before(
        moto: &Moto,
        decide: impl Fn(&Asked) -> Verdict + Clone + Send + Sync + 'static,
    ) -> Self {
        let (target, http) = (moto.address.clone(), Client::new());
        let received = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&received);
        let handler = async move |request: Request<Body>| {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, 1024 * 1024).await.unwrap();
            let operation = head.headers["x-amz-target"].to_str().unwrap().rsplit('.').next().unwrap().to_owned();
            let asked = Asked { operation, before: counter.fetch_add(1, Ordering::SeqCst) };
            let verdict = decide(&asked);
            if let Verdict::Refuse(code) = verdict {
                return refusal(400, code, "refused");
            }
            let answer = forward(&http, &target, &head.headers, body.clone()).await;
            match verdict {
                Verdict::LoseAnswer => refusal(500, "InternalServiceError", "lost"),
                Verdict::HideVersions => without_versions(answer).await,
                Verdict::TakeRecord => {
                    let asked: Value = serde_json::from_slice(&body).unwrap();
                    take_record(&http, &target, &head.headers, &asked).await;
                    answer
                }
                Verdict::Pass | Verdict::Refuse(_) => answer,
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        let endpoint = Some(format!("http://{address}").parse().unwrap());
        let settings = AwsSettings { endpoint, ..moto.settings() };
        let store = AwsStore::connect(&settings).await.unwrap();
        Self { store, settings, received, task }
    }

    /// Number of requests so far.
    pub(super) fn received(&self) -> usize {
        self.received.load(Ordering::SeqCst)
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A refusal in AWS's form.
pub(super) fn refusal(status: u16, code: &str, message: &str) -> Response<Body> {
    refusal_text(status, code, message).map(Body::from)
}

pub(super) fn refusal_text(status: u16, code: &str, message: &str) -> Response<String> {
    let body: Value = json!({"__type": code, "message": message});
    Response::builder()
        .status(status)
        .header("content-type", "application/x-amz-json-1.1")
        .body(body.to_string())
        .unwrap()
}

async fn without_versions(answer: Response<Body>) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let mut described: Value = serde_json::from_slice(&to_bytes(body, 1024 * 1024).await.unwrap()).unwrap();
    described.as_object_mut().unwrap().remove("VersionIdsToStages");
    Response::from_parts(head, described.to_string().into())
}

/// Takes the labels of the record from the version that a move of a label has named.
async fn take_record(http: &Client, target: &str, headers: &HeaderMap, asked: &Value) {
    let ask = async |operation: &str, body: Value| {
        let mut headers = headers.clone();
        headers.insert("x-amz-target", format!("secretsmanager.{operation}").parse().unwrap());
        let answer = forward(http, target, &headers, body.to_string().into()).await;
        let body = to_bytes(answer.into_body(), 1024 * 1024).await.unwrap();
        serde_json::from_slice::<Value>(&body).unwrap_or_default()
    };
    let (secret, version) = (&asked["SecretId"], asked["MoveToVersionId"].as_str().unwrap_or_default());
    let described = ask("DescribeSecret", json!({"SecretId": secret})).await;
    let labels = described["VersionIdsToStages"][version].as_array().cloned().unwrap_or_default();
    for label in labels.iter().filter(|label| label.as_str().is_some_and(|label| label.contains("record"))) {
        let taken = json!({"SecretId": secret, "VersionStage": label, "RemoveFromVersionId": version});
        ask("UpdateSecretVersionStage", taken).await;
    }
}

async fn forward(http: &Client, target: &str, headers: &HeaderMap, body: Bytes) -> Response<Body> {
    let mut request = http.post(target).body(body);
    for name in ["x-amz-target", "authorization", "content-type"] {
        request = request.header(name, headers[name].clone());
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    Response::builder().status(status).header("content-type", "application/x-amz-json-1.1").body(text.into()).unwrap()
}
