//! What Kubernetes and Prometheus ask of every daemon: is it alive, is it ready, what does it count.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{StatusCode, header};
use prometheus_client::registry::Registry;
use tokio::sync::watch;

/// Whether a daemon can do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Not now, for this reason.
    NotReady(String),
    /// Not any more: it is shutting down.
    ShuttingDown,
}

/// The end at which a daemon says whether it is ready.
pub type ReadinessSender = watch::Sender<Readiness>;

/// `/healthz` and `/readyz`. Liveness is about the process only: an outage elsewhere never restarts it.
pub fn health(readiness: watch::Receiver<Readiness>) -> Router {
    let ready = move || {
        let readiness = readiness.borrow().clone();
        async move { readiness.answer() }
    };
    Router::new()
        .route("/healthz", get(|| async { json(StatusCode::OK, &serde_json::json!({ "status": "ok" })) }))
        .route("/readyz", get(ready))
}

/// `/metrics`, in the `OpenMetrics` text format.
pub fn metrics(registry: Arc<Registry>) -> Router {
    Router::new().route("/metrics", get(move || async move { encode(&registry) }))
}

/// The answer to a scrape.
pub fn encode(registry: &Registry) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, registry) {
        Ok(()) => {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, content_type)], text).into_response()
        }
        Err(_formatter_failed) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

// === impl Readiness ===

impl Readiness {
    fn answer(&self) -> Response {
        let (status, body) = match self {
            Self::Ready => (StatusCode::OK, serde_json::json!({ "status": "ok" })),
            Self::NotReady(reason) => {
                (StatusCode::SERVICE_UNAVAILABLE, serde_json::json!({ "status": "not_ready", "reason": reason }))
            }
            Self::ShuttingDown => (
                StatusCode::SERVICE_UNAVAILABLE,
                serde_json::json!({ "status": "shutting_down", "reason": "Application is shutting down" }),
            ),
        };
        json(status, &body)
    }
}

fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
