//! OpenBao and HashiCorp Vault: the KV engine, version 2.
//!
//! The server adds a version only if it is the next one (check-and-set), so versions are added exclusively and carry their
//! record. OpenBao changes metadata under a condition as well. HashiCorp's server does not: there, two creations or two
//! updates at the same moment may both succeed, and the later one's labels and annotations stay.
//!
//! On both, two conditions are checked by a read just before the write: that a first version is added to a secret that exists,
//! and that a secret which is deleted is at the stated etag.

mod client;
mod errors;
mod list;
mod login;
mod metadata;
mod permission;
mod session;
mod token;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use http::Method;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::contract::{
    Adds, Capabilities, Destroys, ListedSecrets, LiveVersion, Metadata, NewSecret, NewVersion, Permission, Permissions,
    Records, Secret, Version, VersionState, VersionSummary,
};
use crate::error::{ErrorKind, Operation};
use crate::{SecretId, SecretStore, StoreError, VaultSettings, VersionNumber};

use client::{Body, Call, Reply, Request};
use session::Session;
use wire::{Change, Custom, Mount, SecretInfo};

/// The largest content of a version.
const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// A [`SecretStore`] in OpenBao or HashiCorp Vault.
pub struct VaultStore {
    session: Session,
    /// `{mount}/{folder}`, with the namespace before it.
    place: String,
}

// === impl VaultStore ===

impl VaultStore {
    /// Sets up the client. No request is sent; an identity that does not work fails the first call.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(settings: &VaultSettings) -> Result<Self, StoreError> {
        let VaultSettings { namespace, mount, folder, .. } = settings;
        let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        Ok(Self { session: Session::new(settings)?, place: format!("{namespace}{mount}/{folder}") })
    }

    fn call(&self, operation: Operation, secret: &SecretId) -> Call<'_> {
        self.session.client.call(operation, self.path(secret))
    }

    /// Returns the path of a request about a secret.
    fn request_path(&self, area: &str, secret: &SecretId) -> String {
        format!("{}/{secret}", self.folder_path(area))
    }

    fn folder_path(&self, area: &str) -> String {
        let VaultSettings { mount, folder, .. } = &self.session.client.settings;
        format!("{mount}/{area}/{folder}")
    }

    /// Reads a secret's metadata, as a part of an operation or as the whole.
    async fn info(
        &self,
        call: &Call<'_>,
        counts_as: Operation,
        secret: &SecretId,
    ) -> Result<Option<SecretInfo>, StoreError> {
        let request = Request::new(counts_as, Permission::Find, Method::GET, self.request_path("metadata", secret));
        match self.session.send(call, &request).await? {
            Reply::Found(body) => wire::data(&body).map(Some).ok_or_else(|| unversioned(call)),
            Reply::Absent(_) => Ok(None),
        }
    }

    /// Fails if the mount is known to be another engine, or another version of it: its paths would be taken for secrets.
    async fn check_engine(&self, call: &Call<'_>) -> Result<(), StoreError> {
        let path = format!("sys/internal/ui/mounts/{}", self.session.client.settings.mount);
        let request = Request { needs: None, ..Request::new(Operation::Find, Permission::Find, Method::GET, path) };
        let answer = self.session.exchange(call, &request).await?;
        let mount =
            Some(answer).filter(|answer| answer.status == 200).and_then(|answer| wire::data::<Mount>(&answer.body));
        let version = mount.and_then(|mount| mount.options?.remove("version"));
        if version.is_some_and(|version| version != "2") { Err(unversioned(call)) } else { Ok(()) }
    }

    fn change(&self, operation: Operation, secret: &SecretId, change: &Change) -> Request {
        let permission = if operation == Operation::Create { Permission::Create } else { Permission::Update };
        let path = self.request_path("metadata", secret);
        Request::new(operation, permission, Method::POST, path).with_body(json!(change).to_string())
    }

    async fn read(&self, call: &Call<'_>, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        let path = self.request_path("data", secret);
        let request = Request::new(Operation::ReadVersion, Permission::ReadVersion, Method::GET, path)
            .with_query(format!("version={number}"));
        match self.session.send(call, &request).await? {
            Reply::Found(body) => wire::version(&body).ok_or_else(|| call.unreadable()),
            Reply::Absent(body) => Ok(wire::version(&body).unwrap_or(Version::Absent)),
        }
    }

    /// Returns the result of an addition that the server has refused because the number is not the next one: the version may
    /// be there, from a call whose answer was lost.
    async fn after_mismatch(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
    ) -> Result<VersionNumber, StoreError> {
        match self.read(call, secret, new.number).await? {
            Version::Live(LiveVersion { content, record })
                if content.expose_secret() == new.content.expose_secret() && record == *new.record =>
            {
                Ok(new.number)
            }
            Version::Absent if self.info(call, Operation::Find, secret).await?.is_none() => {
                Err(call.failed(ErrorKind::NotFound))
            }
            _ => Err(call.failed(ErrorKind::Changed)),
        }
    }
}

