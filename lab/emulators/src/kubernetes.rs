//! A Kubernetes API server for development and tests: this project's kinds of objects over HTTP, in memory or in a folder.
//!
//! **Not for production.** There is no TLS, every caller may do everything unless [`Authorization::Rbac`] is on, and
//! the folder holds Secrets in clear (its files are readable by their owner only).
//!
//! Its purpose is to run the fleet plane on a laptop and to show how clients behave when an API server fails. It
//! serves discovery, create, get, list, watch, update, the four kinds of patches with the bookkeeping of
//! `metadata.managedFields`, delete with finalizers and garbage collection, status subresources, dry runs, tables for
//! `kubectl get`, custom kinds, RBAC, `ServiceAccount` tokens, and scripted [`Fault`]s.
//!
//! It is held to the real thing by kubectl, by the suites that run on both, and by the recorded answers of a real control plane
//! (`tests/differences`). Where it differs, knowingly, is generated from them: `docs/reference/emulators.md`. Besides: a restart
//! forgets the history of watches; garbage is collected, and namespaces end, before the write that caused it is answered;
//! protobuf is read of some kinds and never written; fields of Events are managed under the names of the core group only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::serving::{Running, Serving};

mod answer;
mod ask;
mod controllers;
mod defaults;
mod discovery;
mod engine;
mod faults;
mod fields;
mod meta;
mod patch;
mod pod_security;
mod pods;
mod protobuf;
mod quantity;
mod rbac;
mod resources;
mod reviews;
mod route;
mod selectors;
mod serve;
mod settings;
mod status;
pub(crate) mod store;
mod tables;
mod tokens;
mod validate;
mod value;
mod verbs;
mod views;
mod watching;

use controllers::Controllers;
use engine::Engine;

pub use crate::scripted::ParseFaultError;
pub use crate::start_error::StartError;
pub use faults::Fault;
pub use pods::allow_mounts;
pub use settings::{Authorization, Call, PodLine, Settings};
pub use tokens::User;

/// A running server. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub struct Kubernetes {
    engine: Arc<Engine>,
    running: Running,
    controllers: Controllers,
}

// === impl Kubernetes ===

impl Kubernetes {
    /// Loads what is stored, listens, and serves in a task of its own.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let engine = Arc::new(Engine::open(&settings, jiff::Timestamp::now)?);
        let fail = |source| StartError::Listen { address: settings.listen, source };
        let serving = Serving::listen(settings.listen).await.map_err(fail)?;
        let served = Arc::clone(&engine);
        let running = serving.start(move |connection, request| serve::serve(Arc::clone(&served), connection, request));
        let behaviour = controllers::queue::Settings {
            back_off: settings.back_off,
            run_pods: settings.run_pods,
            pods_dir: settings.pods_dir.or_else(|| Some(settings.data_dir?.join("pods"))),
            pod_lines: settings.pod_lines,
        };
        let controllers = controllers::start(&engine.store, behaviour);
        Ok(Self { engine, running, controllers })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The URL for clients that need no kubeconfig.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// A kubeconfig for a user that may do everything.
    ///
    /// With RBAC the token stands in the user's entry, as other clients want it, and in the server's address: without TLS
    /// kubectl sends no other credentials than those.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_for(self.engine.master_token())
    }

    /// A kubeconfig with this token.
    pub fn kubeconfig_for(&self, token: Option<&str>) -> String {
        let user = token.map_or_else(|| "{}".to_owned(), |token| format!("{{token: {token:?}}}"));
        let credentials = token.map_or_else(String::new, |token| format!("token:{token}@"));
        let address = self.address();
        format!(
            "# A development server: no TLS, and everything in it may be lost.\n\
             apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: emulator\n  cluster: {{server: \"http://{credentials}{address}\"}}\n\
             users:\n\
             - name: emulator\n  user: {user}\n\
             contexts:\n\
             - name: emulator\n  context: {{cluster: emulator, user: emulator, namespace: default}}\n\
             current-context: emulator\n"
        )
    }

    /// Every call on resources so far, in the order of their arrival. Discovery and health do not count.
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

    /// Forgets what happened so far, as a real server does after some minutes: watches from before are answered with 410.
    pub fn forget_history(&self) {
        self.engine.forget_history();
    }

    /// Moves the server's clock forward.
    pub fn advance_clock(&self, by: Duration) {
        self.engine.store.advance_clock(by);
    }

    /// Stops: no new connections, watches end, open calls are answered within two seconds, calls that hang are cut, and the
    /// processes of Pods are killed.
    pub async fn shutdown(self) {
        self.engine.store.stopping.cancel();
        let mut this = self;
        this.running.shutdown().await;
        this.controllers.stopped().await;
    }

    /// Waits until the server's task has ended.
    pub async fn stopped(&mut self) {
        self.running.stopped().await;
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        self.engine.store.close();
        self.engine.store.stopping.cancel();
    }
}
