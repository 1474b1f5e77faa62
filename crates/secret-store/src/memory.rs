//! A store in memory, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use secrecy::{ExposeSecret as _, SecretSlice};

use crate::contract::{
    Adds, Capabilities, Destroys, ListedSecrets, LiveVersion, Metadata, NewSecret, NewVersion, Permission, Permissions,
    Records, Secret, VersionState,
};
use crate::error::{ErrorKind, Operation};
use crate::{SecretId, SecretStore, StoreError, Version, VersionNumber, VersionSummary};

/// Largest content of a version, in bytes.
const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// The largest page of a list of secrets.
const MAX_PAGE: usize = 100;

/// A [`SecretStore`] in memory with the capabilities of Google Secret Manager.
pub type MemoryStore = InMemory<false>;

/// A [`SecretStore`] in memory with the capabilities of a store whose versions carry their record and are added exclusively.
pub type RecordingMemoryStore = InMemory<true>;

/// A [`SecretStore`] in memory; see [`MemoryStore`] and [`RecordingMemoryStore`].
#[derive(Default)]
pub struct InMemory<const RECORDING: bool> {
    secrets: Mutex<BTreeMap<SecretId, StoredSecret>>,
    /// Counts the etags of all secrets: that of a deleted one is never reused.
    etags: AtomicU64,
}

struct StoredSecret {
    metadata: Metadata,
    versions: BTreeMap<VersionNumber, StoredVersion>,
}

enum StoredVersion {
    Live { content: SecretSlice<u8>, record: BTreeMap<String, String> },
    Disabled,
    Destroyed,
}

// === impl InMemory ===

impl<const RECORDING: bool> InMemory<RECORDING> {
    /// Returns a store without secrets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Disables a version, as an administrator might.
    pub fn disable_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        self.with_version(Operation::ReadVersion, secret, number, |version| {
            if let StoredVersion::Live { .. } = version {
                *version = StoredVersion::Disabled;
            }
        })
    }

    fn next_etag(&self) -> String {
        self.etags.fetch_add(1, Ordering::Relaxed).to_string()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SecretId, StoredSecret>> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        operation: Operation,
        secret: &SecretId,
        work: impl FnOnce(&mut StoredSecret) -> Result<T, ErrorKind>,
    ) -> Result<T, StoreError> {
        let result = self.lock().get_mut(secret).ok_or(ErrorKind::NotFound).and_then(work);
        result.map_err(|kind| StoreError::new(operation, self.path(secret), kind))
    }

    fn with_version<T>(
        &self,
        operation: Operation,
        secret: &SecretId,
        number: VersionNumber,
        work: impl FnOnce(&mut StoredVersion) -> T,
    ) -> Result<T, StoreError> {
        self.with(operation, secret, |stored| stored.versions.get_mut(&number).map(work).ok_or(ErrorKind::NotFound))
    }
}

impl<const RECORDING: bool> fmt::Debug for InMemory<RECORDING> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl<const RECORDING: bool> SecretStore for InMemory<RECORDING> {
    fn capabilities(&self) -> Capabilities {
        let (adds, records) =
            if RECORDING { (Adds::Exclusive, Records::WithVersion) } else { (Adds::Open, Records::UnderEtag) };
        Capabilities {
            max_content_bytes: MAX_CONTENT_BYTES,
            adds,
            records,
            versions_kept: None,
            destroys: Destroys::Any,
        }
    }

    fn path(&self, secret: &SecretId) -> String {
        format!("memory/secrets/{secret}")
    }

    fn latest_path(&self, secret: &SecretId) -> String {
        format!("{}/versions/latest", self.path(secret))
    }

