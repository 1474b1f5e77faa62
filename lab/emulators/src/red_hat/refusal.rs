//! Refused calls.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http_faults::Refused;

/// A refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    message: String,
    retry_after: Option<Duration>,
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    pub(super) fn scripted(refused: Refused) -> Self {
        let Refused { status, retry_after } = refused;
        Self { retry_after, ..Self::new(status, "Scripted fault") }
    }

    pub(super) fn no_account() -> Self {
        Self::new(404, "404: Service Account not found")
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(401, "unauthorized")
    }

    /// The error document.
    pub(super) fn json(&self) -> Value {
        json!({"message": self.message})
    }

    /// The value of the header `Retry-After`: whole seconds, rounded up.
    pub(super) fn seconds(&self) -> Option<u64> {
        self.retry_after.map(|after| after.as_secs() + u64::from(after.subsec_nanos() > 0))
    }
}
