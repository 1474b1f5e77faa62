//! One run's way to the outside: every call counted, retried within the run's budget, its failures told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use daemon::backoff::{Backoff, RetryPolicy};
use daemon::retry::{Budget, Failure, Transient};
use secret_store::{SecretId, SecretStore, StoreError, VersionNumber};
use tracing::{info, warn};

use crate::ending::Stop;

/// One try and up to three retries after 1 s, 2 s and 4 s, ±20 %.
const RETRIES: RetryPolicy = RetryPolicy { backoff: BACKOFF, max_retries: 3 };
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(4)).with_jitter(20);

/// Makes calls for one phase of a run.
pub(crate) struct Caller<'a> {
    budget: &'a Budget,
    calls: RefCell<BTreeMap<&'static str, u32>>,
}

/// One run's way to the store.
pub(crate) struct Session<'a, S> {
    pub(crate) store: &'a S,
    pub(crate) secret: &'a SecretId,
    pub(crate) caller: Caller<'a>,
}

// === impl Caller ===

impl<'a> Caller<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self { budget, calls: RefCell::default() }
    }

    /// A call that may be repeated blindly.
    pub(crate) async fn call<T, E>(
        &self,
        name: &'static str,
        mut attempt: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, Stop>
    where
        E: Transient + Display,
        Stop: From<E>,
    {
        let counted = async || {
            self.count(name);
            attempt().await
        };
        Ok(self.budget.retry(&RETRIES, tell_retry, counted).await?)
    }

    /// A call whose failure must be looked into before it is repeated.
    pub(crate) async fn call_once<T>(&self, name: &'static str, attempt: impl Future<Output = T>) -> Result<T, Stop> {
        self.count(name);
        Ok(self.budget.run(attempt).await?)
    }

    /// The wait that follows a transient failure of [`Self::call_once`]; the failure itself when it was the last.
    pub(crate) async fn pause_after(&self, failures: u32, error: StoreError) -> Result<(), Stop> {
        let delay = RETRIES.delay(failures, rand::random()).filter(|_| error.is_transient());
        let wait = delay.map(|delay| delay.max(error.retry_after().unwrap_or_default()));
        let Some(wait) = wait.filter(|wait| self.budget.has_time_for(*wait)) else { return Err(error.into()) };
        tell_retry(failures, wait, &error);
        self.budget.pause(wait).await.map_err(|interrupted| Failure::Interrupted(interrupted, Some(error)).into())
    }

    /// Waits before the look that follows a surprise: not at all the first time, then longer and longer, as what is
    /// awaited (lagging metadata, a namespace) may take minutes.
    pub(crate) async fn pause_before_looking_again(&self, surprises: u32, why: &str) -> Result<(), Stop> {
        let wait = BACKOFF.delay(surprises.saturating_sub(1), rand::random());
        if wait.is_zero() {
            info!(operation = "look-again", "Looking again: {why}");
        } else {
            warn!(operation = "look-again", "Looking again in {:.1}s: {why}", wait.as_secs_f64());
        }
        self.budget.pause(wait).await.map_err(|interrupted| {
            let stop = Stop::from(interrupted);
            Stop { message: format!("{}; last seen: {why}", stop.message), ..stop }
        })
    }

    /// How many calls of each kind were made so far, failed ones included.
    pub(crate) fn calls(&self) -> BTreeMap<&'static str, u32> {
        self.calls.borrow().clone()
    }

    fn count(&self, name: &'static str) {
        *self.calls.borrow_mut().entry(name).or_default() += 1;
    }
}

fn tell_retry(failures: u32, wait: Duration, error: &impl Display) {
    let retries = RETRIES.max_retries;
    warn!(operation = "retry", "Retry {failures}/{retries} after {:.1}s: {error}", wait.as_secs_f64());
}

// === impl Session ===

impl<'a, S: SecretStore> Session<'a, S> {
    pub(crate) fn new(store: &'a S, secret: &'a SecretId, budget: &'a Budget) -> Self {
        Self { store, secret, caller: Caller::new(budget) }
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
}
