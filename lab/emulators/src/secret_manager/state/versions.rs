//! Versions: add, read, access, disable, enable, destroy.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Decision, Record, State, Version, Write, check_etag, etag, secret_not_found};
use crate::secret_manager::names::{Key, Which};
use crate::secret_manager::status::Status;
use crate::secret_manager::wire::requests::{Accessed, Add, Tagged};
use crate::secret_manager::wire::resources::{
    AutomaticStatus, Encryption, EncryptionStatus, Replica, ReplicaStatus, ReplicationStatus, UserManagedStatus,
};
use crate::secret_manager::wire::values::timestamp;
use crate::secret_manager::wire::{Change, Response, Secret, SecretPayload, SecretVersion, VersionState};

/// The largest content.
const PAYLOAD_BYTES_MAXIMUM: usize = 64 * 1024;

impl State {
    pub(super) fn add_version(&self, now: Timestamp, add: &Add) -> Result<Decision, Status> {
        let key = Key::parse(&add.parent)?;
        let payload = checked(add.payload.as_ref())?;
        let mut record = Record::clone(self.current(&key)?);
        let number = record.versions.last_key_value().map_or(1, |(last, _)| last + 1);
        let revision = self.next_revision(now);
        let meta = SecretVersion {
            name: key.version(number),
            create_time: Some(timestamp(now)),
            state: VersionState::Enabled as i32,
            replication_status: replication_status(&record.secret),
            etag: etag(revision),
            client_specified_payload_checksum: add.payload.as_ref().is_some_and(|given| given.data_crc32c.is_some()),
            customer_managed_encryption: encrypted(record.secret.customer_managed_encryption.as_ref()),
            ..SecretVersion::default()
        };
        let response = Response::Version(meta.clone());
        record.versions.insert(number, Version { meta, payload: Some(Arc::new(payload)) });
        Ok(Decision { response, write: Some(Write { key, record: Some(Arc::new(record)), revision }) })
    }

    pub(super) fn get_version(&self, now: Timestamp, name: &str) -> Result<Response, Status> {
        let (key, which) = Key::parse_version(name)?;
        let record = self.seen(now, &key).ok_or_else(|| secret_not_found(&key))?;
        let number = record.resolve(&which);
        let version = number.and_then(|number| record.versions.get(&number));
        let version = version.ok_or_else(|| version_not_found(&key, &which))?;
        Ok(Response::Version(version.meta.clone()))
    }

    /// By number this is strongly consistent; `latest` and aliases are looked up in what lagging reads see.
    pub(super) fn access_version(&self, now: Timestamp, name: &str) -> Result<Response, Status> {
        let (key, which) = Key::parse_version(name)?;
        let empty = || Status::not_found(format!("Secret [{key}] not found or has no versions."));
        let number = match which {
            Which::Number(number) => number,
            Which::Latest => self.seen(now, &key).and_then(|seen| seen.resolve(&which)).ok_or_else(empty)?,
            Which::Alias(_) => {
                let seen = self.seen(now, &key).ok_or_else(empty)?;
                seen.resolve(&which).ok_or_else(|| version_not_found(&key, &which))?
            }
        };
        let record = self.secrets.get(&key).ok_or_else(empty)?;
        let version = record.versions.get(&number).ok_or_else(|| version_not_found(&key, &which))?;
        match (&version.payload, version.state()) {
            (Some(payload), VersionState::Enabled) => {
                let payload = Some(SecretPayload::clone(payload));
                Ok(Response::Accessed(Accessed { name: version.meta.name.clone(), payload }))
            }
            _ => Err(version.wrong_state()),
        }
    }

