//! Makes a run's calls: each is retried within the run's budget, and its retries are counted and logged.

use std::cell::Cell;
use std::fmt::Display;
use std::time::Duration;

use daemon::backoff::{Backoff, RetryPolicy};
use daemon::retry::{Budget, Failure, Transient};
use secret_store::{SecretId, SecretStore, StoreError, VersionNumber};
use tracing::{info, warn};

use crate::outcome::RunError;

/// One attempt and up to three retries after 1 s, 2 s and 4 s, ±20 %.
const RETRIES: RetryPolicy = RetryPolicy { backoff: BACKOFF, max_retries: 3 };
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(4)).with_jitter(20);

/// Makes calls for one phase of a run.
pub(crate) struct Caller<'a> {
    budget: &'a Budget,
    retries: Cell<u32>,
}

/// The store as a run uses it.
pub(crate) struct Session<'a, S> {
    pub(crate) store: &'a S,
    pub(crate) secret: &'a SecretId,
    pub(crate) caller: Caller<'a>,
}

// === impl Caller ===

impl<'a> Caller<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self { budget, retries: Cell::default() }
    }

    /// Makes an idempotent call, with retries.
    pub(crate) async fn call<T, E>(&self, attempt: impl AsyncFnMut() -> Result<T, E>) -> Result<T, RunError>
    where
        E: Transient + Display,
        RunError: From<E>,
    {
        let on_retry = |failures, wait, error: &E| self.count_retry(failures, wait, error);
        Ok(self.budget.retry(&RETRIES, on_retry, attempt).await?)
    }

    /// Makes a call once: after a failure its effect must be observed before a retry.
    pub(crate) async fn call_once<T>(&self, attempt: impl Future<Output = T>) -> Result<T, RunError> {
        Ok(self.budget.run(attempt).await?)
    }

    /// Waits after a transient failure of [`Self::call_once`]; returns the failure if it was the last attempt.
    pub(crate) async fn pause_after(&self, failures: u32, error: StoreError) -> Result<(), RunError> {
        let delay = RETRIES.delay(failures, rand::random()).filter(|_| error.is_transient());
        let wait = delay.map(|delay| delay.max(error.retry_after().unwrap_or_default()));
        let Some(wait) = wait.filter(|wait| self.budget.has_time_for(*wait)) else { return Err(error.into()) };
        self.count_retry(failures, wait, &error);
        self.budget.pause(wait).await.map_err(|interrupted| Failure::Interrupted(interrupted, Some(error)).into())
    }

    /// Waits before the next observation: not at all the first time, then with back-off, as lagging metadata or a missing
    /// namespace may take minutes.
    pub(crate) async fn pause_before_observing(&self, retries: u32, why: &str) -> Result<(), RunError> {
        let wait = BACKOFF.delay(retries.saturating_sub(1), rand::random());
        if wait.is_zero() {
            info!(operation = "observe-again", "Observing again: {why}");
        } else {
            warn!(operation = "observe-again", "Observing again in {:.1}s: {why}", wait.as_secs_f64());
        }
        self.budget.pause(wait).await.map_err(|interrupted| {
            let failed = RunError::from(interrupted);
            RunError { message: format!("{}; last observed: {why}", failed.message), ..failed }
        })
    }

    /// Number of calls so far that were repeated after a failure.
    pub(crate) fn retries(&self) -> u32 {
        self.retries.get()
    }

    fn count_retry(&self, failures: u32, wait: Duration, error: &impl Display) {
        let retries = RETRIES.max_retries;
        warn!(operation = "retry", "Retry {failures}/{retries} after {:.1}s: {error}", wait.as_secs_f64());
        self.retries.set(self.retries.get().saturating_add(1));
    }
}

// === impl Session ===

impl<'a, S: SecretStore> Session<'a, S> {
    pub(crate) fn new(store: &'a S, secret: &'a SecretId, budget: &'a Budget) -> Self {
        Self { store, secret, caller: Caller::new(budget) }
    }

    /// Full name of a version.
    pub(crate) fn version_path(&self, number: VersionNumber) -> String {
        format!("{}/versions/{number}", self.store.path(self.secret))
    }

    /// Logs that a version was read back.
    pub(crate) fn log_verified(&self, number: VersionNumber, bytes: usize, duration_ms: u64) {
        let version = self.version_path(number);
        info!(operation = "verify-secret", duration_ms, version, "Verified secret ({bytes} bytes)");
    }
}
