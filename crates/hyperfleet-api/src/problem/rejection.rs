//! A request that was not carried out: the problem for the client, and the cause for the log.

use daemon::log;

use super::Problem;
use crate::decide::body::BodyError;
use crate::service::Failure;
use crate::store::StoreError;

/// A request that was not carried out.
#[derive(Debug)]
pub struct Rejection {
    /// The answer to the client.
    pub problem: Problem,
    /// The cause for the log, with the database's own text; `None` if the problem's detail says it all.
    pub cause: Option<String>,
}

// === impl Rejection ===

impl Rejection {
    /// Returns the cause for the log.
    pub fn cause(&self) -> &str {
        self.cause.as_deref().unwrap_or(&self.problem.detail)
    }
}

impl From<Problem> for Rejection {
    fn from(problem: Problem) -> Self {
        Self { problem, cause: None }
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Self {
        Problem::from(&error).into()
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        let cause = match &failure {
            Failure::Store(error) => Some(log::causes(error)),
            Failure::Mapping(error) => Some(log::causes(error)),
            Failure::Unevaluated(_) => Some(log::causes(&failure)),
            _ => None,
        };
        Self { problem: Problem::from(&failure), cause }
    }
}

impl From<StoreError> for Rejection {
    fn from(error: StoreError) -> Self {
        Failure::Store(error).into()
    }
}
