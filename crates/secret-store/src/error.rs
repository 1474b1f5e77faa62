//! Operations of a secret store and kinds of their failures.

use std::fmt;

#[cfg(any(feature = "azure", feature = "vault"))]
use daemon::exchange::{HttpKind, Unanswered};
use daemon::service_error::{Kind, ServiceError};

/// Operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Set up the client: endpoint and identity.
    Connect,
    /// [`find`](crate::SecretStore::find)
    Find,
    /// [`list`](crate::SecretStore::list)
    List,
    /// [`create`](crate::SecretStore::create)
    Create,
    /// [`update`](crate::SecretStore::update)
    Update,
    /// [`delete`](crate::SecretStore::delete)
    Delete,
    /// [`add_version`](crate::SecretStore::add_version)
    AddVersion,
    /// [`read_version`](crate::SecretStore::read_version)
    ReadVersion,
    /// [`newest_version`](crate::SecretStore::newest_version)
    FindVersion,
    /// [`list_versions`](crate::SecretStore::list_versions)
    ListVersions,
    /// [`destroy_version`](crate::SecretStore::destroy_version)
    DestroyVersion,
    /// [`permissions`](crate::SecretStore::permissions)
    CheckPermissions,
}

/// Kind of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The secret or version does not exist, or does not show yet.
    NotFound,
    /// A secret of that name exists.
    AlreadyExists,
    /// The metadata has changed since the etag of the write was read.
    Changed,
    /// The secret is scheduled for deletion: it cannot be used or created until it is restored, or gone.
    PendingDeletion,
    /// The identity lacks the permission of the operation. Some stores answer so about a secret that does not exist.
    PermissionDenied,
    /// The store's API is not enabled.
    ApiDisabled,
    /// The store does not accept the identity, or there is none.
    Unauthenticated,
    /// The store rejects the request as invalid, or as impossible in the secret's state.
    Invalid,
    /// The content that was read does not match the store's checksum.
    Corrupt,
    /// The quota is exhausted for now.
    QuotaExceeded,
    /// The store could not be reached or cannot answer now.
    Unavailable,
    /// No answer came in time; the operation may have been carried out.
    TimedOut,
    /// The store failed, or its answer cannot be read; the operation may have been carried out.
    Internal,
}

/// A call to a secret store that failed; the resource is the full name of a secret or of a version.
pub type StoreError = ServiceError<ErrorKind>;

// === impl Operation ===

impl Operation {
    /// Returns the name of the operation's call in metrics, at every store that of Google's API.
    #[cfg(any(feature = "aws", feature = "azure", feature = "google", feature = "vault"))]
    pub(crate) fn metric_name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Find => "get_secret",
            Self::List => "list_secrets",
            Self::Create => "create_secret",
            Self::Update => "update_secret",
            Self::Delete => "delete_secret",
            Self::AddVersion => "add_secret_version",
            Self::ReadVersion => "access_secret_version",
            Self::FindVersion => "get_secret_version",
            Self::ListVersions => "list_secret_versions",
            Self::DestroyVersion => "destroy_secret_version",
            Self::CheckPermissions => "test_iam_permissions",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "set up the client for",
            Self::Find => "look up",
            Self::List => "list the secrets of",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::AddVersion => "add a version to",
            Self::ReadVersion => "read",
            Self::FindVersion => "look up the newest version of",
            Self::ListVersions => "list the versions of",
            Self::DestroyVersion => "destroy",
            Self::CheckPermissions => "check permissions on",
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::Changed => "has changed since it was read",
            Self::PendingDeletion => "is scheduled for deletion",
            Self::PermissionDenied => "permission denied",
            Self::ApiDisabled => "the API of the store is not enabled",
            Self::Unauthenticated => "not authenticated",
            Self::Invalid => "the store rejects the request as invalid",
            Self::Corrupt => "the content does not match its checksum",
            Self::QuotaExceeded => "quota exceeded",
            Self::Unavailable => "the store is unavailable",
            Self::TimedOut => "no answer in time",
            Self::Internal => "the store failed",
        })
    }
}

impl Kind for ErrorKind {
    type Operation = Operation;

    fn is_transient(self) -> bool {
        matches!(self, Self::Corrupt | Self::QuotaExceeded | Self::Unavailable | Self::TimedOut | Self::Internal)
    }

    /// Returns `None`: only the provider knows the remedy, and sets it in [`ServiceError::hint`].
    fn hint(self, _operation: Operation) -> Option<String> {
        None
    }
}

#[cfg(any(feature = "azure", feature = "vault"))]
impl HttpKind for ErrorKind {
    fn of_unanswered(unanswered: &Unanswered) -> Self {
        match unanswered {
            Unanswered::Broken(_) => Self::Unavailable,
            Unanswered::TooLong(_) => Self::Internal,
            Unanswered::TimedOut => Self::TimedOut,
        }
    }
}
