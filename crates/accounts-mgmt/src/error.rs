//! Operations on AMS and kinds of their failures.

use std::fmt;

use daemon::exchange::{HttpKind, Unanswered};
use daemon::service_error::{Kind, ServiceError};

/// Operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Set up the client.
    Connect,
    /// Get an access token from the SSO.
    Authenticate,
    /// [`credentials`](crate::Accounts::credentials)
    List,
    /// [`count`](crate::Accounts::count)
    Count,
    /// [`registry`](crate::Accounts::registry)
    ReadRegistry,
    /// [`credential`](crate::Accounts::credential)
    Read,
    /// [`delete`](crate::Accounts::delete)
    Delete,
}

/// Kind of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The identity lacks a permission; AMS often gives no reason.
    PermissionDenied,
    /// AMS, or its SSO, does not accept the identity.
    Unauthenticated,
    /// AMS rejects the request as invalid.
    Invalid,
    /// AMS throttled the request.
    TooManyRequests,
    /// AMS could not be reached or cannot answer now; the operation may have been carried out.
    Unavailable,
    /// No answer came in time; the operation may have been carried out.
    TimedOut,
    /// AMS failed, or its answer cannot be read; the operation may have been carried out.
    Internal,
}

/// A call of AMS that failed; `resource` is the id of a credential or registry, or the server's address.
pub type AmsError = ServiceError<ErrorKind>;

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "set up the client of AMS at",
            Self::Authenticate => "get an access token from",
            Self::List => "list the registry credentials of AMS at",
            Self::Count => "count the credentials that AMS has for registry",
            Self::ReadRegistry => "read the registry of AMS",
            Self::Read => "read the registry credential of AMS",
            Self::Delete => "delete the registry credential of AMS",
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PermissionDenied => "permission denied",
            Self::Unauthenticated => "not authenticated",
            Self::Invalid => "the request is refused as invalid",
            Self::TooManyRequests => "too many requests",
            Self::Unavailable => "not available",
            Self::TimedOut => "no answer in time",
            Self::Internal => "the server failed, or its answer cannot be read",
        })
    }
}

impl Kind for ErrorKind {
    type Operation = Operation;

    fn is_transient(self) -> bool {
        matches!(self, Self::TooManyRequests | Self::Unavailable | Self::TimedOut | Self::Internal)
    }

    fn hint(self, _operation: Operation) -> Option<String> {
        let hint = match self {
            Self::PermissionDenied => {
                "grant the service account permission to read and delete registry credentials in AMS"
            }
            Self::Unauthenticated => "check `ams.client_id`, the file `ams.client_secret_file`, and `ams.token_url`",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl HttpKind for ErrorKind {
    fn of_unanswered(unanswered: &Unanswered) -> Self {
        match unanswered {
            Unanswered::Broken(_) => Self::Unavailable,
            Unanswered::TooLong(_) => Self::Internal,
            Unanswered::TimedOut => Self::TimedOut,
        }
    }
}

// === impl ErrorKind ===

impl ErrorKind {
    /// Returns the kind of a status that no operation expects.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            408 | 504 => Self::TimedOut,
            429 => Self::TooManyRequests,
            502 | 503 => Self::Unavailable,
            400..=499 => Self::Invalid,
            _ => Self::Internal,
        }
    }
}
