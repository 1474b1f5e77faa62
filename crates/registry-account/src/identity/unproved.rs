//! The failure of an identity.

use crate::error::ErrorKind;

/// The identity cannot be proved for a request.
pub(crate) struct Unproved {
    /// `Unavailable` if another attempt may help.
    pub(crate) kind: ErrorKind,
    pub(crate) detail: String,
}

// === impl Unproved ===

impl Unproved {
    /// No proof for now: a service that gives it does not answer.
    pub(super) fn for_now(detail: &str) -> Self {
        Self { kind: ErrorKind::Unavailable, detail: detail.to_owned() }
    }
}

impl From<String> for Unproved {
    fn from(detail: String) -> Self {
        Self { kind: ErrorKind::Unauthenticated, detail }
    }
}