    fn permission_name(&self, permission: Permission) -> &'static str {
        match permission {
            Permission::Create => "create",
            Permission::Find => "find",
            Permission::List => "list",
            Permission::Update => "update",
            Permission::Delete => "delete",
            Permission::AddVersion => "add-version",
            Permission::ReadVersion => "read-version",
            Permission::FindVersion => "find-version",
            Permission::ListVersions => "list-versions",
            Permission::DestroyVersion => "destroy-version",
        }
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        Ok(self.lock().get(secret).map(|stored| Secret { metadata: stored.metadata.clone() }))
    }

    async fn list(&self, labels: &[(&str, &str)], page: Option<&str>) -> Result<ListedSecrets, StoreError> {
        let has = |metadata: &Metadata, (key, value): &(&str, &str)| {
            metadata.labels.get(*key).is_some_and(|found| found == value)
        };
        let secrets = self.lock();
        let after = secrets.iter().filter(|(secret, _)| page.is_none_or(|page| secret.as_str() > page));
        let mut matching = after.filter(|(_, stored)| labels.iter().all(|label| has(&stored.metadata, label)));
        let listed = matching.by_ref().take(MAX_PAGE).map(|(secret, stored)| (secret.clone(), stored.metadata.clone()));
        let secrets: BTreeMap<_, _> = listed.collect();
        let last = secrets.last_key_value().map(|(secret, _)| secret.to_string());
        let next = last.filter(|_| matching.next().is_some());
        Ok(ListedSecrets { secrets, next })
    }

    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        let mut secrets = self.lock();
        if secrets.contains_key(secret) {
            return Err(StoreError::new(Operation::Create, self.path(secret), ErrorKind::AlreadyExists));
        }
        let NewSecret { labels, annotations, replication: _ } = new.clone();
        let metadata = Metadata { labels, annotations, etag: self.next_etag() };
        secrets.insert(secret.clone(), StoredSecret { metadata, versions: BTreeMap::new() });
        Ok(())
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        self.with(Operation::Update, secret, |stored| {
            if stored.metadata.etag != metadata.etag {
                return Err(ErrorKind::Changed);
            }
            let etag = self.next_etag();
            stored.metadata = Metadata { etag: etag.clone(), ..metadata.clone() };
            Ok(etag)
        })
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        let mut secrets = self.lock();
        match secrets.get(secret) {
            None => Ok(false),
            Some(stored) if stored.metadata.etag == etag => Ok(secrets.remove(secret).is_some()),
            Some(_) => Err(StoreError::new(Operation::Delete, self.path(secret), ErrorKind::Changed)),
        }
    }

    async fn add_version(&self, secret: &SecretId, new: &NewVersion<'_>) -> Result<VersionNumber, StoreError> {
        self.with(Operation::AddVersion, secret, |stored| {
            if !(1..=MAX_CONTENT_BYTES).contains(&new.content.expose_secret().len()) {
                return Err(ErrorKind::Invalid);
            }
            let number = stored.versions.last_key_value().map_or(VersionNumber::FIRST, |(number, _)| number.next());
            let record = if RECORDING { new.record.clone() } else { BTreeMap::new() };
            if RECORDING && number != new.number {
                let taken = stored.versions.get(&new.number);
                return if taken.is_some_and(|taken| taken.is(new)) { Ok(new.number) } else { Err(ErrorKind::Changed) };
            }
            stored.versions.insert(number, StoredVersion::Live { content: new.content.clone(), record });
            Ok(number)
        })
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        let read = self.with_version(Operation::ReadVersion, secret, number, |version| match version {
            StoredVersion::Live { content, record } => {
                Version::Live(LiveVersion { content: content.clone(), record: record.clone() })
            }
            StoredVersion::Disabled => Version::Disabled,
            StoredVersion::Destroyed => Version::Destroyed,
        });
        match read {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(Version::Absent),
            other => other,
        }
    }

    async fn newest_version(&self, secret: &SecretId) -> Result<Option<VersionSummary>, StoreError> {
        let secrets = self.lock();
        let newest = secrets.get(secret).and_then(|stored| stored.versions.last_key_value());
        Ok(newest.map(|(number, version)| VersionSummary { number: *number, state: version.state() }))
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        self.with(Operation::ListVersions, secret, |stored| {
            let summary = |(number, version): (&VersionNumber, &StoredVersion)| VersionSummary {
                number: *number,
                state: version.state(),
            };
            Ok(stored.versions.iter().rev().map(summary).collect())
        })
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        self.with_version(Operation::DestroyVersion, secret, number, |version| {
            *version = StoredVersion::Destroyed;
        })
    }

    async fn permissions(&self, _secret: &SecretId, _wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        Ok(Permissions { missing: BTreeSet::new(), unknown: BTreeSet::new() })
    }
}

// === impl StoredVersion ===

impl StoredVersion {
    /// Returns true if this version is what `new` would add.
    fn is(&self, new: &NewVersion<'_>) -> bool {
        matches!(self, Self::Live { content, record }
            if content.expose_secret() == new.content.expose_secret() && record == new.record)
    }

    fn state(&self) -> VersionState {
        match self {
            Self::Live { .. } => VersionState::Live,
            Self::Disabled => VersionState::Disabled,
            Self::Destroyed => VersionState::Destroyed,
        }
    }
}
