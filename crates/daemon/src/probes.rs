//! The endpoints that Kubernetes and Prometheus call: liveness, readiness, metrics.
//!
//! They have a thread with a runtime of their own: traffic that floods or blocks the daemon's does not make a probe fail.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{StatusCode, header};
use prometheus_client::registry::Registry;
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::readiness::{Readiness, ReadinessSender};
use crate::serve::{self, ConnectionLimits, Endpoint, ListenError, Listener, ServeOptions};

/// Time for a probe to send its head, and for open probes to complete during shutdown.
const PROBE_TIMEOUTS: ServeOptions =
    ServeOptions { head_timeout: Duration::from_secs(5), drain_timeout: Duration::from_secs(1), tls: None };

/// Limits of each of the two listeners.
const LIMITS: ConnectionLimits = ConnectionLimits {
    body: Duration::from_secs(5),
    stall: Duration::from_secs(5),
    keep_alive: Duration::from_secs(10),
    connections: 64,
};

/// The health and metrics listeners of a daemon. They share no limit with its other traffic.
#[derive(Debug)]
pub struct Probes {
    health: Listener,
    metrics: Listener,
    registry: Arc<Registry>,
    readiness: ReadinessSender,
}

// === impl Probes ===

impl Probes {
    /// Binds both listeners.
    pub async fn listen(
        health: &Endpoint<'_>,
        metrics: &Endpoint<'_>,
        registry: Registry,
        readiness: ReadinessSender,
    ) -> Result<Self, ListenError> {
        Ok(Self {
            health: serve::listen(health).await?,
            metrics: serve::listen(metrics).await?,
            registry: Arc::new(registry),
            readiness,
        })
    }

    /// Bound address of the health listener.
    pub fn health_address(&self) -> SocketAddr {
        self.health.address()
    }

    /// Bound address of the metrics listener.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics.address()
    }

    /// Sender of the readiness that the health listener serves.
    pub fn readiness(&self) -> ReadinessSender {
        self.readiness.clone()
    }

    /// Serves while `work` runs. From `stop` on the daemon is not ready; the listeners close when `work` has ended.
    pub async fn serve_during<T>(self, stop: CancellationToken, work: impl Future<Output = T>) -> T {
        let readiness = self.readiness.clone();
        let closed = CancellationToken::new();
        let _closed_when_dropped = closed.clone().drop_guard();
        let served = self.serve_on_thread(closed.clone());
        let work = async {
            let ended = work.await;
            closed.cancel();
            ended
        };
        let stopping = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = closed.cancelled() => {}
            }
            readiness.set(Readiness::ShuttingDown);
        };
        let (_served, ended, ()) = tokio::join!(served, work, stopping);
        ended
    }

    /// Serves on a thread of its own until `closed`. The receiver ends with it.
    fn serve_on_thread(self, closed: CancellationToken) -> oneshot::Receiver<()> {
        let Self { health, metrics, registry, readiness } = self;
        let (health, metrics) = (health.moved(), metrics.moved());
        let (ended, served) = oneshot::channel();
        let serve = move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let (health, metrics) = (health()?.with_limits(LIMITS), metrics()?.with_limits(LIMITS));
                tokio::join!(
                    health.serve(health_routes(readiness.subscribe()), PROBE_TIMEOUTS, closed.clone()),
                    metrics.serve(metrics_routes(registry), PROBE_TIMEOUTS, closed.clone()),
                );
                io::Result::Ok(())
            })
        };
        let report = |error: io::Error| {
            // Kubernetes restarts the Pod: it can do no better.
            tracing::error!(operation = "probes", "probes and metrics cannot be served: {}", error.kind());
        };
        let thread = thread::Builder::new().name("probes".to_owned()).spawn(move || {
            if let Err(error) = serve() {
                report(error);
            }
            drop(ended);
        });
        if let Err(error) = thread {
            report(error);
        }
        served
    }
}

/// `/healthz` and `/readyz`. Liveness is about the process only: an outage elsewhere never restarts it.
fn health_routes(readiness: watch::Receiver<Readiness>) -> Router {
    let ready = move || {
        let readiness = readiness.borrow().clone();
        async move { readiness.answer() }
    };
    Router::new()
        .route("/healthz", get(|| async { json(StatusCode::OK, &serde_json::json!({ "status": "ok" })) }))
        .route("/readyz", get(ready))
}

/// `/metrics`, in the `OpenMetrics` text format.
fn metrics_routes(registry: Arc<Registry>) -> Router {
    Router::new().route("/metrics", get(move || async move { encode(&registry) }))
}

/// Renders the response to a scrape.
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

#[cfg(test)]
mod tests;
