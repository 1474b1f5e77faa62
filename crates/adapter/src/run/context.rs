//! The parts of the adapter that all reconcile passes share.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hyperfleet_client::Client;
use kubernetes::{Cluster, JobCache};

use crate::config::Plan as Config;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::store_check::findings::Findings;

/// Number of failed passes in a row after which the failure is reported: one may pass by itself.
const FAILED_PASSES_BEFORE_REPORT: u32 = 3;
/// Maximum number of resources whose failures are counted.
const MAX_FAILING: usize = 100_000;

/// Clients, configuration and counters that all reconcile passes share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) job_cache: JobCache,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Mutex<Limits>,
    pub(crate) failures: Mutex<Failures>,
    pub(crate) findings: Mutex<Findings>,
}

/// The numbers of passes that have failed in a row, by resource.
#[derive(Debug, Default)]
pub(crate) struct Failures(BTreeMap<String, u32>);

impl Failures {
    /// Counts a failed pass; returns true if so many have failed in a row that the failure is reported.
    pub(crate) fn count(&mut self, id: &str) -> bool {
        if self.0.len() >= MAX_FAILING && !self.0.contains_key(id) {
            return false;
        }
        let failed = self.0.entry(id.to_owned()).or_default();
        *failed = failed.saturating_add(1);
        *failed >= FAILED_PASSES_BEFORE_REPORT
    }

    /// Forgets the failures of a resource after a pass that has succeeded.
    pub(crate) fn clear(&mut self, id: &str) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_from_the_third_in_a_row() {
        let mut failures = Failures::default();
        assert_eq!([(); 4].map(|()| failures.count("a")), [false, false, true, true]);
        assert!(!failures.count("b"));
        failures.clear("a");
        assert!(!failures.count("a"));
    }
}
