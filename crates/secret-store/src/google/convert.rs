//! Maps Google's messages to the contract's types.

use google_cloud_secretmanager_v1::model;
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::contract::{Metadata, NewSecret, Replica, Replication, Secret, VersionState};
use crate::{VersionNumber, VersionSummary};

pub(super) fn secret(found: model::Secret) -> Secret {
    let labels = found.labels.into_iter().collect();
    let annotations = found.annotations.into_iter().collect();
    Secret { metadata: Metadata { labels, annotations, etag: found.etag } }
}

pub(super) fn new_secret(new: &NewSecret) -> model::Secret {
    let secret = model::Secret::new().set_labels(&new.labels).set_annotations(&new.annotations);
    match &new.replication {
        Replication::Automatic { kms_key } => {
            let automatic = model::replication::Automatic::new()
                .set_or_clear_customer_managed_encryption(kms_key.as_deref().map(encryption));
            secret.set_replication(model::Replication::new().set_automatic(automatic))
        }
        Replication::Locations(replicas) => {
            let replicas = replicas.iter().map(replica);
            let user_managed = model::replication::UserManaged::new().set_replicas(replicas);
            secret.set_replication(model::Replication::new().set_user_managed(user_managed))
        }
        Replication::Regional { kms_key } => {
            secret.set_or_clear_customer_managed_encryption(kms_key.as_deref().map(encryption))
        }
    }
}

pub(super) fn changed_secret(path: &str, metadata: &Metadata) -> model::Secret {
    model::Secret::new()
        .set_name(path)
        .set_etag(&metadata.etag)
        .set_labels(&metadata.labels)
        .set_annotations(&metadata.annotations)
}

pub(super) fn payload(content: &SecretSlice<u8>) -> model::SecretPayload {
    let bytes = content.expose_secret();
    model::SecretPayload::new().set_data(bytes.to_vec()).set_data_crc32c(i64::from(crc32c::crc32c(bytes)))
}

/// Returns the content if it matches its checksum.
pub(super) fn content(answer: model::AccessSecretVersionResponse) -> Option<SecretSlice<u8>> {
    let payload = answer.payload?;
    let content = SecretSlice::from(payload.data.to_vec());
    let checksum = i64::from(crc32c::crc32c(content.expose_secret()));
    payload.data_crc32c.is_none_or(|stated| stated == checksum).then_some(content)
}

pub(super) fn summary(version: &model::SecretVersion) -> Option<VersionSummary> {
    let state = match version.state {
        model::secret_version::State::Enabled => VersionState::Live,
        model::secret_version::State::Destroyed => VersionState::Destroyed,
        _ => VersionState::Disabled,
    };
    Some(VersionSummary { number: version_number(&version.name)?, state })
}

/// Returns the number at the end of a version's full name.
pub(super) fn version_number(name: &str) -> Option<VersionNumber> {
    name.rsplit('/').next()?.parse().ok()
}

fn replica(replica: &Replica) -> model::replication::user_managed::Replica {
    model::replication::user_managed::Replica::new()
        .set_location(replica.location.as_str())
        .set_or_clear_customer_managed_encryption(replica.kms_key.as_deref().map(encryption))
}

fn encryption(kms_key: &str) -> model::CustomerManagedEncryption {
    model::CustomerManagedEncryption::new().set_kms_key_name(kms_key)
}
