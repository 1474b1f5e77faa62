//! Records the calls of a run to a service: operation, status of the answer, time until it came.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Status of a call whose service could not be reached, as gRPC's clients have it (`UNAVAILABLE`).
pub const UNREACHABLE: u16 = 503;
/// Status of a call without an answer in time, as gRPC's clients have it (`DEADLINE_EXCEEDED`).
pub const TIMED_OUT: u16 = 504;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Operation, such as `add_secret_version`.
    pub operation: Cow<'static, str>,
    /// HTTP status of the answer; [`UNREACHABLE`] or [`TIMED_OUT`] if there was none.
    pub status_code: u16,
    /// Time from the request to the answer.
    pub took: Duration,
}

/// The calls of a run. Clones share them. It keeps each call, so it is for programs that run once.
#[derive(Clone, Debug, Default)]
pub struct CallLog(Arc<Mutex<Vec<Call>>>);

impl CallLog {
    /// Adds a call.
    pub fn record(&self, operation: impl Into<Cow<'static, str>>, status_code: u16, took: Duration) {
        let call = Call { operation: operation.into(), status_code, took };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
