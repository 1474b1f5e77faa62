//! The vocabulary of the other adapters: their names, their states, and the namespaces that they make.

/// The adapters that come before the pull secret's.
pub(crate) const BEFORE: [&str; 3] = ["validation", "dns", "placement"];
/// The adapter that comes after it.
pub(crate) const AFTER: &str = "hypershift";

/// The state that an adapter reports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerState {
    /// Its work is done.
    Done,
    /// Its work cannot be done, for this reason and with this message.
    Blocked { reason: &'static str, message: &'static str },
    /// Nothing of its work is left.
    Finalized,
}

/// The namespace that placement creates for a cluster.
pub(crate) fn namespace(id: &str) -> String {
    format!("clusters-{id}")
}
