//! Versions that were passed over without their record.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::SecretId;

/// The secrets of which this client has seen a version that is not the one that readers get, by the id of that one. A caller that saw
/// such a version as disabled decides without its record, so the next addition is on top of this current version and no other.
#[derive(Default)]
pub(crate) struct PassedOver(Mutex<BTreeMap<SecretId, String>>);

// === impl PassedOver ===

impl PassedOver {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SecretId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a version that is disabled, and the current one then. The first note stays: what has become current since may be
    /// what was passed over.
    pub(crate) fn note(&self, secret: &SecretId, current: Option<String>) {
        if let Some(current) = current {
            self.lock().entry(secret.clone()).or_insert(current);
        }
    }

    /// Forgets a secret: the current version was seen itself.
    pub(crate) fn forget(&self, secret: &SecretId) {
        self.lock().remove(secret);
    }

    /// Returns false if another version than the noted one is current now; it is looked at anew then.
    pub(crate) fn still_holds(&self, secret: &SecretId, current: Option<&str>) -> bool {
        self.lock().remove(secret).is_none_or(|noted| current == Some(noted.as_str()))
    }
}
