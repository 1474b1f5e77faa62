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
//! Google's own Python, Node and Go clients and `gcloud` are its conformance suite (`tests/real_google_clients.rs`).
//! It publishes nothing to topics, encrypts with no keys, keeps no IAM policies, and knows no managed rotation.

use std::net::SocketAddr;
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
mod settings;
mod state;
mod status;
mod wire;

use crate::connections::Connection;
use crate::serving::{Running, Serving};
use engine::Engine;

pub use crate::scripted::ParseFaultError;
pub use crate::start_error::StartError;
pub use faults::Fault;
pub use method::Method;
pub use settings::{Call, Quotas, Settings, Wire};
pub use status::Code;

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
