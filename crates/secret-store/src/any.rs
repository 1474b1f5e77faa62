//! A client of the store that the settings choose.

use std::collections::BTreeSet;

use daemon::calls::CallLog;

#[cfg(feature = "aws")]
use crate::AwsStore;
#[cfg(feature = "azure")]
use crate::AzureStore;
#[cfg(feature = "google")]
use crate::GoogleSecretManager;
#[cfg(feature = "vault")]
use crate::VaultStore;
use crate::contract::{Capabilities, ListedSecrets, Metadata, NewSecret, NewVersion, Permission, Permissions, Secret};
use crate::settings::StoreSettings;
use crate::{SecretId, SecretStore, StoreError, Version, VersionNumber, VersionSummary};

/// A client of one of the stores of this build.
#[derive(Debug)]
pub enum AnyStore {
    /// Google Secret Manager.
    #[cfg(feature = "google")]
    Google(Box<GoogleSecretManager>),
    /// OpenBao or Vault.
    #[cfg(feature = "vault")]
    Vault(Box<VaultStore>),
    /// AWS Secrets Manager.
    #[cfg(feature = "aws")]
    Aws(Box<AwsStore>),
    /// Azure Key Vault.
    #[cfg(feature = "azure")]
    Azure(Box<AzureStore>),
}

/// The value of an expression in which the client of `$any` has the name `$store`.
macro_rules! with_client {
    ($any:expr, $store:ident => $value:expr) => {
        match $any {
            #[cfg(feature = "google")]
            AnyStore::Google($store) => $value,
            #[cfg(feature = "vault")]
            AnyStore::Vault($store) => $value,
            #[cfg(feature = "aws")]
            AnyStore::Aws($store) => $value,
            #[cfg(feature = "azure")]
            AnyStore::Azure($store) => $value,
        }
    };
}

// === impl AnyStore ===

impl AnyStore {
    /// Creates the client of the store that the settings choose; nothing is sent yet. Calls are recorded in `calls`.
    ///
    /// # Errors
    ///
    /// Settings that the store's client cannot use.
    #[cfg_attr(
        not(any(feature = "aws", feature = "google")),
        expect(clippy::unused_async, reason = "some clients read files and ask for tokens")
    )]
    pub async fn connect(settings: &StoreSettings, calls: Option<CallLog>) -> Result<Self, StoreError> {
        match settings.clone() {
            #[cfg(feature = "google")]
            StoreSettings::Google(settings) => {
                let store = GoogleSecretManager::connect(&crate::Settings { calls, ..settings }).await?;
                Ok(Self::Google(Box::new(store)))
            }
            #[cfg(feature = "vault")]
            StoreSettings::Vault(settings) => {
                Ok(Self::Vault(Box::new(VaultStore::connect(&crate::VaultSettings { calls, ..settings })?)))
            }
            #[cfg(feature = "aws")]
            StoreSettings::Aws(settings) => {
                let store = AwsStore::connect(&crate::AwsSettings { calls, ..settings }).await?;
                Ok(Self::Aws(Box::new(store)))
            }
            #[cfg(feature = "azure")]
            StoreSettings::Azure(settings) => {
                Ok(Self::Azure(Box::new(AzureStore::connect(&crate::AzureSettings { calls, ..settings })?)))
            }
            #[cfg(not(all(feature = "aws", feature = "azure", feature = "google", feature = "vault")))]
            other => {
                let error = StoreError::new(crate::Operation::Connect, other.name(), crate::ErrorKind::Invalid);
                Err(error.with_detail("this build has no client of that store"))
            }
        }
    }
}

impl SecretStore for AnyStore {
    fn capabilities(&self) -> Capabilities {
        with_client!(self, store => store.capabilities())
    }

    fn path(&self, secret: &SecretId) -> String {
        with_client!(self, store => store.path(secret))
    }

    fn latest_path(&self, secret: &SecretId) -> String {
        with_client!(self, store => store.latest_path(secret))
    }

    fn permission_name(&self, permission: Permission) -> &'static str {
        with_client!(self, store => store.permission_name(permission))
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        with_client!(self, store => store.find(secret).await)
    }

    async fn list(&self, labels: &[(&str, &str)], page: Option<&str>) -> Result<ListedSecrets, StoreError> {
        with_client!(self, store => store.list(labels, page).await)
    }

    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        with_client!(self, store => store.create(secret, new).await)
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        with_client!(self, store => store.update(secret, metadata).await)
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        with_client!(self, store => store.delete(secret, etag).await)
    }

    async fn add_version(&self, secret: &SecretId, new: &NewVersion<'_>) -> Result<VersionNumber, StoreError> {
        with_client!(self, store => store.add_version(secret, new).await)
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        with_client!(self, store => store.read_version(secret, number).await)
    }

    async fn newest_version(&self, secret: &SecretId) -> Result<Option<VersionSummary>, StoreError> {
        with_client!(self, store => store.newest_version(secret).await)
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        with_client!(self, store => store.list_versions(secret).await)
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        with_client!(self, store => store.destroy_version(secret, number).await)
    }

    async fn permissions(&self, secret: &SecretId, wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        with_client!(self, store => store.permissions(secret, wanted).await)
    }
}
