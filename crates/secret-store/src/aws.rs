//! AWS Secrets Manager.
//!
//! The writer chooses a version's id, so versions are added exclusively: the id holds the number. The record is in the version's
//! staging labels, which the same request sets. Readers get the version with the label `AWSCURRENT`; it is moved to a version that
//! was read back, and only from the version that the writer has seen.
//!
//! AWS changes tags without a condition: of two updates at the same moment both may succeed, and the later one's stay. It
//! promises no strong reads.

mod add;
mod client;
mod errors;
mod labels;
mod list;
mod permission;
mod requests;
mod tags;
mod text;
mod view;

use std::collections::BTreeSet;
use std::fmt;

use aws_sdk_secretsmanager::types::ReplicaRegionType;
use secrecy::ExposeSecret as _;

use crate::contract::{
    Adds, Capabilities, Destroys, ListedSecrets, LiveVersion, Metadata, NewSecret, NewVersion, Permission, Permissions,
    Records, Replication, Secret, Version, VersionState, VersionSummary,
};
use crate::error::{ErrorKind, Operation};
use crate::passed_over::PassedOver;
use crate::{AwsSettings, SecretId, SecretStore, StoreError, VersionNumber};

use client::{Call, Session, kind};
use errors::NOT_FOUND;
use tags::request_tags;
use view::{Current, View};

/// The largest content of a version.
const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// A [`SecretStore`] in AWS Secrets Manager.
pub struct AwsStore {
    session: Session,
    passed_over: PassedOver,
}

// === impl AwsStore ===

impl AwsStore {
    /// Sets up the client. No request is sent to the store; an identity that does not work fails the first call.
    ///
    /// # Errors
    ///
    /// An address in the environment to which tokens may not be sent.
    pub async fn connect(settings: &AwsSettings) -> Result<Self, StoreError> {
        let session = Box::pin(Session::new(settings)).await?;
        Ok(Self { session, passed_over: PassedOver::default() })
    }

    fn call(&self, operation: Operation, secret: &SecretId) -> Call<'_> {
        self.session.call(operation, self.name(secret))
    }

    fn version_call(&self, operation: Operation, secret: &SecretId, number: VersionNumber) -> Call<'_> {
        self.session.call(operation, format_args!("{}/versions/{number}", self.name(secret)))
    }

    fn folder(&self) -> String {
        format!("{}/", self.session.settings.folder)
    }

    fn name(&self, secret: &SecretId) -> String {
        format!("{}{secret}", self.folder())
    }

    /// Returns the key of the store's own region, and the replicas in others.
    fn places(&self, call: &Call<'_>, replication: &Replication) -> Result<Places, StoreError> {
        let replicas = match replication {
            Replication::Automatic { kms_key } | Replication::Regional { kms_key } => {
                return Ok(Places { kms_key: kms_key.clone(), replicas: Vec::new() });
            }
            Replication::Locations(replicas) => replicas,
        };
        let own = &self.session.settings.region;
        let Some(home) = replicas.iter().find(|replica| replica.location == *own) else {
            let detail = format!("the replication names regions, and the store's own, {own}, is not among them");
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        };
        let others = replicas.iter().filter(|replica| replica.location != *own).map(|replica| {
            let region = ReplicaRegionType::builder().region(replica.location.as_str());
            region.set_kms_key_id(replica.kms_key.clone()).build()
        });
        Ok(Places { kms_key: home.kms_key.clone(), replicas: others.collect() })
    }

    /// Returns a secret that can be used; `None` if there is none, or if it is scheduled for deletion.
    async fn usable(&self, call: &Call<'_>, secret: &SecretId) -> Result<Option<View>, StoreError> {
        Ok(self.describe(call, secret).await?.filter(|view| !view.is_scheduled_for_deletion))
    }

    /// Returns the state of a version with these labels.
    async fn state(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        number: VersionNumber,
        labels: &[String],
    ) -> Result<VersionState, StoreError> {
        if labels.iter().any(|label| label == labels::CURRENT) {
            self.passed_over.forget(secret);
            return Ok(VersionState::Live);
        }
        if labels.is_empty() {
            return Ok(VersionState::Destroyed);
        }
        let view = self.usable(call, secret).await?;
        let unknown = || call.failed(ErrorKind::Unavailable).with_detail("the secret does not show yet");
        let view = view.ok_or_else(unknown)?;
        let state = view.versions.state(number, labels);
        if state == VersionState::Disabled {
            self.passed_over.note(secret, view.versions.current_id());
        }
        Ok(state)
    }

    /// Returns the state of a number that no version with that id has.
    async fn read_unnumbered(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        number: VersionNumber,
    ) -> Result<Version, StoreError> {
        let Some(View { versions, .. }) = self.usable(call, secret).await? else { return Ok(Version::Absent) };
        if versions.newest().is_some_and(|newest| number < newest) {
            // AWS has removed it, or it was never given.
            return Ok(Version::Destroyed);
        }
        let Current::Unnumbered(id) = versions.current() else { return Ok(Version::Absent) };
        if !self.is_next(call, secret, &versions, number).await? {
            return Ok(Version::Absent);
        }
        let found = self.get_by_id(call, secret, id.to_owned()).await?;
        Ok(found.map_or(Version::Absent, |found| Version::Live(LiveVersion::without_record(found.content))))
    }
}

