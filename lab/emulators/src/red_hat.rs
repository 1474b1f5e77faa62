//! Red Hat's registry service accounts for development and tests: the API of one partner's accounts, which lets in clients by
//! certificate, and on another port the registry that they pull from with its token service; over HTTPS and in memory.
//!
//! **Not for production.** Who has the client's key may do everything.
//!
//! The API is private. The public design of HyperFleet's pull secret service has its requests and answers; what it does not say is
//! a guess of this emulator, listed in `docs/reference/emulators.md`. It has scripted [`Fault`]s and a clock that tests move.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

mod operation;
mod refusal;
mod registry;
mod request;
mod rest;
mod settings;
mod state;

use crate::certificates::{Authority, Clients, Pair};
use crate::scripted::Script;
use crate::serving::{Running, Serving};
use rest::{Memory, ROOT, SERVICE, Shared, TOKEN_PATH};
use state::State;

pub use crate::scripted::ParseFaultError;
pub use crate::start_error::StartError;
pub use operation::Operation;
pub use settings::{Account, Settings};

/// A fault of a call of this server; its target is the name of an account, or a repository.
pub type Fault = crate::http_faults::Fault<Operation>;

/// A running server. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub struct RedHat {
    shared: Arc<Shared>,
    settings: Settings,
    authority: String,
    client: Identity,
    api: Running,
    registry: Running,
}

/// The client that is let in.
struct Identity(Pair);

// === impl RedHat ===

impl RedHat {
    /// Makes certificates, listens on two free ports, and serves in tasks of their own.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let authority = Authority::make("Red Hat emulator")?;
        let client = Identity(authority.client(&settings.partner)?);
        let (certified, any) = (authority.server(Clients::Certified)?, authority.server(Clients::Any)?);
        let mut faults = Script::default();
        settings.faults.iter().cloned().for_each(|fault| faults.add(fault));
        let state = State::new(settings.clone());
        let memory = Memory { state, faults, calls: Vec::new(), ahead: SignedDuration::ZERO };
        let shared = Arc::new(Shared::new(memory));
        let listen = async || {
            let fail = |source| StartError::Listen { address: settings.listen, source };
            Serving::listen(settings.listen).await.map_err(fail)
        };
        let (api, registry) = (listen().await?, listen().await?);
        let served = Arc::clone(&shared);
        let api = api.start_secured(certified, None, move |connection, request| {
            rest::serve(Arc::clone(&served), connection, request, rest::api)
        });
        let served = Arc::clone(&shared);
        let registry = registry.start_secured(any, None, move |connection, request| {
            rest::serve(Arc::clone(&served), connection, request, rest::registry)
        });
        Ok(Self { shared, settings, authority: authority.pem, client, api, registry })
    }

    /// The address of the API up to `/partners`.
    pub fn url(&self) -> String {
        format!("https://{}{ROOT}", self.api.address())
    }

    /// The address at which the registry listens.
    pub fn registry(&self) -> SocketAddr {
        self.registry.address()
    }

    /// The address at which the registry's clients get their tokens.
    pub fn realm(&self) -> String {
        format!("https://{}{TOKEN_PATH}", self.registry())
    }

    /// The name of the service that tokens are for.
    pub fn service(&self) -> &'static str {
        SERVICE
    }

    /// The partner that it has.
    pub fn partner(&self) -> &str {
        &self.settings.partner
    }

    /// The certificate that clients have to trust, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The certificate of the client that the API lets in, in PEM.
    pub fn client_certificate(&self) -> &str {
        &self.client.0.certificate
    }

    /// The key of that certificate, in PEM.
    pub fn client_key(&self) -> &str {
        &self.client.0.key
    }

    /// The accounts that are there, in the order of their names.
    pub fn accounts(&self) -> Vec<Account> {
        self.shared.memory().state.accounts()
    }

    /// Makes an account as a person does.
    pub fn add_account(&self, name: &str, description: &str) {
        let mut memory = self.shared.memory();
        let now = memory.now();
        memory.state.add_account(now, name, description);
    }

    /// Lets the next account be kept with another description than the one that was sent.
    pub fn damage(&self) {
        self.shared.memory().state.damage();
    }

    /// The number of calls so far of an operation.
    pub fn count(&self, operation: Operation) -> usize {
        self.shared.memory().calls.iter().filter(|called| **called == operation).count()
    }

    /// Adds a fault behind those that are there.
    pub fn inject(&self, fault: Fault) {
        self.shared.memory().faults.add(fault);
    }

    /// The time of the server's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.memory().now()
    }

    /// Moves the server's clock forward: expiry of tokens follows it.
    pub fn advance_clock(&self, by: Duration) {
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        let mut memory = self.shared.memory();
        memory.ahead = memory.ahead.saturating_add(by);
    }
}

impl Drop for RedHat {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
    }
}

// === impl Identity ===

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Identity(redacted)")
    }
}
