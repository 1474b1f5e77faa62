//! Errors in Harbor's form, which is also that of registries.

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

    pub(super) fn unauthorized() -> Self {
        Self::new(401, "unauthorized")
    }

    pub(super) fn forbidden() -> Self {
        Self::new(403, "forbidden")
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(super) fn no_robot(id: u64) -> Self {
        Self::new(404, format!("robot {id} not found"))
    }

    /// The error document.
    pub(super) fn json(&self) -> Value {
        let code = match self.status {
            400 => "BAD_REQUEST",
            401 => "UNAUTHORIZED",
            403 => "FORBIDDEN",
            404 => "NOT_FOUND",
            409 => "CONFLICT",
            429 => "TOO_MANY_REQUEST",
            _ => "UNKNOWN",
        };
        json!({"errors": [{"code": code, "message": self.message}]})
    }

    /// The value of the header `Retry-After`: whole seconds, rounded up.
    pub(super) fn seconds(&self) -> Option<u64> {
        self.retry_after.map(|after| after.as_secs() + u64::from(after.subsec_nanos() > 0))
    }
}
