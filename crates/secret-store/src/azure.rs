//! Azure Key Vault.
//!
//! A version has a random id, no number, and is added without a condition. So the number is a tag of the version, and the
//! version that was the first with a number has it; `azure/add.rs` has the steps. A secret without versions is a placeholder: a
//! disabled version with the number 0. Labels and annotations are tags of the newest version too, and each addition takes them over.
//!
//! Azure changes tags without a condition as well: of two updates at the same moment both may succeed, and the later one's stay;
//! one at the moment of an addition may be lost. A version can be disabled, not deleted: the content of a destroyed version is kept until
//! its secret is purged, and this crate does not read it.

mod add;
mod client;
mod delete;
mod errors;
mod identity;
mod list;
mod permission;
mod requests;
mod tags;
mod transport;
mod view;
mod wire;

use std::collections::BTreeSet;
use std::fmt;

use secrecy::ExposeSecret as _;

use crate::contract::{
    Adds, Capabilities, Destroys, ListedSecrets, LiveVersion, Metadata, NewSecret, NewVersion, Permission, Permissions,
    Records, Secret, Version, VersionState, VersionSummary,
};
use crate::error::{ErrorKind, Operation};
use crate::passed_over::PassedOver;
use crate::{AzureSettings, SecretId, SecretStore, StoreError, VersionNumber};

use client::{Call, Session, kind};
use tags::{Details, Tags};
use view::Entry;
use wire::{Change, Found, Got};

/// The largest content of a version. Azure allows 25 KB; a content that is not UTF-8 is a third larger there.
const MAX_CONTENT_BYTES: usize = 25_000;
/// The longest name of a secret.
const MAX_NAME: usize = 127;
/// A [`SecretStore`] in Azure Key Vault.
pub struct AzureStore {
    session: Session,
    passed_over: PassedOver,
}

// === impl AzureStore ===

impl AzureStore {
    /// Sets up the client. No request is sent; an identity that does not work fails the first call.
    ///
    /// # Errors
    ///
    /// An address that is not `https`, or a file of certificate authorities that cannot be used.
    pub fn connect(settings: &AzureSettings) -> Result<Self, StoreError> {
        Ok(Self { session: Session::new(settings)?, passed_over: PassedOver::default() })
    }

    fn call(&self, operation: Operation, secret: &SecretId) -> Result<Call<'static>, StoreError> {
        self.named_call(operation, secret, self.path(secret))
    }

    fn version_call(
        &self,
        operation: Operation,
        secret: &SecretId,
        number: VersionNumber,
    ) -> Result<Call<'static>, StoreError> {
        self.named_call(operation, secret, format!("{}/versions/{number}", self.path(secret)))
    }

    /// Fails if the name is none that Azure allows.
    fn named_call(
        &self,
        operation: Operation,
        secret: &SecretId,
        resource: String,
    ) -> Result<Call<'static>, StoreError> {
        let call = self.session.call(operation, resource);
        let name = secret.as_str();
        if name.len() > MAX_NAME || name.contains('_') {
            let detail = format!("the name must be 1 to {MAX_NAME} characters of A-Z, a-z, 0-9 and '-'");
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        }
        Ok(call)
    }
}

impl fmt::Debug for AzureStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AzureSettings { vault, identity, .. } = &self.session.settings;
        formatter
            .debug_struct("AzureStore")
            .field("vault", &vault.as_str())
            .field("identity", identity)
            .finish_non_exhaustive()
    }
}

