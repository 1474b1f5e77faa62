//! The findings that wait for a repair, by resource.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::decide::StoredDrift;

/// The findings that no run has repaired yet.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeMap<String, StoredDrift>);

impl Findings {
    /// Adds or replaces the finding about a resource.
    pub(crate) fn insert(&mut self, id: &str, drift: StoredDrift) {
        self.0.insert(id.to_owned(), drift);
    }

    /// Returns the finding about a resource.
    pub(crate) fn get(&self, id: &str) -> Option<StoredDrift> {
        self.0.get(id).cloned()
    }

    /// Removes the finding about a resource: a run repairs it, or the store was found as reported.
    pub(crate) fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Removes what was read before this time: resources that are gone, or are not reported as available any more.
    pub(crate) fn expire(&mut self, before: Timestamp) {
        self.0.retain(|_, drift| drift.read >= before);
    }

    /// Returns the number of findings.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
