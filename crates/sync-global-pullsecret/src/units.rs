//! The kubelet's unit: restarts it and verifies that it stays up.

mod systemd;

pub use systemd::{Systemd, UnitSettings};

/// The service manager of the kubelet.
///
/// Both futures may be dropped at any time; a restart that was requested goes on.
pub trait Units: Clone + 'static {
    /// Restarts the kubelet and waits for the end of the restart.
    fn restart(&self) -> impl Future<Output = Result<(), UnitError>>;

    /// Verifies that the kubelet stays up for the configured time.
    fn verify(&self) -> impl Future<Output = Result<(), UnitError>>;
}

/// The error of a restart or a verification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// systemd could not be reached, or is shutting the machine down: nothing was done.
    #[error("systemd cannot be reached: {0}")]
    Unreachable(String),
    /// The restart was refused, failed or took too long, or the kubelet did not stay up.
    #[error("{0}")]
    Failed(String),
}
