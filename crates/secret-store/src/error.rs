//! Errors of secret stores, with what the caller can do about them.

use std::fmt;
use std::time::Duration;

use daemon::retry::Transient;

use crate::Permission;

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Setting up the client: endpoint and identity.
    Connect,
    /// [`find`](crate::SecretStore::find)
    Find,
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
    /// [`list_versions`](crate::SecretStore::list_versions)
    ListVersions,
    /// [`destroy_version`](crate::SecretStore::destroy_version)
    DestroyVersion,
    /// [`permissions`](crate::SecretStore::permissions)
    CheckPermissions,
}

/// The kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The secret or version does not exist, or does not show yet.
    NotFound,
    /// A secret of that name exists.
    AlreadyExists,
    /// The metadata is not of the edition that the write was made for.
    Changed,
    /// The identity lacks the permission of the operation, or the store says so of what does not exist.
    PermissionDenied,
    /// The store's API is not enabled in the project.
    ApiDisabled,
    /// No identity could be had, or the store does not accept it.
    Unauthenticated,
    /// The store calls the request, or the secret's condition, invalid.
    Invalid,
    /// The content that was read does not fit the store's checksum of it.
    Corrupt,
    /// The quota is exhausted for now.
    QuotaExceeded,
    /// The store could not be reached or cannot answer now.
    Unavailable,
    /// No answer came in time; what was asked may have been done.
    TimedOut,
    /// The store failed within, or gave an answer that is none; what was asked may have been done.
    Internal,
}

/// The party that can correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The author of the run's configuration.
    Configuration,
    /// The administrator of the cloud project.
    Access,
    /// Another writer; look again.
    OtherWriter,
    /// The store or the way to it; wait.
    Store,
}

/// A call that failed.
#[derive(Debug, thiserror::Error)]
pub struct StoreError {
    /// The operation.
    pub operation: Operation,
    /// The resource: the full name of a secret, version or project.
    pub resource: String,
    /// The kind of error.
    pub fault: Fault,
    /// The wait that the store requests before the next attempt.
    pub retry_after: Option<Duration>,
    /// The store's own words, on one line and cut to a sane length. Stores speak of resources there, not of content.
    pub detail: Option<String>,
}

// === impl Operation ===

impl Operation {
    /// The permission that the operation needs; `None` where it needs none or more than one.
    pub fn permission(self) -> Option<Permission> {
        match self {
            Self::Connect | Self::CheckPermissions => None,
            Self::Find => Some(Permission::Get),
            Self::Create => Some(Permission::Create),
            Self::Update => Some(Permission::Update),
            Self::Delete => Some(Permission::Delete),
            Self::AddVersion => Some(Permission::AddVersion),
            Self::ReadVersion => Some(Permission::AccessVersion),
            Self::ListVersions => Some(Permission::ListVersions),
            Self::DestroyVersion => Some(Permission::DestroyVersion),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Connect => "set up the client for",
            Self::Find => "look up",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::AddVersion => "add a version to",
            Self::ReadVersion => "read",
            Self::ListVersions => "list the versions of",
            Self::DestroyVersion => "destroy",
            Self::CheckPermissions => "check permissions on",
        }
    }
}

// === impl Fault ===

impl Fault {
    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::Changed => "was changed meanwhile",
            Self::PermissionDenied => "permission denied",
            Self::ApiDisabled => "the Secret Manager API is not enabled in the project",
            Self::Unauthenticated => "not authenticated",
            Self::Invalid => "the store calls the request invalid",
            Self::Corrupt => "the content does not fit its checksum",
            Self::QuotaExceeded => "quota exceeded",
            Self::Unavailable => "the store is unavailable",
            Self::TimedOut => "no answer in time",
            Self::Internal => "the store failed",
        }
    }
}

// === impl StoreError ===

impl StoreError {
    /// An error without the store's own words.
    pub fn new(operation: Operation, resource: impl Into<String>, fault: Fault) -> Self {
        Self { operation, resource: resource.into(), fault, retry_after: None, detail: None }
    }

    /// Adds the store's own words.
    #[must_use]
    pub fn with_detail(mut self, detail: &str) -> Self {
        const LONGEST: usize = 400;
        let apart = |char: char| char.is_whitespace() || char.is_control();
        let mut line = detail.split(apart).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(LONGEST) {
            line.truncate(end);
            line.push('…');
        }
        self.detail = Some(line).filter(|line| !line.is_empty());
        self
    }

    /// The party that can correct it.
    pub fn blame(&self) -> Blame {
        match self.fault {
            Fault::NotFound | Fault::Invalid => Blame::Configuration,
            Fault::PermissionDenied | Fault::ApiDisabled | Fault::Unauthenticated => Blame::Access,
            Fault::AlreadyExists | Fault::Changed => Blame::OtherWriter,
            Fault::Corrupt | Fault::QuotaExceeded | Fault::Unavailable | Fault::TimedOut | Fault::Internal => {
                Blame::Store
            }
        }
    }

    /// The permission that is missing.
    pub fn missing_permission(&self) -> Option<Permission> {
        self.operation.permission().filter(|_| self.fault == Fault::PermissionDenied)
    }

    /// The next step, where one can be named.
    pub fn hint(&self) -> Option<String> {
        match self.fault {
            Fault::PermissionDenied => Some(match self.missing_permission() {
                Some(permission) => format!(
                    "grant the Job's service account {permission} (or roles/secretmanager.admin) and check the \
                     Workload Identity binding"
                ),
                None => "check the roles of the Job's service account".to_owned(),
            }),
            Fault::ApiDisabled => Some("run: gcloud services enable secretmanager.googleapis.com".to_owned()),
            Fault::Unauthenticated => Some(
                "in a cluster, check the Workload Identity binding of the Job's service account; on a workstation, \
                 run: gcloud auth application-default login"
                    .to_owned(),
            ),
            Fault::QuotaExceeded => {
                Some("ask for a higher Secret Manager quota, or run fewer Jobs of this project at once".to_owned())
            }
            _ => None,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot {} {}: {}", self.operation.words(), self.resource, self.fault.words())?;
        if let Some(permission) = self.missing_permission() {
            write!(formatter, ": {permission}")?;
        }
        if let Some(detail) = &self.detail {
            write!(formatter, " (the store says: {detail})")?;
        }
        Ok(())
    }
}

impl Transient for StoreError {
    fn is_transient(&self) -> bool {
        self.blame() == Blame::Store
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_action_object_permission_and_what_to_do() {
        let error = StoreError::new(Operation::AddVersion, "projects/p/secrets/s", Fault::PermissionDenied)
            .with_detail("Permission denied\n  on resource");
        assert_eq!(
            error.to_string(),
            "cannot add a version to projects/p/secrets/s: permission denied: secretmanager.versions.add \
             (the store says: Permission denied on resource)"
        );
        assert!(error.hint().unwrap().contains("secretmanager.versions.add"));
        assert_eq!(error.blame(), Blame::Access);
        assert!(!error.is_transient());
    }

    #[test]
    fn the_stores_words_are_cut() {
        let error = StoreError::new(Operation::Find, "s", Fault::Internal).with_detail(&"é".repeat(1000));
        assert_eq!(error.detail.unwrap().chars().count(), 401);
    }
}
