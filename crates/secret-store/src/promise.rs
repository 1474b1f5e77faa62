//! The contract of secret stores.
//!
//! Adding a version and reading one by its number are strongly consistent: what was added is read at once. Everything
//! else (metadata, lists) may lag behind for minutes, also after this process's own writes. A write that carries the
//! [`Metadata::etag`] of a lagging read fails with [`ErrorKind::Changed`](crate::ErrorKind::Changed) and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use secrecy::SecretSlice;

use crate::{Location, SecretId, StoreError, VersionNumber};

/// A place where secrets rest, each with numbered, immutable versions.
pub trait SecretStore: Send + Sync {
    /// The operations of a secret store.
    fn capabilities() -> Capabilities;

    /// The secret's full name in the store, for people and for references.
    fn path(&self, secret: &SecretId) -> String;

    /// The secret's metadata; `None` when it does not exist, or was created so recently that it does not show yet.
    fn find(&self, secret: &SecretId) -> impl Future<Output = Result<Option<Secret>, StoreError>> + Send;

    /// Creates the secret, without a version. Fails with `AlreadyExists` when there is one.
    fn create(&self, secret: &SecretId, new: &NewSecret) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Replaces labels and annotations, if the secret is still at `metadata.etag`; fails with `Changed` if not.
    /// Returns the new etag.
    fn update(&self, secret: &SecretId, metadata: &Metadata)
    -> impl Future<Output = Result<String, StoreError>> + Send;

    /// Deletes the secret with all its versions, if it is still at `etag`. Returns whether there was one.
    fn delete(&self, secret: &SecretId, etag: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Adds a version. After a transient failure it may have been added all the same: read by number before adding
    /// again.
    fn add_version(
        &self,
        secret: &SecretId,
        content: &SecretSlice<u8>,
    ) -> impl Future<Output = Result<VersionNumber, StoreError>> + Send;

    /// Reads the version with this number, checked against the store's checksum.
    fn read_version(
        &self,
        secret: &SecretId,
        number: VersionNumber,
    ) -> impl Future<Output = Result<Version, StoreError>> + Send;

    /// All versions, newest first.
    fn list_versions(&self, secret: &SecretId) -> impl Future<Output = Result<Vec<VersionSummary>, StoreError>> + Send;

    /// Destroys a version's content for good; destroying a destroyed version is a success.
    fn destroy_version(
        &self,
        secret: &SecretId,
        number: VersionNumber,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns those of `wanted` that the caller holds on the secret.
    fn permissions(
        &self,
        secret: &SecretId,
        wanted: &BTreeSet<Permission>,
    ) -> impl Future<Output = Result<Permissions, StoreError>> + Send;
}

/// The capabilities of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The largest content of a version, in bytes.
    pub max_content_bytes: usize,
}

/// A secret as the store shows it, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Labels, annotations and the edition they are of.
    pub metadata: Metadata,
}

/// The metadata of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Short values to search by; see [`crate::label`].
    pub labels: BTreeMap<String, String>,
    /// Free values.
    pub annotations: BTreeMap<String, String>,
    /// Changes with every change of the metadata.
    pub etag: String,
}

/// A secret to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecret {
    /// See [`Metadata::labels`].
    pub labels: BTreeMap<String, String>,
    /// See [`Metadata::annotations`].
    pub annotations: BTreeMap<String, String>,
    /// The replication policy; it cannot be changed later.
    pub replication: Replication,
}

/// The locations of a secret's content, and the customer's key that encrypts it, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Wherever the store chooses.
    Automatic {
        /// Full name of a key in the location `global`.
        kms_key: Option<String>,
    },
    /// In exactly these locations.
    UserManaged(Vec<Replica>),
    /// In the one location of a regional store.
    Regional {
        /// Full name of a key in that location.
        kms_key: Option<String>,
    },
}

/// One of the locations of [`Replication::UserManaged`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The location.
    pub location: Location,
    /// Full name of a key in that location.
    pub kms_key: Option<String>,
}

/// A version as reading it by number shows it.
pub enum Version {
    /// It can be read, and this is its content.
    Live(SecretSlice<u8>),
    /// It exists, but was disabled.
    Disabled,
    /// It existed; its content is gone for good.
    Destroyed,
    /// No version has had this number yet.
    Absent,
}

/// The state of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// It can.
    Live,
    /// It can once it is enabled again.
    Disabled,
    /// It cannot.
    Destroyed,
}

/// A version as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSummary {
    /// The number.
    pub number: VersionNumber,
    /// Its state.
    pub state: VersionState,
}

/// A permission, by the name of Google's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Create a secret in the project.
    Create,
    /// Read a secret's metadata.
    Get,
    /// Change a secret's metadata.
    Update,
    /// Delete a secret.
    Delete,
    /// Add a version.
    AddVersion,
    /// Read a version's content.
    AccessVersion,
    /// List versions.
    ListVersions,
    /// Destroy a version.
    DestroyVersion,
}

/// The answer to which permissions are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Asked for and not held.
    pub missing: BTreeSet<Permission>,
    /// Asked for, and not to be known without trying: on a secret that does not exist nothing can be asked.
    pub unknown: BTreeSet<Permission>,
}

// === impl Version ===

impl fmt::Debug for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Live(_) => "Live([redacted])",
            Self::Disabled => "Disabled",
            Self::Destroyed => "Destroyed",
            Self::Absent => "Absent",
        })
    }
}

// === impl Permission ===

impl Permission {
    /// The permission's name in Google's IAM.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "secretmanager.secrets.create",
            Self::Get => "secretmanager.secrets.get",
            Self::Update => "secretmanager.secrets.update",
            Self::Delete => "secretmanager.secrets.delete",
            Self::AddVersion => "secretmanager.versions.add",
            Self::AccessVersion => "secretmanager.versions.access",
            Self::ListVersions => "secretmanager.versions.list",
            Self::DestroyVersion => "secretmanager.versions.destroy",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
