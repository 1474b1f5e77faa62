//! The API over HTTP: from a request to an answer, whatever the request is.

mod answer;
pub mod auth;
mod gate;
mod handlers;
pub mod jwt;
mod query;
mod route;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::service::Service;
use auth::Authentication;

pub use gate::router;

/// Everything that answering a request takes. Clones share everything.
#[derive(Clone, Debug)]
pub struct Api {
    parts: Arc<Parts>,
}

/// The parts of an API.
#[derive(Debug)]
pub struct Parts {
    /// What it does.
    pub service: Service,
    /// Who may do it.
    pub authentication: Authentication,
    /// What is counted.
    pub metrics: Metrics,
    /// The document at `/openapi`.
    pub openapi: String,
    /// What is told at the root.
    pub version: &'static str,
    /// When it was built.
    pub build_time: &'static str,
    /// Its bounds.
    pub limits: Limits,
    /// Cancelled when open streams should end.
    pub stop: CancellationToken,
}

/// How patient and how generous the API is.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest body, in bytes.
    pub body: usize,
    /// A client has so long to send its body.
    pub read: Duration,
    /// A request is answered within this time.
    pub request: Duration,
    /// A stream says something at least this often.
    pub bookmark: Duration,
}

// === impl Api ===

impl Api {
    /// An API of these parts.
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    fn service(&self) -> &Service {
        &self.parts.service
    }

    /// The one place at which the API looks at the clock.
    #[expect(clippy::unused_self, reason = "the clock is the API's, though it is the machine's as well")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 1024 * 1024,
            read: Duration::from_secs(5),
            request: Duration::from_secs(30),
            bookmark: Duration::from_secs(15),
        }
    }
}
