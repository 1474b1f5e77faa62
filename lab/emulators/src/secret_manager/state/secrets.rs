//! Secrets: create, read, update, delete.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::validate::{check_rotation, check_secret, check_update_replication};
use super::{Decision, Record, State, Write, check_etag, etag, read, secret_not_found};
use crate::secret_manager::names::{Key, Parent, is_secret_id};
use crate::secret_manager::status::Status;
use crate::secret_manager::wire::requests::{Create, Permissions, Tagged, TestIamPermissions, Update};
use crate::secret_manager::wire::resources::Rotation;
use crate::secret_manager::wire::values::timestamp;
use crate::secret_manager::wire::{Response, Secret};

impl State {
    pub(super) fn create_secret(&self, now: Timestamp, create: &Create) -> Result<Decision, Status> {
        let parent = Parent::parse(&create.parent)?;
        if !is_secret_id(&create.secret_id) {
            let message = format!(
                "Secret ID [{}] must be 1 to 255 characters long and consist of letters, digits, hyphens and underscores.",
                create.secret_id
            );
            return Err(Status::bad_field("secret_id", message));
        }
        let key = Key { parent, id: create.secret_id.clone() };
        let revision = self.next_revision(now);
        let mut secret = create.secret.clone().unwrap_or_default();
        secret.name = key.to_string();
        secret.create_time = Some(timestamp(now));
        secret.etag = etag(revision);
        // Tags are resources of another service, which reads them from this request only.
        secret.tags.clear();
        settle_expiry(&mut secret, now)?;
        let record = Record { secret, ..Record::default() };
        check_secret(&key, &record, now)?;
        check_rotation(&record.secret, now)?;
        if self.secrets.contains_key(&key) {
            return Err(Status::exists(format!("Secret [{key}] already exists.")));
        }
        Ok(written(key, record, revision))
    }

    pub(super) fn get_secret(&self, now: Timestamp, name: &str) -> Result<Response, Status> {
        let key = Key::parse(name)?;
        let record = self.seen(now, &key).ok_or_else(|| secret_not_found(&key))?;
        Ok(Response::Secret(record.secret.clone()))
    }

    pub(super) fn update_secret(&self, now: Timestamp, update: &Update) -> Result<Decision, Status> {
        let given = update.secret.clone().unwrap_or_default();
        let key = Key::parse(&given.name)?;
        let paths = update.update_mask.as_ref().map(|mask| mask.paths.as_slice()).unwrap_or_default();
        if paths.is_empty() {
            return Err(Status::bad_field("update_mask", "The update mask must name at least one field."));
        }
        let mut record = Record::clone(self.current(&key)?);
        check_etag(&given.etag, &record.secret.etag, &format!("Secret [{key}]"))?;
        let rotation = record.secret.rotation.clone();
        for path in paths {
            copy_field(&mut record.secret, &given, path)?;
        }
        if record.secret.rotation != rotation {
            check_rotation(&record.secret, now)?;
        }
        settle_expiry(&mut record.secret, now)?;
        check_secret(&key, &record, now)?;
        let revision = self.next_revision(now);
        record.secret.etag = etag(revision);
        Ok(written(key, record, revision))
    }

    pub(super) fn delete_secret(&self, now: Timestamp, tagged: &Tagged) -> Result<Decision, Status> {
        let key = Key::parse(&tagged.name)?;
        check_etag(&tagged.etag, &self.current(&key)?.secret.etag, &format!("Secret [{key}]"))?;
        let write = Write { key, record: None, revision: self.next_revision(now) };
        Ok(Decision { write: Some(write), ..read(Response::Empty) })
    }

    /// All requested permissions, if there is such a secret: every caller is the owner unless permissions are denied.
    pub(super) fn test_permissions(&self, test: &TestIamPermissions) -> Result<Response, Status> {
        let key = Key::parse(&test.resource)?;
        let permissions = if self.secrets.contains_key(&key) { test.permissions.clone() } else { Vec::new() };
        Ok(Response::Permissions(Permissions { permissions }))
    }
}

fn written(key: Key, record: Record, revision: u64) -> Decision {
    let response = Response::Secret(record.secret.clone());
    Decision { response, write: Some(Write { key, record: Some(Arc::new(record)), revision }) }
}

/// Turns the time to live into the instant that it means.
fn settle_expiry(secret: &mut Secret, now: Timestamp) -> Result<(), Status> {
    let Some(ttl) = secret.ttl.take() else { return Ok(()) };
    if secret.expire_time.is_some() {
        return Err(Status::bad_field("secret.ttl", "Only one of ttl and expire_time can be set."));
    }
    let wrong = || Status::bad_field("secret.ttl", "The ttl must be positive and end within the range of timestamps.");
    let ttl = SignedDuration::new(ttl.seconds, ttl.nanos);
    let expiry = now.checked_add(ttl).ok().filter(|_| ttl.is_positive()).ok_or_else(wrong)?;
    secret.expire_time = Some(timestamp(expiry));
    Ok(())
}

/// Takes over one field of an update; the path may be in either spelling.
fn copy_field(secret: &mut Secret, given: &Secret, path: &str) -> Result<(), Status> {
    match snake(path).as_str() {
        "labels" => secret.labels.clone_from(&given.labels),
        "annotations" => secret.annotations.clone_from(&given.annotations),
        "version_aliases" => secret.version_aliases.clone_from(&given.version_aliases),
        "version_destroy_ttl" => secret.version_destroy_ttl = given.version_destroy_ttl,
        "topics" => secret.topics.clone_from(&given.topics),
        "rotation" => secret.rotation.clone_from(&given.rotation),
        "rotation.next_rotation_time" => {
            let rotation = secret.rotation.get_or_insert_default();
            rotation.next_rotation_time = given.rotation.as_ref().and_then(|given| given.next_rotation_time);
        }
        "rotation.rotation_period" => {
            let rotation = secret.rotation.get_or_insert_default();
            rotation.rotation_period = given.rotation.as_ref().and_then(|given| given.rotation_period);
        }
        // The two are one choice: naming either replaces the other.
        "expire_time" | "ttl" | "expiration" => {
            secret.expire_time = given.expire_time;
            secret.ttl = given.ttl;
        }
        "customer_managed_encryption" => {
            secret.customer_managed_encryption.clone_from(&given.customer_managed_encryption);
        }
        "etag" => {}
        path if path.split('.').next() == Some("replication") => {
            check_update_replication(secret, given)?;
            secret.replication.clone_from(&given.replication);
        }
        "name" | "create_time" | "tags" => {
            return Err(Status::bad_field("update_mask", format!("The field [{path}] cannot be changed.")));
        }
        _ => return Err(Status::bad_field("update_mask", format!("There is no field [{path}] in a secret."))),
    }
    if secret.rotation == Some(Rotation::default()) {
        secret.rotation = None;
    }
    Ok(())
}

fn snake(path: &str) -> String {
    path.chars().fold(String::new(), |mut snake, letter| {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}
