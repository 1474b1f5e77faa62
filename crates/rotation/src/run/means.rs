//! The means of a run, and the causes for which it is cut off.

use hyperfleet_client::Calls;
use tokio_util::sync::CancellationToken;

use crate::record::{RecordError, Records};
use crate::source::{SourceError, Sources};

/// The means of a run.
#[derive(Debug)]
pub struct Run<'a> {
    /// The API.
    pub calls: Calls<'a>,
    /// The records of rotations.
    pub records: &'a Records,
    /// The new pull secrets.
    pub sources: &'a Sources,
    /// The name of the rotation.
    pub name: &'a str,
    /// The name of this process, and of the identity that it has.
    pub identity: &'a str,
    /// Ends the run, which can be resumed.
    pub stop: &'a CancellationToken,
}

/// The cause for which a run could not begin, or was cut off.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The record cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The new pull secrets are not those of the plan.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The Lease could not be renewed, or another process has gone on without this one.
    #[error(
        "the Lease {0} was not renewed in time: another process may have gone on with the rotation or ended it, so this one \
         ends; see `pull-secret rotate status`"
    )]
    LeaseLost(String),
}
