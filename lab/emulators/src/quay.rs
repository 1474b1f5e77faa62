//! A Quay for development and tests: its API of robots, teams and permissions for one organization, its usage log, and the
//! service that issues tokens to the clients of a registry, over HTTP on one port and in memory.
//!
//! **Not for production.** Who has the API's token may do everything.
//!
//! Its purpose is to show how clients behave when Quay fails or answers in its own way. So besides the operations it has
//! scripted [`Fault`]s, latency, lists that lag ([`Settings::list_lag`]) and a clock that tests move. A real registry takes
//! the tokens that it issues, if it trusts [`Quay::authority`]; it can report its pulls to [`Quay::events_url`].
//!
//! It is held to the answers that Quay's own code gave (`tests/quay/golden`); its guesses and the differences from Quay are
//! listed in `docs/reference/emulators.md`. It keeps no images: of each repository it serves one manifest and its tag.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

mod answer;
mod engine;
mod fields;
mod form;
mod gate;
mod operation;
mod paths;
mod refusal;
mod request;
mod rest;
mod settings;
mod signing;
mod state;

use crate::serving::{Running, Serving};
use engine::Engine;
use signing::Signing;

pub use crate::scripted::ParseFaultError;
pub use crate::start_error::StartError;
pub use operation::Operation;
pub use settings::{ApiToken, Call, Pull, Robot, Settings};

/// A fault of a call of this server.
pub type Fault = crate::http_faults::Fault<Operation>;

/// A running server. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub struct Quay {
    engine: Arc<Engine>,
    organization: String,
    service: String,
    token: Option<ApiToken>,
    running: Running,
}

// === impl Quay ===

impl Quay {
    /// Makes the key that signs tokens, listens, and serves in a task of its own.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let signing = Signing::make(&settings.issuers)?;
        let engine = Arc::new(Engine::new(&settings, signing, jiff::Timestamp::now));
        let fail = |source| StartError::Listen { address: settings.listen, source };
        let serving = Serving::listen(settings.listen).await.map_err(fail)?;
        let served = Arc::clone(&engine);
        let running = serving.start_with_form(paths::AUTH_PATH, move |connection, request| {
            rest::serve(Arc::clone(&served), connection, request)
        });
        let Settings { organization, service, tokens, .. } = settings;
        let token = tokens.into_iter().next();
        Ok(Self { engine, organization, service, token, running })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The address as clients take it, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The organization that it has.
    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// The first of the API's tokens; empty if the settings have none.
    pub fn token(&self) -> &str {
        self.token.as_ref().map_or("", |token| &token.secret)
    }

    /// The address at which registries' clients get their tokens: a registry's `auth.token.realm`.
    pub fn realm(&self) -> String {
        format!("{}{}", self.url(), paths::AUTH_PATH)
    }

    /// The name of the service that tokens are for: a registry's `auth.token.service`.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// The name of the issuer of tokens: a registry's `auth.token.issuer`.
    pub fn issuer(&self) -> &'static str {
        signing::ISSUER
    }

    /// The certificate of the key that signs tokens, in PEM: a registry's `auth.token.rootcertbundle`.
    pub fn authority(&self) -> &str {
        self.engine.authority()
    }

    /// The address at which a real registry reports its pulls, with the API's token as bearer.
    pub fn events_url(&self) -> String {
        format!("{}{}", self.url(), paths::EVENTS_PATH)
    }

    /// A token of `subject` for `audience` with a lifetime of an hour, as a cluster's `issuer` would sign it. Quay fetches the
    /// keys of an issuer; this server takes whatever was made here, and the tokens of [`Settings::issuers`].
    pub fn subject_token(&self, issuer: &str, subject: &str, audience: &str) -> String {
        self.engine.subject_token(issuer, subject, audience)
    }

    /// The robots with their passwords, in the order of their names.
    pub fn robots(&self) -> Vec<Robot> {
        self.engine.robots()
    }

    /// The pulls of the usage log, oldest first.
    pub fn pulls(&self) -> Vec<Pull> {
        self.engine.pulls()
    }

    /// Adds a repository, on which the prototypes of that moment give permissions.
    pub fn add_repository(&self, name: &str) {
        self.engine.add_repository(name);
    }

    /// Makes a robot that may push to a repository, as the organization's administrator would; returns its password.
    pub fn add_pusher(&self, name: &str, repository: &str) -> String {
        self.engine.add_pusher(name, repository)
    }

    /// Writes a pull to the usage log, as if a registry had served it.
    pub fn record_pull(&self, pull: &Pull) {
        self.engine.record_pull(pull);
    }

    /// Every call so far, in the order of their arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.engine.calls()
    }

    /// The number of calls so far of each operation that was called, by its name.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for call in self.calls() {
            *counts.entry(call.operation.name()).or_default() += 1;
        }
        counts
    }

    /// Waits until so many calls were received since the start; they need not be answered yet.
    pub async fn wait_for_calls(&self, count: usize) {
        self.engine.wait_for_calls(count).await;
    }

    /// Waits until the usage log has so many pulls.
    pub async fn wait_for_pulls(&self, count: usize) {
        self.engine.wait_for_pulls(count).await;
    }

    /// Adds a fault behind those that are there.
    pub fn inject(&self, fault: Fault) {
        self.engine.inject(fault);
    }

    /// Forgets all faults.
    pub fn clear_faults(&self) {
        self.engine.clear_faults();
    }

    /// The time of the server's clock.
    pub fn now(&self) -> jiff::Timestamp {
        self.engine.now()
    }

    /// Moves the server's clock forward: expiry of tokens, the usage log and lag follow it.
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

impl Drop for Quay {
    fn drop(&mut self) {
        self.engine.stopping.cancel();
    }
}
