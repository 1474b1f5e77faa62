//! A Harbor for development and tests: its API of robots for one project, the project's audit log, and the service that issues
//! tokens to the clients of its registry, over HTTP on one port and in memory.
//!
//! **Not for production.** Who has the API's password may do everything.
//!
//! Its purpose is to show how clients behave when Harbor fails or answers in its own way: besides the operations it has scripted
//! [`Fault`]s and a clock that tests move. Its answers are read in Harbor's code; there is none to hold it to. It keeps no images:
//! of each repository of the project it serves one manifest and its tag.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

mod operation;
mod refusal;
mod request;
mod rest;
mod settings;
mod state;

use crate::scripted::Script;
use crate::serving::{Running, Serving};
use rest::{Memory, SERVICE, Shared, TOKEN_PATH};
use state::State;

pub use crate::scripted::ParseFaultError;
pub use crate::start_error::StartError;
pub use operation::Operation;
pub use settings::{Pull, Robot, Settings};

/// A fault of a call of this server; its target is the number of a robot, the project, or a repository.
pub type Fault = crate::http_faults::Fault<Operation>;

/// A running server. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub struct Harbor {
    shared: Arc<Shared>,
    settings: Settings,
    running: Running,
}

// === impl Harbor ===

impl Harbor {
    /// Listens, and serves in a task of its own.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let mut faults = Script::default();
        settings.faults.iter().cloned().for_each(|fault| faults.add(fault));
        let state = State::new(settings.clone());
        let shared = Arc::new(Shared::new(Memory { state, faults, calls: Vec::new(), ahead: SignedDuration::ZERO }));
        let fail = |source| StartError::Listen { address: settings.listen, source };
        let serving = Serving::listen(settings.listen).await.map_err(fail)?;
        let served = Arc::clone(&shared);
        let running = serving.start(move |connection, request| rest::serve(Arc::clone(&served), connection, request));
        Ok(Self { shared, settings, running })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The address as clients take it, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The project that it has.
    pub fn project(&self) -> &str {
        &self.settings.project
    }

    /// The user of the API.
    pub fn username(&self) -> &str {
        &self.settings.username
    }

    /// The password of the API's user.
    pub fn password(&self) -> &str {
        &self.settings.password
    }

    /// The address at which the registry's clients get their tokens.
    pub fn realm(&self) -> String {
        format!("{}{TOKEN_PATH}", self.url())
    }

    /// The name of the service that tokens are for.
    pub fn service(&self) -> &'static str {
        SERVICE
    }

    /// The robots with their passwords, in the order of their creation.
    pub fn robots(&self) -> Vec<Robot> {
        self.shared.memory().state.robots()
    }

    /// The pulls of the audit log, oldest first.
    pub fn pulls(&self) -> Vec<Pull> {
        self.shared.memory().state.pulls()
    }

    /// Writes a pull to the audit log, as if the registry had served it.
    pub fn record_pull(&self, pull: Pull) {
        self.shared.memory().state.record_pull(pull);
    }

    /// The number of calls so far of each operation that was called, by its name.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for operation in &self.shared.memory().calls {
            *counts.entry(operation.name()).or_default() += 1;
        }
        counts
    }

    /// Adds a fault behind those that are there.
    pub fn inject(&self, fault: Fault) {
        self.shared.memory().faults.add(fault);
    }

    /// Forgets all faults.
    pub fn clear_faults(&self) {
        self.shared.memory().faults.clear();
    }

    /// The time of the server's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.memory().now()
    }

    /// Moves the server's clock forward: expiry of tokens and robots, and the audit log follow it.
    pub fn advance_clock(&self, by: Duration) {
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        let mut memory = self.shared.memory();
        memory.ahead = memory.ahead.saturating_add(by);
    }

    /// Stops: no new connections, open calls are answered within two seconds, calls that hang are cut.
    pub async fn shutdown(mut self) {
        self.shared.stopping.cancel();
        self.running.shutdown().await;
    }
}

impl Drop for Harbor {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
    }
}
