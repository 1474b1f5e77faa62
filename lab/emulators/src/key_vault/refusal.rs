//! Errors in Azure's form: a status, a code, perhaps an inner code, and a message.

use std::time::Duration;

use serde_json::{Value, json};

/// A refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    inner: Option<&'static str>,
    message: String,
    retry_after: Option<Duration>,
}

// === impl Refusal ===

impl Refusal {
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, inner: None, message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_parameter(message: impl Into<String>) -> Self {
        Self::new(400, "BadParameter", message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "Unauthorized", message)
    }

    pub(crate) fn forbidden(inner: &'static str, message: impl Into<String>) -> Self {
        Self { inner: Some(inner), ..Self::new(403, "Forbidden", message) }
    }

    pub(crate) fn conflict(inner: &'static str, message: impl Into<String>) -> Self {
        Self { inner: Some(inner), ..Self::new(409, "Conflict", message) }
    }

    /// There is no secret, or no version, of this name.
    pub(crate) fn not_found(name: &str) -> Self {
        let message = format!(
            "A secret with (name/id) {name} was not found in this key vault. If it was deleted, it may be recoverable."
        );
        Self::new(404, "SecretNotFound", message)
    }

    /// Entra has no such tenant; the code depends on the endpoint.
    pub(crate) fn no_tenant(code: &'static str, tenant: &str) -> Self {
        Self::new(400, code, format!("AADSTS90002: Tenant '{tenant}' not found."))
    }

    pub(crate) fn throttled() -> Self {
        Self::new(429, "Throttled", "Request was not processed because too many requests were received.")
    }

    #[must_use]
    pub(crate) fn with_retry(mut self, after: Option<Duration>) -> Self {
        self.retry_after = after;
        self
    }

    /// The value of the header `Retry-After`: whole seconds, rounded up.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.retry_after.map(|after| after.as_secs() + u64::from(after.subsec_nanos() > 0))
    }

    /// The error document.
    pub(crate) fn json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(inner), Some(members)) = (self.inner, error.as_object_mut()) {
            members.insert("innererror".to_owned(), json!({"code": inner}));
        }
        json!({ "error": error })
    }

    /// The error document of the token endpoint.
    pub(crate) fn oauth_json(&self) -> Value {
        let error = match (self.status, self.code) {
            (_, "BadParameter") => "invalid_request",
            (_, "Unauthorized") => "invalid_client",
            (400 | 401, code) => code,
            (429 | 503, _) => "temporarily_unavailable",
            _ => "server_error",
        };
        json!({"error": error, "error_description": self.message})
    }
}
