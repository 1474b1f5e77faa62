//! The contract of secret stores.
//!
//! Adding a version and reading one by its number are strongly consistent: what was added is read at once. Everything
//! else (metadata, lists) may lag for minutes, also after this process's own writes. A write that carries the
//! [`Metadata::etag`] of a lagging read fails with [`ErrorKind::Changed`](crate::ErrorKind::Changed) and changes nothing.
//! The differences between stores are stated as [`Capabilities`]. AWS promises no strong reads at all: there a version that
//! another process has added may be absent for a moment, but its number is taken, so that nothing is overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use secrecy::SecretSlice;

use crate::{Location, SecretId, StoreError, VersionNumber};

/// A store of secrets, each with numbered, immutable versions.
pub trait SecretStore: Send + Sync {
    /// Returns the capabilities of the store.
    fn capabilities(&self) -> Capabilities;

    /// Returns the secret's full name in the store, for messages and references.
    fn path(&self, secret: &SecretId) -> String;

    /// Returns the full name of the secret's newest version, whichever that is.
    fn latest_path(&self, secret: &SecretId) -> String;

    /// Returns the store's own name of a permission, for messages.
    fn permission_name(&self, permission: Permission) -> &'static str;

    /// Reads the secret's metadata; `None` if it does not exist, is scheduled for deletion, or was created so recently that it
    /// is not visible yet.
    fn find(&self, secret: &SecretId) -> impl Future<Output = Result<Option<Secret>, StoreError>> + Send;

    /// Lists the secrets that have all these labels: one page of the store's largest size in one call. `page` is
    /// [`ListedSecrets::next`] of the page before; `None` asks for the first.
    fn list(
        &self,
        labels: &[(&str, &str)],
        page: Option<&str>,
    ) -> impl Future<Output = Result<ListedSecrets, StoreError>> + Send;

    /// Creates the secret, without a version. Fails with `AlreadyExists` if it exists, with `PendingDeletion` if it is scheduled
    /// for deletion.
    fn create(&self, secret: &SecretId, new: &NewSecret) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Replaces labels and annotations, if the secret is still at `metadata.etag`; fails with `Changed` if not.
    /// Returns the new etag.
    fn update(&self, secret: &SecretId, metadata: &Metadata)
    -> impl Future<Output = Result<String, StoreError>> + Send;

    /// Deletes the secret with all its versions, if it is still at `etag`. Returns false if it did not exist.
    fn delete(&self, secret: &SecretId, etag: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Adds a version and returns its number: see [`Adds`]. After a transient failure it may have been added nevertheless:
    /// read by number before adding again.
    fn add_version(
        &self,
        secret: &SecretId,
        new: &NewVersion<'_>,
    ) -> impl Future<Output = Result<VersionNumber, StoreError>> + Send;

    /// Reads the version with this number, checked against the store's checksum.
    fn read_version(
        &self,
        secret: &SecretId,
        number: VersionNumber,
    ) -> impl Future<Output = Result<Version, StoreError>> + Send;

    /// Returns number and state of the newest version, without its content; `None` if the secret has no version or does not
    /// exist.
    fn newest_version(
        &self,
        secret: &SecretId,
    ) -> impl Future<Output = Result<Option<VersionSummary>, StoreError>> + Send;

    /// Lists all versions, newest first.
    fn list_versions(&self, secret: &SecretId) -> impl Future<Output = Result<Vec<VersionSummary>, StoreError>> + Send;

    /// Destroys a version's content permanently; destroying a destroyed version is a success. See [`Destroys`].
    fn destroy_version(
        &self,
        secret: &SecretId,
        number: VersionNumber,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Checks which of the permissions on the secret are missing.
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
    /// The number that an added version gets.
    pub adds: Adds,
    /// The place of a run's record.
    pub records: Records,
    /// Number of versions that a secret keeps; the store removes older ones by itself. `None` if it keeps all.
    pub versions_kept: Option<usize>,
    /// The versions that can be destroyed.
    pub destroys: Destroys,
}

/// The versions that can be destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Destroys {
    /// Any, and its content is gone at once.
    #[default]
    Any,
    /// Any but the one that readers get: that fails with `Invalid`. The content can be read no more by this contract, and the
    /// store removes it later.
    Superseded,
}

/// The number that an added version gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// The next free one. It is not the stated one if another writer was faster.
    Open,
    /// The stated one. The call fails with `Changed` if another version has that number, or if it is not the next one;
    /// it succeeds if the same version was added before.
    Exclusive,
}

