//! Maps Google's errors to [`BrokerError`].

use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::Error;
use google_cloud_pubsub::error::PublishError;

use crate::error::{BrokerError, ErrorKind, Operation};

/// Maps an error of the client library. Its text is the detail only if it comes from a status.
pub(super) fn classify(operation: Operation, resource: &str, error: &Error) -> BrokerError {
    if let Some(status) = error.status() {
        return BrokerError::new(operation, resource, of_code(status.code)).with_detail(&status.message);
    }
    if let Some(code) = error.http_status_code() {
        let kind = match code {
            401 => ErrorKind::Unauthenticated,
            403 => ErrorKind::PermissionDenied,
            408 | 504 => ErrorKind::TimedOut,
            400 => ErrorKind::Incompatible,
            _ => ErrorKind::Unavailable,
        };
        return BrokerError::new(operation, resource, kind).with_detail(format!("HTTP status {code}"));
    }
    let kind = if error.is_authentication() {
        ErrorKind::Unauthenticated
    } else if error.is_timeout() {
        ErrorKind::TimedOut
    } else if error.is_serialization() || error.is_binding() {
        ErrorKind::Incompatible
    } else if error.is_deserialization() {
        ErrorKind::Internal
    } else {
        ErrorKind::Unavailable
    };
    BrokerError::new(operation, resource, kind)
}

pub(super) fn of_publication(topic: &str, error: &PublishError) -> BrokerError {
    match error {
        PublishError::Rpc(error) => classify(Operation::Publish, topic, error),
        _ => BrokerError::new(Operation::Publish, topic, ErrorKind::Internal).with_detail(error),
    }
}

/// Accepts that an object exists already.
pub(super) fn accept_existing(path: &str, created: Result<(), Error>) -> Result<(), BrokerError> {
    match created {
        Err(error) if error.status().is_some_and(|status| status.code == Code::AlreadyExists) => Ok(()),
        Err(error) if error.http_status_code() == Some(409) => Ok(()),
        created => created.map_err(|error| classify(Operation::Prepare, path, &error)),
    }
}

fn of_code(code: Code) -> ErrorKind {
    match code {
        Code::NotFound => ErrorKind::NotFound,
        Code::PermissionDenied => ErrorKind::PermissionDenied,
        Code::Unauthenticated => ErrorKind::Unauthenticated,
        Code::DeadlineExceeded => ErrorKind::TimedOut,
        Code::Unavailable | Code::Aborted | Code::ResourceExhausted | Code::Cancelled => ErrorKind::Unavailable,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::AlreadyExists => ErrorKind::Incompatible,
        _ => ErrorKind::Internal,
    }
}
