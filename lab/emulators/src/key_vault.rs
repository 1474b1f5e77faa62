//! An Azure Key Vault for development and tests: its REST API for secrets over HTTPS, with the endpoint of Entra that issues
//! the tokens for it, on one port and in memory.
//!
//! **Not for production.** Who has a client secret or an assertion may read everything.
//!
//! Its purpose is to run the fleet plane on a laptop and to show how clients behave when the service fails. So besides the
//! operations it has scripted [`Fault`]s, latency, identities with few permissions, deletions that take their time
//! ([`Settings::transition`]) and versions that are seen late ([`Settings::version_lag`]).
//!
//! Microsoft's own clients are its conformance suite (`tests/real_azure_clients.rs`); its guesses are listed in
//! `docs/reference/emulators.md`. It has secrets only: no keys, no certificates, no backup and no rotation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

mod engine;
mod entra;
mod faults;
mod gate;
mod operation;
mod refusal;
mod request;
mod rest;
mod settings;
mod state;

use crate::certificates::{Authority, Clients};
use crate::serving::{Running, Serving};
use engine::Engine;

pub use crate::scripted::ParseFaultError;
pub use crate::start_error::StartError;
pub use faults::Fault;
pub use operation::{Operation, Permission};
pub use settings::{Call, Identity, Settings};

/// A running server. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub struct KeyVault {
    engine: Arc<Engine>,
    authority: String,
    running: Running,
}

// === impl KeyVault ===

impl KeyVault {
    /// Makes a certificate, listens, and serves in a task of its own.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let authority = Authority::make("Key Vault emulator")?;
        let tls = authority.server(Clients::Any)?;
        let engine = Arc::new(Engine::new(&settings, jiff::Timestamp::now));
        let fail = |source| StartError::Listen { address: settings.listen, source };
        let serving = Serving::listen(settings.listen).await.map_err(fail)?;
        let served = Arc::clone(&engine);
        let running = serving.start_secured(tls, Some(rest::TOKEN_PATH), move |connection, request| {
            rest::serve(Arc::clone(&served), connection, request)
        });
        Ok(Self { engine, authority: authority.pem, running })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The address as clients take it, such as `https://127.0.0.1:8443`: of the vault and, without the tenant, of Entra.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The certificate that clients have to trust, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// An assertion of `subject` with the lifetime of access tokens, as a cluster's projected service-account token would be:
    /// the content of a client's `AZURE_FEDERATED_TOKEN_FILE`.
    pub fn assertion(&self, subject: &str) -> String {
        self.engine.assertion(subject)
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

    /// Moves the server's clock forward: expiry of tokens, deletions and lag follow it.
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

impl Drop for KeyVault {
    fn drop(&mut self) {
        self.engine.stopping.cancel();
    }
}