/// The place of a run's record: the generation, the incarnation and the versions of the runs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Records {
    /// In the annotations, which are changed under the etag.
    #[default]
    UnderEtag,
    /// In each version, written with its content in one call. The annotations hold a copy for lists; a store of this kind
    /// may accept a change of metadata that is based on an older etag than its own, if both come at the same moment.
    WithVersion,
}

/// A secret without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Labels, annotations and their etag.
    pub metadata: Metadata,
}

/// The metadata of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Short values to search by; see [`label`](crate::label).
    pub labels: BTreeMap<String, String>,
    /// Free values.
    pub annotations: BTreeMap<String, String>,
    /// Changes with every change of the metadata.
    pub etag: String,
}

/// One page of a list of secrets.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ListedSecrets {
    /// The secrets with their metadata.
    pub secrets: BTreeMap<SecretId, Metadata>,
    /// The token of the next page; `None` on the last one.
    pub next: Option<String>,
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
    /// In locations of the store's choice.
    Automatic {
        /// Full name of a key in the location `global`.
        kms_key: Option<String>,
    },
    /// In exactly these locations.
    Locations(Vec<Replica>),
    /// In the one location of a regional store.
    Regional {
        /// Full name of a key in that location.
        kms_key: Option<String>,
    },
}

/// One of the locations of [`Replication::Locations`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The location.
    pub location: Location,
    /// Full name of a key in that location.
    pub kms_key: Option<String>,
}

/// A version to be added.
#[derive(Clone, Copy, Debug)]
pub struct NewVersion<'a> {
    /// The number that it is to get.
    pub number: VersionNumber,
    /// The content.
    pub content: &'a SecretSlice<u8>,
    /// The record; only a store with [`Records::WithVersion`] keeps it.
    pub record: &'a BTreeMap<String, String>,
}

/// A readable version.
pub struct LiveVersion {
    /// The content.
    pub content: SecretSlice<u8>,
    /// The record that it was added with; empty if there is none.
    pub record: BTreeMap<String, String>,
}

/// A version that was read by its number.
pub enum Version {
    /// Readable.
    Live(LiveVersion),
    /// Not readable until it is enabled again.
    Disabled,
    /// Permanently without content.
    Destroyed,
    /// Not added yet.
    Absent,
}

/// The state of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// Readable.
    Live,
    /// Not readable until it is enabled again.
    Disabled,
    /// Permanently without content.
    Destroyed,
}

/// A version in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSummary {
    /// The number.
    pub number: VersionNumber,
    /// Its state.
    pub state: VersionState,
}

/// A permission, named after the operation that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Create a secret.
    Create,
    /// Read a secret's metadata.
    Find,
    /// List secrets.
    List,
    /// Change a secret's metadata.
    Update,
    /// Delete a secret.
    Delete,
    /// Add a version.
    AddVersion,
    /// Read a version's content.
    ReadVersion,
    /// Read number and state of a version.
    FindVersion,
    /// List versions.
    ListVersions,
    /// Destroy a version.
    DestroyVersion,
}

/// Result of a check of permissions. What is in neither set is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Not held.
    pub missing: BTreeSet<Permission>,
    /// Not known without trying.
    pub unknown: BTreeSet<Permission>,
}

// === impl NewVersion ===

impl<'a> NewVersion<'a> {
    /// Returns a version without a record.
    pub fn without_record(number: VersionNumber, content: &'a SecretSlice<u8>) -> Self {
        const NOTHING: &BTreeMap<String, String> = &BTreeMap::new();
        Self { number, content, record: NOTHING }
    }
}

// === impl LiveVersion ===

impl LiveVersion {
    /// Returns a version without a record.
    pub fn without_record(content: SecretSlice<u8>) -> Self {
        Self { content, record: BTreeMap::new() }
    }
}

impl fmt::Debug for LiveVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LiveVersion").field("record", &self.record).finish_non_exhaustive()
    }
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
