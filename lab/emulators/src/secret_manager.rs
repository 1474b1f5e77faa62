//! A Google Secret Manager for development and tests: its v1 API over REST/JSON and gRPC on one port, in memory or in a folder.
//!
//! **Not for production.** Every process that reaches the port may read everything unless a token is required, and the folder holds
//! payloads in clear (its files are readable by their owner only).
//!
//! Its purpose is to run the fleet plane on a laptop and to show how clients behave when the service fails. So
//! besides the methods it has scripted [`Fault`]s, [`Quotas`], latency, denied permissions, a required token, and reads that
//! lag behind writes as the real ones may: with [`Settings::metadata_lag`] everything but create, update, add and access *by
//! number* shows the state of that long ago.
//!
//! Google's own Python and Node clients and `gcloud` are its conformance suite (`tests/real_google_clients.rs`).
//! It publishes nothing to topics, encrypts with no keys, keeps no IAM policies, and knows no managed rotation.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;

mod engine;
mod faults;
mod files;
mod gate;
mod grpc;
mod method;
mod names;
mod rest;
mod state;
mod status;
mod wire;

use crate::connections::Connection;
use crate::serving::{Running, Serving};
use engine::Engine;

pub use crate::scripted::ParseFaultError;
pub use faults::Fault;
pub use method::Method;
pub use status::Code;

/// Behaviour of a server.
#[derive(Clone)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder in which secrets outlive the server; in memory if none. One server at a time may use a folder.
    pub data_dir: Option<PathBuf>,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault>,
    /// Limits a project and minute.
    pub quotas: Quotas,
    /// So long every call takes at least.
    pub latency: Duration,
    /// So far reads of metadata, lists, and `latest` and aliases lag behind. Access by number never does.
    pub metadata_lag: Duration,
    /// Permissions that every caller lacks, such as `secretmanager.versions.access`.
    pub denied_permissions: BTreeSet<String>,
    /// The bearer token without which a call is UNAUTHENTICATED.
    pub required_token: Option<String>,
}

/// Limits a project and minute, counted over the last 60 s; none means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Calls that read metadata.
    pub reads_per_minute: Option<u32>,
    /// Calls that change something.
    pub writes_per_minute: Option<u32>,
    /// Calls that read content.
    pub accesses_per_minute: Option<u32>,
}

/// A call that was received. It never holds a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The resource's or parent's name as the caller wrote it.
    pub resource: String,
    /// The protocol.
    pub wire: Wire,
    /// The code that was answered; none while it waits, and for good if its connection was cut or it hung.
    pub outcome: Option<Code>,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// HTTP with JSON.
    Rest,
    /// gRPC over HTTP/2 without TLS.
    Grpc,
}

/// The cause of a failed start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The folder cannot be made or read.
    #[error("cannot use the data folder {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another server uses the folder.
    #[error("the data folder {} is in use by another server", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// A stored secret cannot be read.
    #[error("cannot read the stored secret {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The problem, without any of the content.
        reason: String,
    },
}

/// A running server. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub struct SecretManager {
    engine: Arc<Engine>,
    running: Running,
}

// === impl SecretManager ===

impl SecretManager {
    /// Loads what is stored, listens, and serves in a task of its own.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let engine = Arc::new(Engine::open(&settings, jiff::Timestamp::now)?);
        let fail = |source| StartError::Listen { address: settings.listen, source };
        let serving = Serving::listen(settings.listen).await.map_err(fail)?;
        let served = Arc::clone(&engine);
        let running = serving.start(move |connection, request| answer(Arc::clone(&served), connection, request));
        Ok(Self { engine, running })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// Every call so far, in the order of their arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.engine.calls()
    }

    /// Waits until so many calls were received since the start; they need not be answered yet.
    pub async fn wait_for_calls(&self, count: usize) {
        self.engine.wait_for_calls(count).await;
    }

    /// Adds a fault behind those that are there.
    pub fn inject(&self, fault: Fault) {
        self.engine.inject(fault);
    }

    /// Forgets all faults.
    pub fn clear_faults(&self) {
        self.engine.clear_faults();
    }

    /// Moves the server's clock forward: lag, expiry, delayed destruction and quotas follow it.
    pub fn advance_clock(&self, by: Duration) {
        self.engine.advance_clock(by);
    }

    /// Stops: no new connections, open calls are answered within two seconds, calls that hang are cut.
    pub async fn shutdown(mut self) {
        self.engine.stopping.cancel();
        self.running.shutdown().await;
    }

    /// Waits until the server's task has ended.
    pub async fn stopped(&mut self) {
        self.running.stopped().await;
    }
}

impl Drop for SecretManager {
    fn drop(&mut self) {
        self.engine.close();
        self.engine.stopping.cancel();
    }
}

/// One service for both wires: the content type tells them apart.
async fn answer(engine: Arc<Engine>, connection: Connection, request: http::Request<Body>) -> http::Response<Body> {
    if grpc::is_grpc(&request) {
        grpc::serve(engine, connection, request).await
    } else {
        rest::serve(engine, connection, request).await
    }
}

// === impl Settings ===

impl Default for Settings {
    /// In memory on a free port of the loopback interface, with nothing that gets in the way.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            data_dir: None,
            faults: Vec::new(),
            quotas: Quotas::default(),
            latency: Duration::ZERO,
            metadata_lag: Duration::ZERO,
            denied_permissions: BTreeSet::new(),
            required_token: None,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listen, data_dir, faults, quotas, latency, metadata_lag, denied_permissions, required_token } = self;
        formatter
            .debug_struct("Settings")
            .field("listen", listen)
            .field("data_dir", data_dir)
            .field("faults", faults)
            .field("quotas", quotas)
            .field("latency", latency)
            .field("metadata_lag", metadata_lag)
            .field("denied_permissions", denied_permissions)
            .field("required_token", &required_token.as_ref().map(|_| "redacted"))
            .finish()
    }
}
