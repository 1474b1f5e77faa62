//! A registry under test, with operations of nodes and administrators that the contract does not have.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use registry_account::probe::Finding;
use registry_account::{
    AccountError, AccountName, Credential, CredentialId, ErrorKind, Fault, HarborRegistry, Image, Login,
    MemoryRegistry, Operation, QuayRegistry, RedHatRegistry, Registry, Usage, Visit,
};

use super::emulated::Emulated;
use crate::rig::{image, new_account};

/// The address that pulls come from.
pub(super) const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(super) struct Subject<R> {
    pub(super) registry: Arc<R>,
    administrator: Administrator,
}

enum Administrator {
    Memory(Arc<MemoryRegistry>),
    Emulated(Box<Emulated>),
}

// === impl Subject ===

impl Subject<MemoryRegistry> {
    pub(super) fn in_memory() -> Self {
        let registry = Arc::new(MemoryRegistry::new());
        registry.advance(Duration::from_hours(24));
        Self { administrator: Administrator::Memory(Arc::clone(&registry)), registry }
    }
}

impl Subject<QuayRegistry> {
    pub(super) async fn at_quay() -> Self {
        let (server, registry) = Emulated::quay().await;
        Self { registry: Arc::new(registry), administrator: Administrator::Emulated(Box::new(server)) }
    }
}

impl Subject<HarborRegistry> {
    pub(super) async fn at_harbor() -> Self {
        let (server, registry) = Emulated::harbor().await;
        Self { registry: Arc::new(registry), administrator: Administrator::Emulated(Box::new(server)) }
    }
}

impl Subject<RedHatRegistry> {
    pub(super) async fn at_red_hat() -> Self {
        let (server, registry) = Emulated::red_hat().await;
        Self { registry: Arc::new(registry), administrator: Administrator::Emulated(Box::new(server)) }
    }
}

impl<R: Registry> Subject<R> {
    /// Creates the account of the rig.
    pub(super) async fn create(&self) -> Credential {
        self.registry.create(&new_account()).await.unwrap()
    }

    /// Creates the account of the rig, and permits it to pull.
    pub(super) async fn permitted(&self) -> Credential {
        let credential = self.create().await;
        self.registry.permit(&credential.account.name).await.unwrap();
        credential
    }

    pub(super) fn image(&self) -> Image {
        match &self.administrator {
            Administrator::Memory(_) => image(),
            Administrator::Emulated(server) => server.image(),
        }
    }

    pub(super) async fn probe(&self, login: &Login) -> Finding {
        self.registry.probe(login, &self.image()).await
    }

    /// Pulls the image as a node does. Returns false if it was refused.
    pub(super) async fn pull(&self, login: &Login) -> bool {
        match &self.administrator {
            Administrator::Memory(registry) => {
                let repository = &self.image().repository;
                registry.pull(&Visit { login, repository, source: SOURCE })
            }
            Administrator::Emulated(server) => match server.bearer(login).await {
                Some(bearer) => server.reads_manifest(&bearer).await,
                None => false,
            },
        }
    }

    /// Gets a bearer token as a node does.
    pub(super) async fn bearer(&self, login: &Login) -> String {
        match &self.administrator {
            Administrator::Memory(registry) => registry.bearer(login).unwrap(),
            Administrator::Emulated(server) => server.bearer(login).await.unwrap(),
        }
    }

    /// Returns true if a bearer token still opens the repository.
    pub(super) async fn serves(&self, bearer: &str) -> bool {
        match &self.administrator {
            Administrator::Memory(registry) => registry.serves(bearer),
            Administrator::Emulated(server) => server.lists_tags(bearer).await,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        match &self.administrator {
            Administrator::Memory(registry) => registry.now(),
            Administrator::Emulated(server) => server.now(),
        }
    }

    pub(super) fn advance(&self, by: Duration) {
        match &self.administrator {
            Administrator::Memory(registry) => registry.advance(by),
            Administrator::Emulated(server) => server.advance(by),
        }
    }

    /// Adds an account that was not made by this project.
    pub(super) async fn add_stranger(&self, name: &AccountName) {
        match &self.administrator {
            Administrator::Memory(registry) => registry.add_stranger(name),
            Administrator::Emulated(server) => server.add_stranger(name).await,
        }
    }

    /// Reads the usage of an account since a time; `None` at a registry that has none, which says so.
    pub(super) async fn usage(&self, name: &AccountName, since: Timestamp) -> Option<Usage> {
        let usage = self.registry.usage(name, since).await;
        if self.registry.capabilities().usage_log {
            return Some(usage.unwrap());
        }
        self.refused(usage, ErrorKind::Unsupported);
        None
    }

    /// Returns the number of failed logins that the registry shows after so many.
    pub(super) fn recorded(&self, failed_logins: u64) -> u64 {
        match &self.administrator {
            Administrator::Emulated(server) if !server.records_failed_logins() => 0,
            Administrator::Memory(_) | Administrator::Emulated(_) => failed_logins,
        }
    }

    /// Lets the answer of the next call be lost after it was carried out.
    pub(super) fn lose(&self, operation: Operation) {
        match &self.administrator {
            Administrator::Memory(registry) => registry.inject(operation, Fault::After(ErrorKind::Unavailable)),
            Administrator::Emulated(server) => server.inject(operation, "commit-then-cut"),
        }
    }

    /// Lets the registry refuse the next call because of its rate.
    pub(super) fn exhaust(&self, operation: Operation) {
        match &self.administrator {
            Administrator::Memory(registry) => registry.inject(operation, Fault::Before(ErrorKind::QuotaExceeded)),
            Administrator::Emulated(server) => server.inject(operation, "throttled(retry-after=2s)"),
        }
    }

    /// Lets the registry keep something else than the next account that is sent.
    pub(super) fn garble(&self) {
        match &self.administrator {
            Administrator::Memory(registry) => registry.inject(Operation::Create, Fault::Garbled),
            Administrator::Emulated(server) => server.damage(),
        }
    }

    /// Checks how a call on the account of the rig failed.
    #[track_caller]
    pub(super) fn refused<T: fmt::Debug>(&self, result: Result<T, AccountError>, kind: ErrorKind) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert_eq!(error.resource, self.registry.login(&new_account().name), "{error}");
    }
}

/// Another credential than that of the rig.
pub(super) fn other_credential() -> CredentialId {
    "01932b5c-9f3e-7c2a-8e1d-ba9876543210".parse().unwrap()
}
