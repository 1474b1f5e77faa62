//! A binding of a robot to the tokens of a cluster.

use serde::Serialize;

/// An issuer and a subject whose tokens stand for a robot. The audiences that callers ask for are dropped, as in Quay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Binding {
    pub(super) issuer: String,
    pub(super) subject: String,
}
