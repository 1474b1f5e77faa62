//! Whether a broker works, publisher and subscribers told apart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::BrokerError;

/// Whether a broker works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether an event could be published now: the broker answers, and accepts us.
    pub publisher: Result<(), BrokerError>,
    /// Whether each consumer of this process receives, by its subscription and a number.
    pub subscribers: BTreeMap<String, Result<(), BrokerError>>,
}

/// What all consumers of a broker in this process have to tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Register(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    last: u64,
    states: BTreeMap<String, Result<(), BrokerError>>,
}

/// What one consumer has to tell; it is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    key: String,
    register: Register,
}

/// The end by which a consumer tells.
#[derive(Clone, Debug)]
pub(crate) struct Teller {
    key: String,
    register: Register,
}

// === impl Health ===

impl Health {
    /// Whether everything works.
    pub fn is_good(&self) -> bool {
        self.publisher.is_ok() && self.subscribers.values().all(Result::is_ok)
    }
}

// === impl Register ===

impl Register {
    pub(crate) fn watch(&self, resource: &str, state: Result<(), BrokerError>) -> (Watch, Teller) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last += 1;
        let key = format!("{resource} #{}", entries.last);
        entries.states.insert(key.clone(), state);
        drop(entries);
        (Watch { key: key.clone(), register: self.clone() }, Teller { key, register: self.clone() })
    }

    pub(crate) fn states(&self) -> BTreeMap<String, Result<(), BrokerError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).states.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.register.0.lock().unwrap_or_else(PoisonError::into_inner).states.remove(&self.key);
    }
}

// === impl Teller ===

#[cfg_attr(not(any(feature = "pubsub", feature = "rabbitmq")), expect(dead_code, reason = "memory never fails"))]
impl Teller {
    pub(crate) fn tell(&self, state: Result<(), BrokerError>) {
        let mut entries = self.register.0.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have been forgotten already.
        if let Some(entry) = entries.states.get_mut(&self.key) {
            *entry = state;
        }
    }
}
