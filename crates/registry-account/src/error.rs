//! Operations on accounts and kinds of their failures.

use std::fmt;

use daemon::service_error::{Kind, ServiceError};

/// Operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Set up the client: address and identity.
    Connect,
    /// [`create`](crate::Registry::create)
    Create,
    /// [`find`](crate::Registry::find)
    Find,
    /// [`permit`](crate::Registry::permit)
    Permit,
    /// [`usage`](crate::Registry::usage)
    Usage,
    /// [`disable`](crate::Registry::disable)
    Disable,
    /// [`delete`](crate::Registry::delete)
    Delete,
    /// [`list`](crate::Registry::list)
    List,
    /// Set up the permissions that all accounts share.
    Prepare,
    /// Read or change the issuers whose tokens an account accepts.
    Federate,
}

/// Kind of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The account does not exist.
    NotFound,
    /// An account of that name exists, or has existed, for another credential: the name is spent.
    NameTaken,
    /// The registry has kept something else than what was sent. The account may exist; its name is spent.
    Corrupt,
    /// The answer that held the password was lost, and the account cannot get another one. Its name is spent.
    PasswordLost,
    /// The things that accounts share are not set up.
    NotPrepared,
    /// The identity lacks the permission of the operation. Some registries answer so about an organization that does not exist.
    PermissionDenied,
    /// The registry does not accept the identity, or there is none.
    Unauthenticated,
    /// The registry rejects the request as invalid.
    Invalid,
    /// The registry cannot do that: see its capabilities.
    Unsupported,
    /// The registry's rate is exhausted for now.
    QuotaExceeded,
    /// The registry could not be reached or cannot answer now; the operation may have been carried out.
    Unavailable,
    /// No answer came in time; the operation may have been carried out.
    TimedOut,
    /// The registry failed, or its answer cannot be read; the operation may have been carried out.
    Internal,
}

/// A call to a registry that failed; the resource is the login of an account, or the registry's host.
pub type AccountError = ServiceError<ErrorKind>;

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "set up the client for",
            Self::Create => "create account",
            Self::Find => "look up account",
            Self::Permit => "permit pulls to account",
            Self::Usage => "read the usage of account",
            Self::Disable => "disable account",
            Self::Delete => "delete account",
            Self::List => "list the accounts of",
            Self::Prepare => "prepare the permissions of",
            Self::Federate => "set the issuers of account",
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::NameTaken => "the name is taken by another account",
            Self::Corrupt => "the registry has kept something else than what was sent",
            Self::PasswordLost => "the password was lost before it arrived",
            Self::NotPrepared => "what accounts share is not set up",
            Self::PermissionDenied => "permission denied",
            Self::Unauthenticated => "not authenticated",
            Self::Invalid => "the registry rejects the request as invalid",
            Self::Unsupported => "the registry cannot do that",
            Self::QuotaExceeded => "the registry's rate is exhausted",
            Self::Unavailable => "the registry is unavailable",
            Self::TimedOut => "no answer in time",
            Self::Internal => "the registry failed",
        })
    }
}

impl Kind for ErrorKind {
    type Operation = Operation;

    fn is_transient(self) -> bool {
        matches!(self, Self::QuotaExceeded | Self::Unavailable | Self::TimedOut | Self::Internal)
    }

    /// Returns the remedy that holds at every registry; a provider may set its own in [`ServiceError::hint`].
    fn hint(self, _operation: Operation) -> Option<String> {
        match self {
            Self::NameTaken => Some("use another random name; this one is spent".to_owned()),
            Self::Corrupt | Self::PasswordLost => Some("delete the account, and use another random name".to_owned()),
            _ => None,
        }
    }
}

#[cfg(feature = "client")]
impl daemon::exchange::HttpKind for ErrorKind {
    fn of_unanswered(unanswered: &daemon::exchange::Unanswered) -> Self {
        use daemon::exchange::Unanswered;
        match unanswered {
            Unanswered::Broken(_) => Self::Unavailable,
            Unanswered::TooLong(_) => Self::Internal,
            Unanswered::TimedOut => Self::TimedOut,
        }
    }
}
