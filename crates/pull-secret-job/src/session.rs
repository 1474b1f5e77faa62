//! One run's way to the store: every call counted, retried within the run's budget, its failures told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use daemon::retry::{Backoff, Budget, Transient as _};
use secret_store::{SecretId, SecretStore, StoreError, VersionNumber};
use tracing::{info, warn};

use crate::ending::Stop;

/// DESIGN: one try and up to three retries after 1 s, 2 s and 4 s, ±20 %.
pub(crate) const BACKOFF: Backoff =
    Backoff { delays: &[Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)], jitter: 0.2 };

/// See the module.
pub(crate) struct Session<'a, S> {
    pub(crate) store: &'a S,
    pub(crate) secret: &'a SecretId,
    pub(crate) budget: &'a Budget,
    calls: RefCell<BTreeMap<&'static str, u32>>,
}

impl<'a, S: SecretStore> Session<'a, S> {
    pub(crate) fn new(store: &'a S, secret: &'a SecretId, budget: &'a Budget) -> Self {
        Self { store, secret, budget, calls: RefCell::default() }
    }

    /// A call that may be repeated blindly.
    pub(crate) async fn call<T>(
        &self,
        name: &'static str,
        mut attempt: impl AsyncFnMut() -> Result<T, StoreError>,
    ) -> Result<T, Stop> {
        let counted = async || {
            self.count(name);
            attempt().await
        };
        Ok(self.budget.retry(&BACKOFF, tell_retry, counted).await?)
    }

    /// A call whose failure must be looked into before it is repeated.
    pub(crate) async fn call_once<T>(
        &self,
        name: &'static str,
        attempt: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, Stop> {
        self.count(name);
        Ok(self.budget.spend(attempt).await?)
    }

    /// The wait that follows a transient failure of [`Self::call_once`]; the failure itself when it was the last.
    pub(crate) async fn pause_after(&self, failures: usize, error: StoreError) -> Result<(), Stop> {
        let delay = BACKOFF.delay(failures, rand::random()).filter(|_| error.is_transient());
        let Some(delay) = delay else { return Err(error.into()) };
        let wait = delay.max(error.retry_after().unwrap_or_default());
        tell_retry(failures, wait, &error);
        match self.budget.pause(wait).await {
            Ok(()) => Ok(()),
            Err(spent) => Err(daemon::retry::Failure::Spent(spent, Some(error)).into()),
        }
    }

    /// The full name of a version.
    pub(crate) fn version_path(&self, number: VersionNumber) -> String {
        format!("{}/versions/{number}", self.store.path(self.secret))
    }

    /// Says that a version was read back.
    pub(crate) fn tell_verified(&self, number: VersionNumber, bytes: usize, duration_ms: u64) {
        let version = self.version_path(number);
        info!(operation = "verify-secret", duration_ms, version, "Verified secret ({bytes} bytes)");
    }

    /// How many calls of each kind were made so far.
    pub(crate) fn calls(&self) -> BTreeMap<&'static str, u32> {
        self.calls.borrow().clone()
    }

    fn count(&self, name: &'static str) {
        *self.calls.borrow_mut().entry(name).or_default() += 1;
    }
}

fn tell_retry(failures: usize, wait: Duration, error: &StoreError) {
    let retries = BACKOFF.delays.len();
    warn!(operation = "retry", "Retry {failures}/{retries} after {:.1}s: {error}", wait.as_secs_f64());
}
