//! A registry whose calls are counted, and of which it is known whether the last one failed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use registry_account::contract::{
    Account, Capabilities, Credential, ListedAccounts, Login, NewAccount, Registry, Usage,
};
use registry_account::error::{AccountError, ErrorKind};
use registry_account::name::{AccountName, Image};
use registry_account::probe::{Finding, Verdict};
use tokio::time::Instant;

use crate::credential::RegistryName;
use crate::metrics::{FinishedCall, Metrics};

/// Time for which a failure counts, while this replica makes no call: another one may have made the next, which succeeded. A call
/// that failed is made again within it.
const MEMORY: Duration = Duration::from_mins(15);

/// The times of the last failures of registries that have not answered as they should since; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Failing(Arc<Mutex<BTreeMap<RegistryName, Instant>>>);

/// A registry whose calls are counted.
#[derive(Clone, Debug)]
pub struct Metered<R> {
    registry: R,
    name: RegistryName,
    metrics: Metrics,
    failing: Failing,
}

// === impl Failing ===

impl Failing {
    /// Returns true if the last call of a registry failed, and not too long ago.
    pub fn has(&self, registry: &RegistryName) -> bool {
        let failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failing.get(registry).is_some_and(|at| at.elapsed() < MEMORY)
    }

    fn note(&self, registry: &RegistryName, fails: bool) {
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if fails {
            failing.insert(registry.clone(), Instant::now());
        } else {
            failing.remove(registry);
        }
    }
}

// === impl Metered ===

impl<R: Registry> Metered<R> {
    /// Counts the calls of a registry in these metrics, and notes its failures.
    pub fn new(registry: R, name: RegistryName, metrics: Metrics, failing: Failing) -> Self {
        Self { registry, name, metrics, failing }
    }

    async fn call<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, AccountError>>,
    ) -> Result<T, AccountError> {
        let result = call.await;
        let outcome = result.as_ref().map_or_else(|error| outcome(error.kind), |_done| "success");
        self.metrics.called(&FinishedCall { registry: &self.name, operation, outcome });
        match &result {
            Err(error) if is_fault(error.kind) => {
                tracing::warn!(operation, registry = %self.name, "{error}");
                self.failing.note(&self.name, true);
            }
            _ => self.failing.note(&self.name, false),
        }
        result
    }
}

/// Returns true for failures that are not about one account.
fn is_fault(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::NotPrepared
        | ErrorKind::PermissionDenied
        | ErrorKind::Unauthenticated
        | ErrorKind::Unavailable
        | ErrorKind::TimedOut
        | ErrorKind::Internal => true,
        ErrorKind::NotFound
        | ErrorKind::NameTaken
        | ErrorKind::Corrupt
        | ErrorKind::PasswordLost
        | ErrorKind::Invalid
        | ErrorKind::Unsupported
        | ErrorKind::QuotaExceeded => false,
    }
}

fn outcome(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "not_found",
        ErrorKind::NameTaken => "name_taken",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::PasswordLost => "password_lost",
        ErrorKind::NotPrepared => "not_prepared",
        ErrorKind::PermissionDenied => "permission_denied",
        ErrorKind::Unauthenticated => "unauthenticated",
        ErrorKind::Invalid => "invalid",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::QuotaExceeded => "quota_exceeded",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::TimedOut => "timed_out",
        ErrorKind::Internal => "internal",
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pulls => "pulls",
        Verdict::Accepted => "accepted",
        Verdict::NotPermitted => "not_permitted",
        Verdict::Refused => "refused",
        Verdict::Inconclusive => "inconclusive",
    }
}

impl<R: Registry> Registry for Metered<R> {
    fn capabilities(&self) -> Capabilities {
        self.registry.capabilities()
    }

    fn host(&self) -> &str {
        self.registry.host()
    }

    fn login(&self, name: &AccountName) -> String {
        self.registry.login(name)
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        self.call("create", self.registry.create(new)).await
    }

    async fn find(&self, name: &AccountName) -> Result<Option<Account>, AccountError> {
        self.call("find", self.registry.find(name)).await
    }

    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        self.call("permit", self.registry.permit(name)).await
    }

    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        let finding = self.registry.probe(login, image).await;
        let outcome = verdict(finding.verdict);
        self.metrics.called(&FinishedCall { registry: &self.name, operation: "probe", outcome });
        finding
    }

    async fn usage(&self, name: &AccountName, since: Timestamp) -> Result<Usage, AccountError> {
        self.call("usage", self.registry.usage(name, since)).await
    }

    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        self.call("disable", self.registry.disable(name)).await
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        self.call("delete", self.registry.delete(name)).await
    }

    async fn list(&self, page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        self.call("list", self.registry.list(page)).await
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry as Metrified;
    use registry_account::{Fault, MemoryRegistry, Operation};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_known_until_the_registry_answers_or_for_a_time() {
        let queries = database::QueryMeter::new(&[]);
        let metrics = Metrics::register(&mut Metrified::default(), &queries);
        let (memory, failing) = (MemoryRegistry::new(), Failing::default());
        memory.inject(Operation::List, Fault::Before(ErrorKind::PermissionDenied));
        let (name, quay): (AccountName, RegistryName) = ("hf-one".parse().unwrap(), "quay".parse().unwrap());
        let registry = Metered::new(memory, quay.clone(), metrics, failing.clone());
        assert!(registry.permit(&name).await.is_err());
        assert!(!failing.has(&quay), "an account that is absent is no failure of the registry");
        registry.list(None).await.unwrap_err();
        assert!(failing.has(&quay) && !failing.has(&"harbor".parse().unwrap()));
        assert!(registry.list(None).await.is_ok());
        assert!(!failing.has(&quay));
        failing.note(&quay, true);
        let second = Duration::from_secs(1);
        tokio::time::advance(MEMORY.saturating_sub(second)).await;
        assert!(failing.has(&quay));
        tokio::time::advance(second).await;
        assert!(!failing.has(&quay), "another replica may have called it since");
    }
}