impl SecretStore for AzureStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_content_bytes: MAX_CONTENT_BYTES,
            adds: Adds::Exclusive,
            records: Records::WithVersion,
            versions_kept: None,
            destroys: Destroys::Superseded,
        }
    }

    /// Returns `{vault}/secrets/{secret}`, the secret's identifier.
    fn path(&self, secret: &SecretId) -> String {
        format!("{}/secrets/{secret}", self.session.settings.vault)
    }

    /// Returns the same as [`path`](Self::path): a read without a version is one of the newest.
    fn latest_path(&self, secret: &SecretId) -> String {
        self.path(secret)
    }

    fn permission_name(&self, permission: Permission) -> &'static str {
        permission::name(permission)
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        let call = self.call(Operation::Find, secret)?;
        let view = self.view(&call, Operation::Find, secret).await?;
        Ok(view.map(|view| Secret { metadata: view.details().into_metadata() }))
    }

    async fn list(&self, labels: &[(&str, &str)], page: Option<&str>) -> Result<ListedSecrets, StoreError> {
        self.listed(labels, page).await
    }

    /// The replication is the vault's own; nothing of it is set.
    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        let call = self.call(Operation::Create, secret)?;
        let details = Details::new(&new.labels, &new.annotations);
        let tags = tags::of_version(0, &[].into(), &Tags::new()).and_then(|tags| details.write(&tags));
        let tags = tags.map_err(|detail| call.failed(ErrorKind::Invalid).with_detail(detail))?;
        if self.view(&call, Operation::Find, secret).await?.is_some() {
            return Err(call.failed(ErrorKind::AlreadyExists));
        }
        Box::pin(self.created(&call, secret, tags)).await
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        let call = self.call(Operation::Update, secret)?;
        let view = self.view(&call, Operation::Find, secret).await?;
        let view = view.ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        let details = view.details();
        if details.etag() != metadata.etag {
            return Err(call.failed(ErrorKind::Changed));
        }
        let carrier = view.carrier().ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        let details = details.updated(&metadata.labels, &metadata.annotations);
        let tags = details.write(&carrier.tags);
        let tags = tags.map_err(|detail| call.failed(ErrorKind::Invalid).with_detail(detail))?;
        let change = Change { is_enabled: None, tags: Some(tags) };
        self.patch(&call, kind(Operation::Update, Permission::Update), secret, &carrier.id, change).await?;
        Ok(details.etag())
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        let call = self.call(Operation::Delete, secret)?;
        Box::pin(self.deleted(&call, secret, etag)).await
    }

    async fn add_version(&self, secret: &SecretId, new: &NewVersion<'_>) -> Result<VersionNumber, StoreError> {
        let bytes = new.content.expose_secret();
        let call = self.call(Operation::AddVersion, secret)?.hiding(std::str::from_utf8(bytes).ok());
        if !(1..=MAX_CONTENT_BYTES).contains(&bytes.len()) {
            let detail = format!("the content has {} bytes; it must have 1 to {MAX_CONTENT_BYTES}", bytes.len());
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        }
        Box::pin(self.added(&call, secret, new)).await
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        let call = self.version_call(Operation::ReadVersion, secret, number)?;
        let Some(view) = self.decided_number(&call, secret, number.get()).await? else { return Ok(Version::Absent) };
        let (state, winner) = (view.state(number), view.winner(number.get()));
        let (Some(state), Some(winner)) = (state, winner) else { return Ok(Version::Absent) };
        match state {
            VersionState::Disabled => {
                self.passed_over.note(secret, view.top().map(|top| top.id.clone()));
                return Ok(Version::Disabled);
            }
            VersionState::Destroyed => return Ok(Version::Destroyed),
            VersionState::Live if view.highest() == Some(number.get()) => self.passed_over.forget(secret),
            VersionState::Live => {}
        }
        Ok(match self.get(&call, secret, Some(&winner.id)).await? {
            Got::Found(Found { content, tags, .. }) => {
                Version::Live(LiveVersion { content, record: tags::record(&tags) })
            }
            Got::Disabled => Version::Disabled,
            Got::Absent => Version::Absent,
        })
    }

    async fn newest_version(&self, secret: &SecretId) -> Result<Option<VersionSummary>, StoreError> {
        let call = self.call(Operation::FindVersion, secret)?;
        let view = self.view(&call, Operation::FindVersion, secret).await?;
        Ok(view.and_then(|view| view.summaries().into_iter().next()))
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        let call = self.call(Operation::ListVersions, secret)?;
        let view = self.view(&call, Operation::ListVersions, secret).await?;
        view.map(|view| view.summaries()).ok_or_else(|| call.failed(ErrorKind::NotFound))
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        let call = self.version_call(Operation::DestroyVersion, secret, number)?;
        let view = self.view(&call, Operation::FindVersion, secret).await?;
        let view = view.filter(|view| view.winner(number.get()).is_some());
        let view = view.ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        let left = |version: &&Entry| !version.is_destroyed();
        let versions: Vec<Entry> = view.of_number(number.get()).filter(left).cloned().collect();
        if versions.iter().any(|version| version.is_enabled && view.top().is_some_and(|top| top.id == version.id)) {
            let hint = "add another version first, or delete the secret".to_owned();
            let refused = StoreError { hint: Some(hint), ..call.failed(ErrorKind::Invalid) };
            return Err(refused.with_detail("it is the version that readers get"));
        }
        for version in versions {
            let change = Change { is_enabled: Some(false), tags: Some(tags::of_destroyed(&version.tags)) };
            let kind = kind(Operation::DestroyVersion, Permission::DestroyVersion);
            self.patch(&call, kind, secret, &version.id, change).await?;
        }
        Ok(())
    }

    /// Returns all of them as unknown: Azure does not say without trying.
    async fn permissions(&self, _secret: &SecretId, wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        Ok(Permissions { missing: BTreeSet::new(), unknown: wanted.clone() })
    }
}
