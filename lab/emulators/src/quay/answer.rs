//! An answer before it is written.

use serde_json::Value;

/// An answer that is no refusal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Null if it has no body.
    pub(crate) body: Value,
    pub(crate) digest: Option<String>,
}

// === impl Answer ===

impl Answer {
    pub(crate) fn of(body: Value) -> Self {
        Self { status: 200, body, digest: None }
    }

    pub(crate) fn created(body: Value) -> Self {
        Self { status: 201, ..Self::of(body) }
    }

    pub(crate) fn empty() -> Self {
        Self { status: 204, ..Self::of(Value::Null) }
    }
}
