//! Errors in Quay's forms.

use std::time::Duration;

use serde_json::{Value, json};

use super::form::Form;

/// A refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) form: Form,
    /// The type of a problem, the code of a registry's error; not used of a message only.
    kind: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

// === impl Refusal ===

impl Refusal {
    fn new(status: u16, form: Form, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, form, kind, message: message.into(), retry_after: None }
    }

    /// The API does not take the request.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, Form::Api, "invalid_request", message)
    }

    /// Stored data contradict the request.
    pub(crate) fn short(message: impl Into<String>) -> Self {
        Self::new(400, Form::Short, "", message)
    }

    pub(crate) fn unknown_robot() -> Self {
        Self::short("Could not find robot with specified username")
    }

    /// The API's token is missing, unknown or expired.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(401, Form::Api, "invalid_token", "Requires authentication")
    }

    /// The API's token does not reach so far.
    pub(crate) fn forbidden() -> Self {
        Self::new(403, Form::Api, "insufficient_scope", "Unauthorized")
    }

    pub(crate) fn not_found() -> Self {
        Self::new(404, Form::Api, "not_found", "Not Found")
    }

    /// A registry's client has no right, or wrong credentials.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, Form::Registry, "UNAUTHORIZED", message)
    }

    pub(crate) fn registry(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self::new(status, Form::Registry, code, message)
    }

    /// Nothing is shown for an exchange.
    pub(crate) fn missing_credentials() -> Self {
        Self::new(401, Form::Error, "", "missing auth")
    }

    /// Quay's own code failed.
    pub(crate) fn internal(form: Form) -> Self {
        Self::scripted(500, form, "Internal Server Error")
    }

    /// An answer of a proxy or of a server that fails.
    pub(crate) fn scripted(status: u16, form: Form, message: impl Into<String>) -> Self {
        let kind = match (form, status) {
            (Form::Registry, 429) => "TOOMANYREQUESTS",
            (Form::Registry, 401) => "UNAUTHORIZED",
            (Form::Registry, 403) => "DENIED",
            (Form::Registry, _) => "UNKNOWN",
            (_, 401) => "invalid_token",
            (_, 403) => "insufficient_scope",
            (_, 404) => "not_found",
            _ => "downstream_issue",
        };
        Self::new(status, form, kind, message)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
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

    /// The challenge of the API's 401; a registry's names the address of its token service.
    pub(crate) fn challenge(&self, realm: &str, service: &str) -> Option<String> {
        match (self.status, self.form) {
            (401, Form::Api) => Some(format!("Bearer error=\"{}\" error_description=\"{}\"", self.kind, self.message)),
            (401, Form::Registry) => Some(format!("Bearer realm=\"{realm}\",service=\"{service}\"")),
            _ => None,
        }
    }

    /// The error document; `base` is the address of this server as the caller wrote it.
    pub(crate) fn json(&self, base: &str) -> Value {
        let Self { status, kind, message, .. } = self;
        match self.form {
            Form::Short => json!({ "message": message }),
            Form::Error => json!({ "error": message }),
            Form::Registry => json!({"errors": [{"code": kind, "message": message, "detail": {}}]}),
            Form::Api => json!({
                "detail": message, "error_message": message, "error_type": kind, "title": kind,
                "type": format!("{base}/api/v1/error/{kind}"), "status": status,
            }),
        }
    }
}
