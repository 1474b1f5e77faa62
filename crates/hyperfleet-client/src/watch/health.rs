//! Health of a watch.

use std::sync::Arc;

use crate::error::Error;

/// Health of a watch.
#[derive(Clone, Debug, Default)]
pub enum Health {
    /// Not connected yet.
    #[default]
    Connecting,
    /// Changes are received through the API's change stream.
    Streaming,
    /// The API has no change stream; changes are found by comparing lists.
    Polling,
    /// No changes are received, because of this error; retrying.
    Failing(Arc<Error>),
}