    pub(super) fn change_version(&self, now: Timestamp, change: Change, tagged: &Tagged) -> Result<Decision, Status> {
        let (key, which) = Key::parse_version(&tagged.name)?;
        let Which::Number(number) = which else {
            let message = format!("Secret Version [{}] must be named by its number.", tagged.name);
            return Err(Status::bad_field("name", message));
        };
        let mut record = Record::clone(self.current(&key)?);
        let delay = record.secret.version_destroy_ttl;
        let version = record.versions.get_mut(&number).ok_or_else(|| version_not_found(&key, &which))?;
        check_etag(&tagged.etag, &version.meta.etag, &format!("Secret Version [{}]", version.meta.name))?;
        if version.state() == VersionState::Destroyed {
            return Err(version.wrong_state());
        }
        match (change, delay) {
            (Change::Enable, _) => version.set(VersionState::Enabled),
            (Change::Disable, _) => version.set(VersionState::Disabled),
            (Change::Destroy, None) => version.destroy(now),
            (Change::Destroy, Some(delay)) => {
                let end = now.checked_add(SignedDuration::new(delay.seconds, delay.nanos)).unwrap_or(Timestamp::MAX);
                let scheduled = version.meta.scheduled_destroy_time.unwrap_or_else(|| timestamp(end));
                version.set(VersionState::Disabled);
                version.meta.scheduled_destroy_time = Some(scheduled);
            }
        }
        let revision = self.next_revision(now);
        version.meta.etag = etag(revision);
        let response = Response::Version(version.meta.clone());
        Ok(Decision { response, write: Some(Write { key, record: Some(Arc::new(record)), revision }) })
    }
}

impl Version {
    fn state(&self) -> VersionState {
        VersionState::try_from(self.meta.state).unwrap_or(VersionState::Unspecified)
    }

    /// Enabling or disabling a version also calls off its scheduled destruction.
    fn set(&mut self, state: VersionState) {
        self.meta.state = state as i32;
        self.meta.scheduled_destroy_time = None;
    }

    pub(super) fn destroy(&mut self, now: Timestamp) {
        self.set(VersionState::Destroyed);
        self.meta.destroy_time = Some(timestamp(now));
        self.payload = None;
    }

    fn wrong_state(&self) -> Status {
        Status::precondition(format!("Secret Version [{}] is in {} state.", self.meta.name, self.state().name()))
    }
}

/// The content as it will be kept, with its checksum.
fn checked(payload: Option<&SecretPayload>) -> Result<SecretPayload, Status> {
    let data = payload.map(|payload| payload.data.clone()).unwrap_or_default();
    if data.is_empty() {
        return Err(Status::bad_field("payload.data", "Secret Payload cannot be empty."));
    }
    if data.len() > PAYLOAD_BYTES_MAXIMUM {
        let message = format!(
            "Secret Payload of {} bytes is larger than the limit of {PAYLOAD_BYTES_MAXIMUM} bytes.",
            data.len()
        );
        return Err(Status::bad_field("payload.data", message));
    }
    let checksum = i64::from(crc32c::crc32c(&data));
    let given = payload.and_then(|payload| payload.data_crc32c);
    if given.is_some_and(|given| given != checksum) {
        let message = "The checksum data_crc32c does not match the payload: it was corrupted on its way, or its checksum is wrong.";
        return Err(Status::bad_field("payload.data_crc32c", message));
    }
    Ok(SecretPayload { data, data_crc32c: Some(checksum) })
}

fn version_not_found(key: &Key, which: &Which) -> Status {
    let version = match which {
        Which::Latest => "latest".to_owned(),
        Which::Number(number) => number.to_string(),
        Which::Alias(alias) => alias.clone(),
    };
    Status::not_found(format!("Secret Version [{key}/versions/{version}] not found."))
}

/// Location of a new version's content; a regional secret has none.
fn replication_status(secret: &Secret) -> Option<ReplicationStatus> {
    let replication = secret.replication.as_ref()?;
    let automatic = replication.automatic.as_ref().map(|automatic| AutomaticStatus {
        customer_managed_encryption: encrypted(automatic.customer_managed_encryption.as_ref()),
    });
    let status = |replica: &Replica| ReplicaStatus {
        location: replica.location.clone(),
        customer_managed_encryption: encrypted(replica.customer_managed_encryption.as_ref()),
    };
    let user_managed = replication.user_managed.as_ref();
    let user_managed =
        user_managed.map(|managed| UserManagedStatus { replicas: managed.replicas.iter().map(status).collect() });
    Some(ReplicationStatus { automatic, user_managed })
}

/// Keys never rotate here, so it is always their first version.
fn encrypted(encryption: Option<&Encryption>) -> Option<EncryptionStatus> {
    encryption.map(|key| EncryptionStatus { kms_key_version_name: format!("{}/cryptoKeyVersions/1", key.kms_key_name) })
}
