//! The state of a consumer that is to receive through every outage: reported, logged once per cause, and retried with back-off.

use std::time::Duration;

use daemon::backoff::Backoff;
use tokio::time::sleep;

use crate::error::{BrokerError, ErrorKind};
use crate::health::HealthReporter;
use crate::name::Subscription;

/// Back-off while the broker refuses the identity, which only a change of credentials or permissions ends.
const REFUSED: Backoff = Backoff::doubling(Duration::from_secs(30), Duration::from_mins(1));

/// Back-off between attempts to connect.
const RECONNECT: Backoff = Backoff::doubling(Duration::from_millis(200), Duration::from_secs(5));

/// The attempts of a consumer to receive.
#[derive(Debug)]
pub(crate) struct Receiving {
    subscription: Subscription,
    reporter: HealthReporter,
    failures: u32,
    /// True if the broker refused the identity at the last attempt.
    is_refused: bool,
}

impl Receiving {
    pub(crate) fn new(subscription: Subscription, reporter: HealthReporter) -> Self {
        Self { subscription, reporter, failures: 0, is_refused: false }
    }

    /// Reports that it receives.
    pub(crate) fn began(&self) {
        let _was_receiving = self.reporter.report(Ok(()));
    }

    /// Ends the back-off.
    pub(crate) fn recovered(&mut self) {
        self.failures = 0;
    }

    /// Reports a failure, and logs it unless it is the known refusal.
    pub(crate) fn failed(&mut self, error: &BrokerError) {
        self.failures = self.failures.saturating_add(1);
        let is_known = self.reporter.report(Err(error.clone()));
        self.is_refused = error.kind.is_refusal();
        match (self.is_refused, is_known) {
            (true, true) => {}
            (true, false) => {
                tracing::error!(subscription = %self.subscription, %error, "not receiving, as the broker refuses this identity");
            }
            (false, _) => tracing::warn!(subscription = %self.subscription, %error, "not receiving; retrying"),
        }
    }

    /// Waits before the next attempt; not before the first one.
    pub(crate) async fn back_off(&self) {
        if self.failures > 0 {
            let backoff = if self.is_refused { REFUSED } else { RECONNECT };
            sleep(backoff.nominal(self.failures)).await;
        }
    }
}

/// Returns the result of a first attempt if its error is permanent; an outage is survived.
pub(crate) fn unless_outage(begun: Result<(), BrokerError>) -> Result<(), BrokerError> {
    match begun {
        Err(error) if !matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TimedOut) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
