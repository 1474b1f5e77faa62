//! Errors in AMS's form.

use std::time::Duration;

use serde_json::{Value, json};

/// A refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) retry_after: Option<Duration>,
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn new(status: u16, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), retry_after: None }
    }

    /// AMS names no reason where a permission is missing.
    pub(super) fn forbidden() -> Self {
        Self::new(403, "")
    }

    pub(super) fn not_found(kind: &str, id: &str) -> Self {
        Self::new(404, format!("{kind} with id='{id}' not found"))
    }

    /// The error document.
    pub(super) fn json(&self) -> Value {
        let number = match self.status {
            401 => 15,
            403 => 11,
            404 => 7,
            429 => 429,
            400 => 21,
            _ => 9,
        };
        json!({
            "kind": "Error", "id": number.to_string(), "href": format!("/api/accounts_mgmt/v1/errors/{number}"),
            "code": format!("ACCT-MGMT-{number}"), "reason": self.reason, "details": [],
        })
    }

    /// The value of the header `Retry-After`: whole seconds, rounded up.
    pub(super) fn seconds(&self) -> Option<u64> {
        self.retry_after.map(|after| after.as_secs() + u64::from(after.subsec_nanos() > 0))
    }
}
