//! Conversion of Google's errors into those of the contract.

use std::error::Error as _;
use std::time::Duration;

use google_cloud_gax::error::CredentialsError;
use google_cloud_gax::error::rpc::{Code, Status, StatusDetails};
use google_cloud_secretmanager_v1::Error;

use crate::error::{Fault, Operation};
use crate::{StoreError, Version};

/// Beyond this, a store's wish to be left alone is taken for nonsense: added to the clock it would overflow.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// The error in our words. The store's own words are taken only from a proper status: other texts may quote content.
pub(super) fn classify(operation: Operation, resource: &str, error: &Error) -> StoreError {
    let mut classified = if let Some(status) = error.status() {
        let fault = match (status.code, error.http_status_code()) {
            // No canonical code: not the store itself, but a front end or proxy of its kind.
            (Code::Unknown, Some(code)) => of_http(code),
            _ => of_status(operation, status),
        };
        StoreError::new(operation, resource, fault).with_detail(&status.message)
    } else if let Some(code) = error.http_status_code() {
        StoreError::new(operation, resource, of_http(code)).with_detail(&format!("HTTP status {code}"))
    } else if error.is_authentication() {
        of_authentication(operation, resource, error)
    } else if error.is_timeout() {
        StoreError::new(operation, resource, Fault::TimedOut)
    } else if error.is_serialization() || error.is_binding() {
        StoreError::new(operation, resource, Fault::Invalid)
    } else if error.is_deserialization() {
        StoreError::new(operation, resource, Fault::Internal).with_detail("the answer cannot be read")
    } else {
        StoreError::new(operation, resource, Fault::Unavailable).with_detail(&innermost(error))
    };
    classified.retry_after = retry_after(error);
    classified
}

/// The fault of the credentials. The library's messages are not forwarded: they quote the file.
pub(super) fn of_credentials(error: &google_cloud_auth::build_errors::Error) -> &'static str {
    if error.is_loading() {
        "the credentials file cannot be read"
    } else if error.is_parsing() {
        "the credentials file cannot be parsed"
    } else if error.is_unknown_type() {
        "the credentials file is of an unknown type"
    } else if error.is_missing_field() {
        "the credentials file lacks a field"
    } else {
        "the credentials cannot be used"
    }
}

/// Reading a version that cannot be read fails in ways that tell its state. The texts are those that others rely on
/// too (External Secrets Operator); there is no code of its own for them.
pub(super) fn version_state(error: StoreError) -> Result<Version, StoreError> {
    let detail = error.detail.as_deref().unwrap_or_default();
    match error.fault {
        Fault::NotFound => Ok(Version::Absent),
        Fault::Invalid if detail.contains("DISABLED state") => Ok(Version::Disabled),
        Fault::Invalid if detail.contains("DESTROYED state") => Ok(Version::Destroyed),
        _ => Err(error),
    }
}

/// Destroying a destroyed version has nothing left to do.
pub(super) fn destroyed_already(error: StoreError) -> Result<(), StoreError> {
    let detail = error.detail.as_deref().unwrap_or_default();
    if error.fault == Fault::Invalid && detail.contains("DESTROYED") { Ok(()) } else { Err(error) }
}

fn of_status(operation: Operation, status: &Status) -> Fault {
    // Only these writes carry an etag, and a precondition of theirs that fails is the etag's.
    let has_etag = matches!(operation, Operation::Update | Operation::Delete);
    match status.code {
        Code::FailedPrecondition | Code::Aborted if has_etag => Fault::Changed,
        Code::NotFound => Fault::NotFound,
        Code::AlreadyExists => Fault::AlreadyExists,
        Code::PermissionDenied if reason(status) == Some("SERVICE_DISABLED") => Fault::ApiDisabled,
        Code::PermissionDenied => Fault::PermissionDenied,
        Code::Unauthenticated => Fault::Unauthenticated,
        Code::ResourceExhausted => Fault::QuotaExceeded,
        Code::Unavailable | Code::Aborted => Fault::Unavailable,
        Code::DeadlineExceeded => Fault::TimedOut,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange | Code::Unimplemented => Fault::Invalid,
        _ => Fault::Internal,
    }
}

/// Something that is not the store answered: a proxy, a load balancer, another server. Its 404 says nothing about
/// secrets.
fn of_http(code: u16) -> Fault {
    match code {
        401 => Fault::Unauthenticated,
        403 => Fault::PermissionDenied,
        408 | 504 => Fault::TimedOut,
        429 => Fault::QuotaExceeded,
        300..=499 => Fault::Invalid,
        500 => Fault::Internal,
        _ => Fault::Unavailable,
    }
}

fn of_authentication(operation: Operation, resource: &str, error: &Error) -> StoreError {
    let credentials = error.source().and_then(|source| source.downcast_ref::<CredentialsError>());
    let transient = credentials.is_some_and(CredentialsError::is_transient);
    let fault = if transient { Fault::Unavailable } else { Fault::Unauthenticated };
    let words = credentials.map(ToString::to_string).unwrap_or_default();
    // The rest is the token server's answer, which may contain a token.
    let words = words.split(", body=").next().unwrap_or_default();
    StoreError::new(operation, resource, fault).with_detail(&format!("no token: {words}"))
}

fn reason(status: &Status) -> Option<&str> {
    status.details.iter().find_map(|detail| match detail {
        StatusDetails::ErrorInfo(info) => Some(info.reason.as_str()),
        _ => None,
    })
}

fn retry_after(error: &Error) -> Option<Duration> {
    let in_status = error.status().and_then(|status| {
        status.details.iter().find_map(|detail| match detail {
            StatusDetails::RetryInfo(info) => info.retry_delay?.try_into().ok(),
            _ => None,
        })
    });
    let in_header = || {
        let seconds = error.http_headers()?.get(http::header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    };
    in_status.or_else(in_header).map(|wait: Duration| wait.min(LONGEST_WAIT))
}

/// The last cause of a failure to reach the store, such as "connection refused".
fn innermost(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
