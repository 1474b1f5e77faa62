//! What Google's errors mean to the promise.

use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::Error;
use google_cloud_pubsub::error::PublishError;

use crate::error::{Action, BrokerError, Fault};

/// The error in our words. The broker's own are taken only from a proper status.
pub(super) fn classify(action: Action, resource: &str, error: &Error) -> BrokerError {
    if let Some(status) = error.status() {
        return BrokerError::new(action, resource, of_code(status.code)).with_detail(&status.message);
    }
    if let Some(code) = error.http_status_code() {
        let fault = match code {
            401 => Fault::Unauthenticated,
            403 => Fault::PermissionDenied,
            408 | 504 => Fault::TimedOut,
            400 => Fault::Misfit,
            _ => Fault::Unavailable,
        };
        return BrokerError::new(action, resource, fault).with_detail(format!("HTTP status {code}"));
    }
    let fault = if error.is_authentication() {
        Fault::Unauthenticated
    } else if error.is_timeout() {
        Fault::TimedOut
    } else if error.is_serialization() || error.is_binding() {
        Fault::Misfit
    } else if error.is_deserialization() {
        Fault::Internal
    } else {
        Fault::Unavailable
    };
    BrokerError::new(action, resource, fault)
}

pub(super) fn of_publication(topic: &str, error: &PublishError) -> BrokerError {
    match error {
        PublishError::Rpc(error) => classify(Action::Publish, topic, error),
        _ => BrokerError::new(Action::Publish, topic, Fault::Internal).with_detail(error),
    }
}

fn of_code(code: Code) -> Fault {
    match code {
        Code::NotFound => Fault::NotFound,
        Code::PermissionDenied => Fault::PermissionDenied,
        Code::Unauthenticated => Fault::Unauthenticated,
        Code::DeadlineExceeded => Fault::TimedOut,
        Code::Unavailable | Code::Aborted | Code::ResourceExhausted | Code::Cancelled => Fault::Unavailable,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::AlreadyExists => Fault::Misfit,
        _ => Fault::Internal,
    }
}
