//! Health of a broker, for the publisher and for each subscriber.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::BrokerError;

/// Health of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// `Ok` if an event could be published now: the broker answers and accepts the identity.
    pub publisher: Result<(), BrokerError>,
    /// State of each consumer of this process, by its subscription and a number.
    pub subscribers: BTreeMap<String, Result<(), BrokerError>>,
}

/// States of a broker's consumers in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Register(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    last: u64,
    states: BTreeMap<String, Result<(), BrokerError>>,
}

/// A consumer's entry in the [`Register`]; dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct HealthEntry {
    key: String,
    register: Register,
}

/// Reports a consumer's state to the [`Register`].
#[derive(Clone, Debug)]
pub(crate) struct HealthReporter {
    key: String,
    register: Register,
}

// === impl Health ===

impl Health {
    /// Returns true if publisher and subscribers work.
    pub fn is_good(&self) -> bool {
        self.publisher.is_ok() && self.subscribers.values().all(Result::is_ok)
    }
}

// === impl Register ===

impl Register {
    pub(crate) fn add(&self, resource: &str, state: Result<(), BrokerError>) -> (HealthEntry, HealthReporter) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last += 1;
        let key = format!("{resource} #{}", entries.last);
        entries.states.insert(key.clone(), state);
        drop(entries);
        (HealthEntry { key: key.clone(), register: self.clone() }, HealthReporter { key, register: self.clone() })
    }

    pub(crate) fn states(&self) -> BTreeMap<String, Result<(), BrokerError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).states.clone()
    }
}

impl Drop for HealthEntry {
    fn drop(&mut self) {
        self.register.0.lock().unwrap_or_else(PoisonError::into_inner).states.remove(&self.key);
    }
}

// === impl HealthReporter ===

#[cfg_attr(not(any(feature = "pubsub", feature = "rabbitmq")), expect(dead_code, reason = "memory never fails"))]
impl HealthReporter {
    /// Reports the state; returns true if it was reported before.
    pub(crate) fn report(&self, state: Result<(), BrokerError>) -> bool {
        let mut entries = self.register.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The entry may have been removed already.
        let Some(entry) = entries.states.get_mut(&self.key) else { return false };
        let is_known = *entry == state;
        *entry = state;
        is_known
    }
}