impl fmt::Debug for VaultStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.session.client.settings.address.as_str();
        formatter
            .debug_struct("VaultStore")
            .field("address", &address)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl SecretStore for VaultStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_content_bytes: MAX_CONTENT_BYTES,
            adds: Adds::Exclusive,
            records: Records::WithVersion,
            versions_kept: Some(VaultSettings::VERSIONS_KEPT),
            destroys: Destroys::Any,
        }
    }

    /// Returns `{mount}/{folder}/{secret}`, with the namespace before it.
    fn path(&self, secret: &SecretId) -> String {
        format!("{}/{secret}", self.place)
    }

    /// Returns the same as [`path`](Self::path): a read without a version is one of the newest.
    fn latest_path(&self, secret: &SecretId) -> String {
        self.path(secret)
    }

    fn permission_name(&self, permission: Permission) -> &'static str {
        permission::name(permission)
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        let call = self.call(Operation::Find, secret);
        let found = self.info(&call, Operation::Find, secret).await?;
        Ok(found.map(|info| Secret { metadata: metadata::read(info) }))
    }

    async fn list(&self, labels: &[(&str, &str)], page: Option<&str>) -> Result<ListedSecrets, StoreError> {
        self.listed(labels, page).await
    }

    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        let call = self.call(Operation::Create, secret);
        let custom = custom(&call, &new.labels, &new.annotations, &Custom::new())?;
        // HashiCorp's server knows no condition for metadata.
        if self.info(&call, Operation::Find, secret).await?.is_some() {
            return Err(call.failed(ErrorKind::AlreadyExists));
        }
        self.check_engine(&call).await?;
        let change =
            Change { custom_metadata: custom, metadata_cas: Some(0), max_versions: Some(VaultSettings::VERSIONS_KEPT) };
        match self.session.send(&call, &self.change(Operation::Create, secret, &change)).await {
            Ok(Reply::Found(_)) => Ok(()),
            Ok(Reply::Absent(_)) => Err(call.unreadable()),
            Err(error) if error.kind == ErrorKind::Changed => Err(call.failed(ErrorKind::AlreadyExists)),
            Err(error) => Err(error),
        }
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        let call = self.call(Operation::Update, secret);
        let info = self.info(&call, Operation::Find, secret).await?.ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        if metadata::etag(&info) != metadata.etag {
            return Err(call.failed(ErrorKind::Changed));
        }
        let nothing = Custom::new();
        let former = info.custom_metadata.as_ref().unwrap_or(&nothing);
        let written = custom(&call, &metadata.labels, &metadata.annotations, former)?;
        let etag = metadata::etag_after(&info, &written);
        let change =
            Change { custom_metadata: written, metadata_cas: info.current_metadata_version, max_versions: None };
        match self.session.send(&call, &self.change(Operation::Update, secret, &change)).await? {
            Reply::Found(_) => Ok(etag),
            Reply::Absent(_) => Err(call.failed(ErrorKind::NotFound)),
        }
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        let call = self.call(Operation::Delete, secret);
        let Some(info) = self.info(&call, Operation::Find, secret).await? else { return Ok(false) };
        if metadata::etag(&info) != etag {
            return Err(call.failed(ErrorKind::Changed));
        }
        let path = self.request_path("metadata", secret);
        let request = Request::new(Operation::Delete, Permission::Delete, Method::DELETE, path);
        match self.session.send(&call, &request).await? {
            Reply::Found(_) => Ok(true),
            Reply::Absent(_) => Ok(false),
        }
    }

    async fn add_version(&self, secret: &SecretId, new: &NewVersion<'_>) -> Result<VersionNumber, StoreError> {
        let call = self.call(Operation::AddVersion, secret);
        let size = new.content.expose_secret().len();
        if !(1..=MAX_CONTENT_BYTES).contains(&size) {
            let detail = format!("the content has {size} bytes; it must have 1 to {MAX_CONTENT_BYTES}");
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        }
        // The server would create the secret, with no labels. A later version needs the one before, and so the secret.
        if new.number == VersionNumber::FIRST && self.info(&call, Operation::Find, secret).await?.is_none() {
            return Err(call.failed(ErrorKind::NotFound));
        }
        let path = self.request_path("data", secret);
        let quotable = std::str::from_utf8(new.content.expose_secret()).ok().map(str::to_owned);
        let body = Body { json: wire::addition(new), secret: quotable };
        let request = Request::new(Operation::AddVersion, Permission::AddVersion, Method::POST, path);
        match self.session.send(&call, &Request { body: Some(body), ..request }).await {
            Ok(Reply::Found(body)) => wire::added(&body)
                .ok_or_else(|| call.failed(ErrorKind::Internal).with_detail("the answer names no version")),
            Ok(Reply::Absent(_)) => Err(call.failed(ErrorKind::NotFound)),
            Err(error) if error.kind == ErrorKind::Changed => self.after_mismatch(&call, secret, new).await,
            Err(error) => Err(error),
        }
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        let call = self.session.client.call(Operation::ReadVersion, version_path(&self.path(secret), number));
        self.read(&call, secret, number).await
    }

    async fn newest_version(&self, secret: &SecretId) -> Result<Option<VersionSummary>, StoreError> {
        let call = self.call(Operation::FindVersion, secret);
        let info = self.info(&call, Operation::FindVersion, secret).await?;
        Ok(info.and_then(|info| info.versions(Timestamp::now()).into_iter().next()))
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        let call = self.call(Operation::ListVersions, secret);
        let info = self.info(&call, Operation::ListVersions, secret).await?;
        info.map(|info| info.versions(Timestamp::now())).ok_or_else(|| call.failed(ErrorKind::NotFound))
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        let call = self.session.client.call(Operation::DestroyVersion, version_path(&self.path(secret), number));
        // The server answers alike for versions that do not exist.
        let info = self.info(&call, Operation::FindVersion, secret).await?;
        let versions = info.map(|info| info.versions(Timestamp::now())).unwrap_or_default();
        match versions.iter().find(|version| version.number == number).map(|version| version.state) {
            None => return Err(call.failed(ErrorKind::NotFound)),
            Some(VersionState::Destroyed) => return Ok(()),
            Some(VersionState::Live | VersionState::Disabled) => {}
        }
        let path = self.request_path("destroy", secret);
        let request = Request::new(Operation::DestroyVersion, Permission::DestroyVersion, Method::PUT, path)
            .with_body(json!({"versions": [number.get()]}).to_string());
        match self.session.send(&call, &request).await? {
            Reply::Found(_) => Ok(()),
            Reply::Absent(_) => Err(call.failed(ErrorKind::NotFound)),
        }
    }

    async fn permissions(&self, secret: &SecretId, wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        let call = self.call(Operation::CheckPermissions, secret);
        let path_of = |permission| match permission {
            Permission::List => self.folder_path(permission::needed(permission).area),
            _ => self.request_path(permission::needed(permission).area, secret),
        };
        let paths: BTreeSet<_> = wanted.iter().copied().map(path_of).collect();
        let path = "sys/capabilities-self".to_owned();
        let request = Request::new(Operation::CheckPermissions, Permission::Find, Method::POST, path)
            .with_body(json!({"paths": paths}).to_string());
        let Reply::Found(body) = self.session.send(&call, &Request { needs: None, ..request }).await? else {
            return Err(call.unreadable());
        };
        let held: BTreeMap<String, Value> = wire::data(&body).ok_or_else(|| call.unreadable())?;
        let is_held = |permission: &Permission| {
            let capabilities = held.get(&path_of(*permission)).and_then(Value::as_array);
            let needed = permission::needed(*permission).capability;
            capabilities.is_some_and(|held| held.iter().any(|held| held == needed || held == "root"))
        };
        let missing = wanted.iter().copied().filter(|permission| !is_held(permission)).collect();
        Ok(Permissions { missing, unknown: BTreeSet::new() })
    }
}

fn version_path(secret: &str, number: VersionNumber) -> String {
    format!("{secret}/versions/{number}")
}

fn custom(
    call: &Call<'_>,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    former: &Custom,
) -> Result<Custom, StoreError> {
    metadata::write(labels, annotations, former)
        .map_err(|key| call.failed(ErrorKind::Invalid).with_detail(format!("the label `{key}` cannot be kept here")))
}

/// Returns the error of a mount that is not the KV engine, version 2.
fn unversioned(call: &Call<'_>) -> StoreError {
    let hint = "use a mount of the KV engine, version 2, or upgrade this one: bao kv enable-versioning MOUNT";
    let detail = "the mount is not the KV engine, version 2";
    StoreError { hint: Some(hint.to_owned()), ..call.failed(ErrorKind::Invalid) }.with_detail(detail)
}
