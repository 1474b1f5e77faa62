//! An AMS for development and tests: the registry credentials of `accounts_mgmt` and the SSO's tokens, over HTTP on one port and in
//! memory.
//!
//! **Not for production.** Tokens are answered in clear, as AMS does.
//!
//! Its quirks are those of the real one: a list without an order comes in any order, pages by number shift when a row is
//! inserted, ids are KSUIDs, a row that is being replaced has the resource `rotating`, a refusal for want of a permission names
//! no reason. Besides them it has scripted [`Fault`]s, one of which inserts a row before a list is answered.
//!
//! No build of AMS can be had: its differences and guesses are listed in `docs/reference/emulators.md`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};

mod faults;
mod ksuid;
mod operation;
mod refusal;
mod rest;
mod search;
mod settings;
mod state;

use crate::serving::{Running, Serving};
use rest::{Shared, TOKEN_PATH};
use state::State;

pub use crate::scripted::ParseFaultError;
pub use crate::start_error::StartError;
pub use faults::Fault;
pub use operation::Operation;
pub use settings::{Credential, Registry, Settings};

/// A running server. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub struct AccountsMgmt {
    shared: Arc<Shared>,
    running: Running,
}

// === impl AccountsMgmt ===

impl AccountsMgmt {
    /// Listens, and serves in a task of its own.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let fail = |source| StartError::Listen { address: settings.listen, source };
        let serving = Serving::listen(settings.listen).await.map_err(fail)?;
        let shared = Arc::new(Shared::new(State::new(settings)));
        let served = Arc::clone(&shared);
        let answer = move |connection, request| rest::serve(Arc::clone(&served), connection, request);
        let running = serving.start_with_form(TOKEN_PATH, answer);
        Ok(Self { shared, running })
    }

    /// The address as clients take it, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The SSO's address for tokens.
    pub fn token_url(&self) -> String {
        format!("{}{TOKEN_PATH}", self.url())
    }

    /// Adds a credential, and returns its id.
    pub fn add(&self, credential: Credential) -> String {
        self.state().add(credential)
    }

    /// Gives a credential another token, and marks the one before as `rotating`, as a rotation of AMS does; returns the new id.
    pub fn rotate(&self, id: &str, token: &str) -> Option<String> {
        self.state().rotate(id, token)
    }

    /// Removes a credential; false if there is none with the id.
    pub fn remove(&self, id: &str) -> bool {
        self.state().remove(id)
    }

    /// The credentials, in the order of ids.
    pub fn credentials(&self) -> BTreeMap<String, Credential> {
        self.state().credentials()
    }

    /// The number of calls so far of each operation that was called, by its name.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.state().counts()
    }

    /// Waits until so many calls of an operation were received since the start; they need not be answered.
    pub async fn wait_for_calls(&self, operation: Operation, count: usize) {
        let mut received = self.shared.received.subscribe();
        let has_come = |_: &usize| self.counts().get(operation.name()).is_some_and(|calls| *calls >= count);
        // The sender lives as long as this server, so waiting cannot fail.
        drop(received.wait_for(has_come).await);
    }

    /// Withdraws every access token before its time.
    pub fn withdraw_tokens(&self) {
        self.state().withdraw_tokens();
    }

    /// Adds a fault behind those that are there.
    pub fn inject(&self, fault: Fault) {
        self.state().inject(fault);
    }

    /// Stops: no new connections, open calls are answered within two seconds, calls that hang are cut.
    pub async fn shutdown(mut self) {
        self.shared.stopping.cancel();
        self.running.shutdown().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for AccountsMgmt {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
    }
}
