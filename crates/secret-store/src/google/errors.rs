//! Maps Google's errors to [`StoreError`].

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use daemon::{calls, causes};
use google_cloud_gax::error::CredentialsError;
use google_cloud_gax::error::rpc::{Code, Status, StatusDetails};
use google_cloud_secretmanager_v1::Error;

use crate::error::{ErrorKind, Operation};
use crate::{StoreError, Version};

use super::permission;

/// Limit of the delay that an answer may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// Returns an error with Google's remedy.
pub(super) fn failed(operation: Operation, resource: impl fmt::Display, kind: ErrorKind) -> StoreError {
    StoreError { hint: hint(operation, kind), ..StoreError::new(operation, resource, kind) }
}

/// Maps an error of the client library. Its text is the detail only if it comes from a status: other texts may quote
/// content.
pub(super) fn classify(operation: Operation, resource: &str, error: &Error) -> StoreError {
    let (kind, detail) = if let Some(status) = error.status() {
        let kind = match (status.code, error.http_status_code()) {
            // No canonical code: not the store itself, but a front end or proxy of its kind.
            (Code::Unknown, Some(code)) => of_http(code),
            _ => of_status(operation, status),
        };
        (kind, status.message.clone())
    } else if let Some(code) = error.http_status_code() {
        (of_http(code), format!("HTTP status {code}"))
    } else if error.is_authentication() {
        of_authentication(error)
    } else if error.is_timeout() {
        (ErrorKind::TimedOut, String::new())
    } else if error.is_serialization() || error.is_binding() {
        (ErrorKind::Invalid, String::new())
    } else if error.is_deserialization() {
        (ErrorKind::Internal, "the answer cannot be read".to_owned())
    } else {
        (ErrorKind::Unavailable, causes::innermost(error))
    };
    let detail = match permission::needed_by(operation).filter(|_| kind == ErrorKind::PermissionDenied) {
        Some(permission) => format!("needs {}; {detail}", permission::name(permission)),
        None => detail,
    };
    StoreError { retry_after: retry_after(error), ..failed(operation, resource, kind).with_detail(detail) }
}

/// Returns the HTTP status of an answer that is an error; of a call without an answer that of its cause.
pub(super) fn status_code(error: &Error) -> u16 {
    if let Some(code) = error.http_status_code() {
        code
    } else if error.is_authentication() {
        401
    } else if error.is_timeout() {
        calls::TIMED_OUT
    } else if error.is_serialization() || error.is_binding() {
        400
    } else if error.is_deserialization() {
        200
    } else {
        calls::UNREACHABLE
    }
}

fn hint(operation: Operation, kind: ErrorKind) -> Option<String> {
    let hint = match kind {
        ErrorKind::PermissionDenied => match permission::needed_by(operation) {
            Some(permission) => {
                return Some(format!(
                    "grant the Job's service account {} (or roles/secretmanager.admin) and check the Workload \
                     Identity binding",
                    permission::name(permission)
                ));
            }
            None => "check the roles of the Job's service account",
        },
        ErrorKind::ApiDisabled => "run: gcloud services enable secretmanager.googleapis.com",
        ErrorKind::Unauthenticated => {
            "in a cluster, check the Workload Identity binding of the Job's service account; on a workstation, \
             run: gcloud auth application-default login"
        }
        ErrorKind::QuotaExceeded => "ask for a higher Secret Manager quota, or run fewer Jobs of this project at once",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Describes credentials that cannot be used. The library's messages are not forwarded: they quote the file.
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

/// Returns the state of a version that cannot be read.
///
/// Google has no code for the states; External Secrets Operator relies on these texts too.
pub(super) fn version_state(error: StoreError) -> Result<Version, StoreError> {
    let detail = error.detail.as_deref().unwrap_or_default();
    match error.kind {
        ErrorKind::NotFound => Ok(Version::Absent),
        ErrorKind::Invalid if detail.contains("DISABLED state") => Ok(Version::Disabled),
        ErrorKind::Invalid if detail.contains("DESTROYED state") => Ok(Version::Destroyed),
        _ => Err(error),
    }
}

/// Accepts that the version is destroyed already.
pub(super) fn accept_destroyed(error: StoreError) -> Result<(), StoreError> {
    let detail = error.detail.as_deref().unwrap_or_default();
    if error.kind == ErrorKind::Invalid && detail.contains("DESTROYED") { Ok(()) } else { Err(error) }
}

fn of_status(operation: Operation, status: &Status) -> ErrorKind {
    // Only these writes carry an etag, and a precondition of theirs that fails is the etag's.
    let has_etag = matches!(operation, Operation::Update | Operation::Delete);
    match status.code {
        Code::FailedPrecondition | Code::Aborted if has_etag => ErrorKind::Changed,
        Code::NotFound => ErrorKind::NotFound,
        Code::AlreadyExists => ErrorKind::AlreadyExists,
        Code::PermissionDenied if reason(status) == Some("SERVICE_DISABLED") => ErrorKind::ApiDisabled,
        Code::PermissionDenied => ErrorKind::PermissionDenied,
        Code::Unauthenticated => ErrorKind::Unauthenticated,
        Code::ResourceExhausted => ErrorKind::QuotaExceeded,
        Code::Unavailable | Code::Aborted => ErrorKind::Unavailable,
        Code::DeadlineExceeded => ErrorKind::TimedOut,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange | Code::Unimplemented => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}

/// Maps an answer that is not of the store itself but of a proxy or load balancer: its 404 says nothing about secrets.
fn of_http(code: u16) -> ErrorKind {
    match code {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        408 | 504 => ErrorKind::TimedOut,
        429 => ErrorKind::QuotaExceeded,
        300..=499 => ErrorKind::Invalid,
        500 => ErrorKind::Internal,
        _ => ErrorKind::Unavailable,
    }
}

fn of_authentication(error: &Error) -> (ErrorKind, String) {
    let credentials = error.source().and_then(|source| source.downcast_ref::<CredentialsError>());
    let is_transient = credentials.is_some_and(CredentialsError::is_transient);
    let kind = if is_transient { ErrorKind::Unavailable } else { ErrorKind::Unauthenticated };
    let message = credentials.map(ToString::to_string).unwrap_or_default();
    // The rest is the token server's answer, which may contain a token.
    let message = message.split(", body=").next().unwrap_or_default();
    (kind, format!("no token: {message}"))
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
    in_status.or_else(in_header).map(|wait: Duration| wait.min(MAX_RETRY_AFTER))
}