/// The places of a new secret.
struct Places {
    kms_key: Option<String>,
    replicas: Vec<ReplicaRegionType>,
}

impl fmt::Debug for AwsStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AwsSettings { region, endpoint, folder, .. } = &self.session.settings;
        formatter
            .debug_struct("AwsStore")
            .field("region", region)
            .field("endpoint", endpoint)
            .field("folder", folder)
            .finish_non_exhaustive()
    }
}

impl SecretStore for AwsStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_content_bytes: MAX_CONTENT_BYTES,
            adds: Adds::Exclusive,
            records: Records::WithVersion,
            versions_kept: Some(AwsSettings::VERSIONS_KEPT),
            destroys: Destroys::Superseded,
        }
    }

    /// Returns `{folder}/{secret}`, the secret's name.
    fn path(&self, secret: &SecretId) -> String {
        self.name(secret)
    }

    /// Returns the same as [`path`](Self::path): a read without a version is one of the current version.
    fn latest_path(&self, secret: &SecretId) -> String {
        self.path(secret)
    }

    fn permission_name(&self, permission: Permission) -> &'static str {
        permission::name(permission)
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        let call = self.call(Operation::Find, secret);
        let found = self.usable(&call, secret).await?;
        Ok(found.map(|view| Secret { metadata: view.into_metadata() }))
    }

    async fn list(&self, labels: &[(&str, &str)], page: Option<&str>) -> Result<ListedSecrets, StoreError> {
        self.listed(labels, page).await
    }

    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        let call = self.call(Operation::Create, secret);
        let tags = tags::write(&new.labels, &new.annotations, &tags::Tags::new())
            .map_err(|detail| call.failed(ErrorKind::Invalid).with_detail(detail))?;
        let Places { kms_key, replicas } = self.places(&call, &new.replication)?;
        let request = self.session.client.create_secret().name(self.name(secret)).set_kms_key_id(kms_key);
        let replicas = Some(replicas).filter(|replicas| !replicas.is_empty());
        let request = request.set_tags(Some(request_tags(&tags))).set_add_replica_regions(replicas);
        call.send(kind(Operation::Create, Permission::Create), Box::pin(request.send())).await?;
        Ok(())
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        let call = self.call(Operation::Update, secret);
        let view = self.describe(&call, secret).await?.ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        if view.is_scheduled_for_deletion {
            return Err(call.pending_deletion());
        }
        if view.etag() != metadata.etag {
            return Err(call.failed(ErrorKind::Changed));
        }
        let tags = tags::write(&metadata.labels, &metadata.annotations, &view.tags)
            .map_err(|detail| call.failed(ErrorKind::Invalid).with_detail(detail))?;
        let mut changed = tags.clone();
        // All parts of the annotations together: those of two writers must not be mixed.
        changed.retain(|key, value| tags::is_ours(key) || view.tags.get(key) != Some(value));
        let request = self.session.client.tag_resource().secret_id(self.name(secret));
        let request = request.set_tags(Some(request_tags(&changed)));
        call.send(kind(Operation::Update, Permission::Update), Box::pin(request.send())).await?;
        let removed: Vec<_> = view.tags.keys().filter(|key| !tags.contains_key(*key)).cloned().collect();
        if !removed.is_empty() {
            let request = self.session.client.untag_resource().secret_id(self.name(secret));
            let untag =
                client::Kind { needs: "secretsmanager:UntagResource", ..kind(Operation::Update, Permission::Update) };
            call.send(untag, Box::pin(request.set_tag_keys(Some(removed)).send())).await?;
        }
        Ok(tags::etag(&view.arn, &tags))
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        let call = self.call(Operation::Delete, secret);
        let Some(view) = self.usable(&call, secret).await? else { return Ok(false) };
        if view.etag() != etag {
            return Err(call.failed(ErrorKind::Changed));
        }
        let delete = kind(Operation::Delete, Permission::Delete);
        if !view.replicas.is_empty() {
            let request = self.session.client.remove_regions_from_replication().secret_id(self.name(secret));
            let regions = client::Kind { needs: "secretsmanager:RemoveRegionsFromReplication", ..delete };
            call.send(regions, Box::pin(request.set_remove_replica_regions(Some(view.replicas)).send())).await?;
        }
        let request = self.session.client.delete_secret().secret_id(self.name(secret));
        let request = match self.session.settings.recovery_days {
            Some(days) => request.recovery_window_in_days(days.into()),
            None => request.force_delete_without_recovery(true),
        };
        match call.send(delete, Box::pin(request.send())).await {
            Err(fault) if fault.code == NOT_FOUND => Ok(false),
            Err(fault) => Err(fault.error),
            Ok(_) => Ok(true),
        }
    }

    async fn add_version(&self, secret: &SecretId, new: &NewVersion<'_>) -> Result<VersionNumber, StoreError> {
        let bytes = new.content.expose_secret();
        let call = self.call(Operation::AddVersion, secret).hiding(std::str::from_utf8(bytes).ok());
        if !(1..=MAX_CONTENT_BYTES).contains(&bytes.len()) {
            let detail = format!("the content has {} bytes; it must have 1 to {MAX_CONTENT_BYTES}", bytes.len());
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        }
        let Some(record) = labels::write(new.number, new.record) else {
            let detail = "the record is too long: two labels of 256 characters must hold it";
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        };
        Box::pin(self.added(&call, secret, new, record)).await
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        let call = self.version_call(Operation::ReadVersion, secret, number);
        let found = match self.get(&call, secret, number).await {
            Err(error) if error.kind == ErrorKind::PendingDeletion => return Ok(Version::Absent),
            found => found?,
        };
        let Some(view::Found { content, labels }) = found else {
            return self.read_unnumbered(&call, secret, number).await;
        };
        let state = self.state(&call, secret, number, &labels).await?;
        Ok(match state {
            VersionState::Live => {
                Version::Live(LiveVersion { content, record: labels::read(number, &labels).unwrap_or_default() })
            }
            VersionState::Disabled => Version::Disabled,
            VersionState::Destroyed => Version::Destroyed,
        })
    }

    async fn newest_version(&self, secret: &SecretId) -> Result<Option<VersionSummary>, StoreError> {
        let call = self.call(Operation::FindVersion, secret);
        if self.usable(&call, secret).await?.is_none() {
            return Ok(None);
        }
        Ok(self.all_versions(&call, secret).await?.summaries().into_iter().next())
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        let call = self.call(Operation::ListVersions, secret);
        if self.usable(&call, secret).await?.is_none() {
            return Err(call.failed(ErrorKind::NotFound));
        }
        Ok(self.all_versions(&call, secret).await?.summaries())
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        let call = self.version_call(Operation::DestroyVersion, secret, number);
        let view = self.describe(&call, secret).await?.ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        if view.is_scheduled_for_deletion {
            return Err(call.pending_deletion());
        }
        let labels = view.versions.labels(number);
        if labels.iter().any(|label| label == labels::CURRENT) {
            let hint = "add another version first, or delete the secret".to_owned();
            let refused = StoreError { hint: Some(hint), ..call.failed(ErrorKind::Invalid) };
            return Err(refused.with_detail("it is the version that readers get"));
        }
        let is_there = !labels.is_empty() || view.versions.newest().is_some_and(|newest| number <= newest);
        if !is_there && self.get(&call, secret, number).await?.is_none() {
            return Err(call.failed(ErrorKind::NotFound));
        }
        self.take_labels(&call, secret, number, labels).await
    }

    /// Returns all of them as unknown: AWS does not say without trying.
    async fn permissions(&self, _secret: &SecretId, wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        Ok(Permissions { missing: BTreeSet::new(), unknown: wanted.clone() })
    }
}
