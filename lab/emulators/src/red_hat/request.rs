//! A call as it was read.

use serde_json::Value;

use super::operation::Operation;
use super::refusal::Refusal;
use crate::basic::Basic;

/// A call. It holds credentials, and is never printed.
pub(super) struct Request {
    pub(super) operation: Operation,
    /// The partner of a call of the API.
    pub(super) partner: Option<String>,
    /// The name of an account, or a repository.
    pub(super) target: String,
    /// The tag or digest of a manifest.
    pub(super) reference: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) authorization: Option<String>,
}

// === impl Request ===

impl Request {
    /// The first value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn document(&self) -> Result<Value, Refusal> {
        let parsed = serde_json::from_slice::<Value>(&self.body).ok().filter(Value::is_object);
        parsed.ok_or_else(|| Refusal::new(400, "400: the body is no object"))
    }

    pub(super) fn basic(&self) -> Option<Basic> {
        Some(Basic::read(self.authorization.as_deref()?))
    }

    pub(super) fn bearer(&self) -> Option<&str> {
        self.authorization.as_deref()?.strip_prefix("Bearer ")
    }
}
