//! The HTTP layer: routing, authentication, limits, and the response to every request.

mod access;
mod audit;
pub mod auth;
mod causes;
mod digests;
pub(crate) mod document;
mod handlers;
mod head;
mod identity;
pub mod jwt;
mod lines;
mod middleware;
pub mod proxies;
mod query;
mod response;
mod route;
mod selection;
pub mod streams;
pub mod tenant;
mod trace;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use database::sealed::Keyring;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::audit::{Chain, Operation, Record};
use crate::metrics::Metrics;
use crate::service::Service;
use auth::Authentication;
use streams::Streams;

pub use middleware::router;

/// The state that handling a request needs. Clones share it.
#[derive(Clone, Debug)]
pub struct Api {
    parts: Arc<Parts>,
}

/// The parts of an API.
#[derive(Debug)]
pub struct Parts {
    /// The operations.
    pub service: Service,
    /// The authentication of callers.
    pub authentication: Authentication,
    /// The audit records of this process.
    pub audit: Chain,
    /// The metrics.
    pub metrics: Metrics,
    /// The document at `/openapi`.
    pub openapi: String,
    /// The version that `/api/hyperfleet` reports.
    pub version: &'static str,
    /// The build time that `/api/hyperfleet` reports.
    pub build_time: &'static str,
    /// The limits of each request.
    pub limits: Limits,
    /// The open change streams.
    pub streams: Arc<Streams>,
    /// Cancelled on shutdown, which ends open streams.
    pub stop: CancellationToken,
}

/// Limits of each request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a request body, in bytes.
    pub body: usize,
    /// Maximum time for a client to send its body.
    pub read: Duration,
    /// Maximum time to handle a request.
    pub request: Duration,
    /// Maximum time between two lines of a change stream.
    pub bookmark: Duration,
    /// Maximum time for the reader of a change stream to take a line.
    pub stall: Duration,
}

/// The time in which calls are recorded.
#[derive(Debug)]
pub struct Audited(Api);

// === impl Audited ===

impl Drop for Audited {
    fn drop(&mut self) {
        self.0.parts.audit.append(&Record::of_process(Operation::EndAudit));
    }
}

// === impl Api ===

impl Api {
    /// Creates an API from its parts.
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// Begins this process's audit records; dropping the value ends them.
    #[must_use]
    pub fn begin_audit(&self) -> Audited {
        self.parts.audit.append(&Record::of_process(Operation::BeginAudit));
        Audited(self.clone())
    }

    /// The encryption keys of pull secrets.
    pub fn keyring(&self) -> Option<Arc<Keyring>> {
        self.parts.service.keyring()
    }

    /// The authentication of callers.
    pub fn authentication(&self) -> &Authentication {
        &self.parts.authentication
    }

    /// The operations.
    pub fn service(&self) -> &Service {
        &self.parts.service
    }

    /// The current time. No other code of the HTTP layer reads the clock.
    #[expect(clippy::unused_self, reason = "a method, so that a clock of its own can replace the system's")]
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
            stall: Duration::from_secs(30),
        }
    }
}
