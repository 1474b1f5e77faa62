//! Failures of the phases.

use accounts_mgmt::AmsError;

use crate::ledger::LedgerError;
use crate::run::ClusterError;

/// A failed import, or a failed comparison.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ImportError {
    /// AMS.
    #[error(transparent)]
    Ams(#[from] AmsError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A cluster.
    #[error("{0}")]
    Cluster(#[from] ClusterError),
    /// There was no import.
    #[error("nothing was imported from AMS yet: run `pull-secret credentials ams import`")]
    NoImport,
    /// The name of the budget.
    #[error("the budget of AMS has no valid name")]
    Budget,
}
