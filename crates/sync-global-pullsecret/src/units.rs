//! The kubelet's unit: restarting it, and seeing whether it stays up.

mod systemd;

pub use systemd::{Systemd, UnitSettings};

/// Whoever starts and stops the kubelet.
///
/// Both calls may be dropped at any time: what was asked for goes on without us.
pub trait Units: Clone + 'static {
    /// Restarts the kubelet and waits until that has ended.
    fn restart(&self) -> impl Future<Output = Result<(), UnitError>>;

    /// Watches the kubelet for as long as it must stay up.
    fn prove(&self) -> impl Future<Output = Result<(), UnitError>>;
}

/// Why a restart, or a watch, did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Nobody could be asked, or whoever was asked is about to shut the machine down: nothing was done.
    #[error("systemd cannot be asked: {0}")]
    Unreachable(String),
    /// The restart was refused, failed or took too long, or the kubelet did not stay up.
    #[error("{0}")]
    Bad(String),
}
