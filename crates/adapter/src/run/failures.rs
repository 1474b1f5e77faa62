//! Counts what fails in a row, by resource, and tells a resource that fails from an outage.

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::backoff::Backoff;
use tokio::time::Instant;

/// Number of failed passes in a row after which the failure is reported: one may pass by itself.
const FAILED_PASSES_BEFORE_REPORT: u32 = 3;
/// Maximum number of resources whose failures are counted.
const MAX_FAILING: usize = 100_000;
/// Time between passes over a resource during an outage.
const OUTAGE: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30));
/// Maximum time for which deliveries are held during an outage; RabbitMQ closes the channel of one that is held for 30 minutes.
const MAX_HOLD: Duration = Duration::from_mins(20);
/// Time until a pass whose report the API has discarded is repeated: the clock of another replica may be ahead, or that of the
/// API.
const DISCARDED: Backoff = Backoff::doubling(Duration::from_secs(5), Duration::from_mins(10));

/// The failed passes of resources, and the discarded reports about them.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    failing: BTreeMap<String, Failing>,
    discarded: BTreeMap<String, u32>,
    /// Number of passes that have succeeded, of any resource.
    successes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    /// Number of failed passes in a row.
    passes: u32,
    /// Number of successes of all resources at the last of them.
    successes: u64,
    /// Time since which deliveries are held.
    since: Instant,
}

/// The meaning of a failed pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// True if so many have failed in a row that the failure is reported.
    pub(crate) is_reported: bool,
    /// Handling of the deliveries if the failure is transient.
    pub(crate) retry: Retry,
}

/// The way in which the deliveries of a failed pass are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Nothing has succeeded since the pass before: the deliveries are held for this time, and spend no attempt.
    Hold(Duration),
    /// They were held as long as a broker allows, and go back to it.
    Postpone(Duration),
    /// Other resources were reconciled meanwhile: an attempt is spent.
    Spend,
}

// === impl Failures ===

impl Failures {
    /// Counts a failed pass.
    pub(crate) fn count(&mut self, id: &str, now: Instant) -> Failure {
        let successes = self.successes;
        if self.failing.len() >= MAX_FAILING && !self.failing.contains_key(id) {
            return Failure { is_reported: false, retry: Retry::Spend };
        }
        let failing = self.failing.entry(id.to_owned()).or_insert(Failing { passes: 0, successes, since: now });
        failing.passes = failing.passes.saturating_add(1);
        let is_outage = std::mem::replace(&mut failing.successes, successes) == successes;
        let wait = OUTAGE.nominal(failing.passes);
        let retry = if !is_outage {
            Retry::Spend
        } else if now.duration_since(failing.since) < MAX_HOLD {
            Retry::Hold(wait)
        } else {
            failing.since = now;
            Retry::Postpone(wait)
        };
        Failure { is_reported: failing.passes >= FAILED_PASSES_BEFORE_REPORT, retry }
    }

    /// Forgets the failures of a resource after a pass that has succeeded.
    pub(crate) fn clear(&mut self, id: &str) {
        self.successes = self.successes.wrapping_add(1);
        self.failing.remove(id);
    }

    /// Counts a discarded report; returns the time until the next one.
    pub(crate) fn discarded(&mut self, id: &str) -> Duration {
        if self.discarded.len() >= MAX_FAILING && !self.discarded.contains_key(id) {
            return DISCARDED.cap;
        }
        let count = self.discarded.entry(id.to_owned()).or_default();
        *count = count.saturating_add(1);
        DISCARDED.nominal(*count)
    }

    /// Forgets the discarded reports about a resource after one that was stored, or that no longer matters.
    pub(crate) fn stored(&mut self, id: &str) {
        self.discarded.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_reported_from_the_third_in_a_row() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let mut is_reported = |id: &str| failures.count(id, now).is_reported;
        assert_eq!([(); 4].map(|()| is_reported("a")), [false, false, true, true]);
        assert!(!is_reported("b"));
        failures.clear("a");
        assert!(!failures.count("a", now).is_reported);
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_spends_no_attempt_but_a_resource_that_fails_alone_does() {
        let mut failures = Failures::default();
        let seconds = |seconds| Retry::Hold(Duration::from_secs(seconds));
        for wait in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(failures.count("a", Instant::now()).retry, seconds(wait));
        }
        assert_eq!(failures.count("b", Instant::now()).retry, seconds(1));
        // The outage is over for another resource, so that this one fails for itself.
        failures.clear("b");
        assert_eq!(failures.count("a", Instant::now()).retry, Retry::Spend);
        // Nothing has succeeded since.
        assert_eq!(failures.count("a", Instant::now()).retry, seconds(30));
        advance(MAX_HOLD).await;
        assert_eq!(failures.count("a", Instant::now()).retry, Retry::Postpone(Duration::from_secs(30)));
        assert_eq!(failures.count("a", Instant::now()).retry, seconds(30), "the hold begins anew");
    }

    #[test]
    fn a_report_that_is_discarded_for_ever_is_repeated_ever_more_slowly() {
        let mut failures = Failures::default();
        let waits = [(); 9].map(|()| failures.discarded("a").as_secs());
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(failures.discarded("b").as_secs(), 5);
        failures.stored("a");
        assert_eq!(failures.discarded("a").as_secs(), 5);
    }
}
