//! Validation of secrets.

use jiff::{SignedDuration, Timestamp};

use super::Record;
use crate::secret_manager::names::{Key, is_alias};
use crate::secret_manager::status::Status;
use crate::secret_manager::wire::Secret;
use crate::secret_manager::wire::resources::{Encryption, Replication};
use crate::secret_manager::wire::values::instant;

const LABELS_MAXIMUM: usize = 64;
const LABEL_CHARACTERS_MAXIMUM: usize = 63;
const LABEL_BYTES_MAXIMUM: usize = 128;
const ANNOTATIONS_BYTES_MAXIMUM: usize = 16 * 1024;
const ALIASES_MAXIMUM: usize = 50;
const TOPICS_MAXIMUM: usize = 10;
const DAY_SECONDS: i64 = 86_400;
const DESTROY_DAYS_MAXIMUM: i64 = 1_000;
const ROTATION_NOTICE: SignedDuration = SignedDuration::from_secs(300);
const ROTATION_PERIOD_SECONDS: std::ops::RangeInclusive<i64> = 3_600..=100 * 365 * DAY_SECONDS;

/// Refuses a secret that the real service would not take.
pub(super) fn check_secret(key: &Key, record: &Record, now: Timestamp) -> Result<(), Status> {
    let secret = &record.secret;
    check_labels(secret)?;
    check_annotations(secret)?;
    check_aliases(record)?;
    check_replication(key, secret)?;
    check_times(secret, now)?;
    check_topics(secret)
}

/// The replication is immutable but for the keys in it.
pub(super) fn check_update_replication(secret: &Secret, given: &Secret) -> Result<(), Status> {
    let shape = |secret: &Secret| {
        let replication = secret.replication.as_ref()?;
        let locations = |replicas: &Replication| -> Option<Vec<String>> {
            let managed = replicas.user_managed.as_ref()?;
            Some(managed.replicas.iter().map(|replica| replica.location.clone()).collect())
        };
        Some((replication.automatic.is_some(), locations(replication)))
    };
    refuse(
        shape(secret) != shape(given),
        "secret.replication",
        || "The replication policy of a secret cannot be changed.",
    )
}

fn check_labels(secret: &Secret) -> Result<(), Status> {
    let place = "secret.labels";
    refuse(secret.labels.len() > LABELS_MAXIMUM, place, || {
        format!("A secret can have at most {LABELS_MAXIMUM} labels.")
    })?;
    for (key, value) in &secret.labels {
        let sound = key.starts_with(is_label_letter) && is_label_text(key);
        refuse(!sound, place, || {
            format!(
                "Label key [{key}] must begin with a lowercase letter and consist of at most 63 lowercase letters, digits, hyphens and underscores."
            )
        })?;
        refuse(!is_label_text(value), place, || {
            format!(
                "The value of label [{key}] must consist of at most 63 lowercase letters, digits, hyphens and underscores."
            )
        })?;
    }
    Ok(())
}

fn is_label_text(text: &str) -> bool {
    let short = text.chars().count() <= LABEL_CHARACTERS_MAXIMUM && text.len() <= LABEL_BYTES_MAXIMUM;
    short && text.chars().all(|sign| is_label_letter(sign) || sign.is_numeric() || matches!(sign, '-' | '_'))
}

/// Lowercase, or of a script without cases.
fn is_label_letter(sign: char) -> bool {
    sign.is_alphabetic() && !sign.is_uppercase()
}

fn check_annotations(secret: &Secret) -> Result<(), Status> {
    let place = "secret.annotations";
    for key in secret.annotations.keys() {
        let edge = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
        let inside = key.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.'));
        let sound = key.len() <= 63 && inside && edge(key.chars().next()) && edge(key.chars().next_back());
        refuse(!sound, place, || {
            format!(
                "Annotation key [{key}] must be 1 to 63 characters long, begin and end with a letter or digit, and hold only letters, digits, hyphens, underscores and dots."
            )
        })?;
    }
    let size: usize = secret.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    refuse(
        size > ANNOTATIONS_BYTES_MAXIMUM,
        place,
        || "The annotations of a secret can have at most 16 KiB altogether.",
    )
}

fn check_aliases(record: &Record) -> Result<(), Status> {
    let (place, aliases) = ("secret.version_aliases", &record.secret.version_aliases);
    refuse(aliases.len() > ALIASES_MAXIMUM, place, || {
        format!("A secret can have at most {ALIASES_MAXIMUM} version aliases.")
    })?;
    for (alias, number) in aliases {
        refuse(!is_alias(alias), place, || {
            format!(
                "Version alias [{alias}] must begin with a letter, consist of at most 63 letters, digits, hyphens and underscores, and be neither 'latest' nor 'NEW'."
            )
        })?;
        let exists = u64::try_from(*number).is_ok_and(|number| record.versions.contains_key(&number));
        refuse(!exists, place, || {
            format!("Version alias [{alias}] points to version [{number}], which does not exist.")
        })?;
    }
    Ok(())
}

fn check_replication(key: &Key, secret: &Secret) -> Result<(), Status> {
    let place = "secret.replication";
    if let Some(location) = &key.parent.location {
        refuse(
            secret.replication.is_some(),
            place,
            || "The replication policy must not be set for a regional secret.",
        )?;
        return check_key(secret.customer_managed_encryption.as_ref(), location);
    }
    refuse(
        secret.customer_managed_encryption.is_some(),
        "secret.customer_managed_encryption",
        || "The customer managed encryption of a global secret belongs into its replication policy.",
    )?;
    match secret.replication.as_ref() {
        Some(Replication { automatic: Some(automatic), user_managed: None }) => {
            check_key(automatic.customer_managed_encryption.as_ref(), "global")
        }
        Some(Replication { automatic: None, user_managed: Some(managed) }) => {
            refuse(
                managed.replicas.is_empty(),
                place,
                || "A user managed replication policy needs at least one replica.",
            )?;
            for replica in &managed.replicas {
                let twins = managed.replicas.iter().filter(|other| other.location == replica.location).count();
                refuse(replica.location.is_empty() || twins > 1, place, || {
                    format!("Replica location [{}] must be set and appear only once.", replica.location)
                })?;
                check_key(replica.customer_managed_encryption.as_ref(), &replica.location)?;
            }
            Ok(())
        }
        _ => refuse(true, place, || "The replication policy must be set to either automatic or user managed."),
    }
}

fn check_key(encryption: Option<&Encryption>, location: &str) -> Result<(), Status> {
    let Some(Encryption { kms_key_name: name }) = encryption else { return Ok(()) };
    let segments: Vec<&str> = name.split('/').collect();
    let sound = matches!(
        segments.as_slice(),
        ["projects", _, "locations", place, "keyRings", _, "cryptoKeys", _] if *place == location
    );
    refuse(!sound, "kms_key_name", || {
        format!("KMS key [{name}] must be named projects/*/locations/{location}/keyRings/*/cryptoKeys/*.")
    })
}

fn check_times(secret: &Secret, now: Timestamp) -> Result<(), Status> {
    let expiry = instant(secret.expire_time.as_ref());
    let past = secret.expire_time.is_some() && expiry.is_none_or(|at| at <= now);
    refuse(past, "secret.expire_time", || "The expire time must be in the future.")?;
    let allowed = DAY_SECONDS..=DESTROY_DAYS_MAXIMUM * DAY_SECONDS;
    let delay = secret.version_destroy_ttl.as_ref();
    refuse(
        delay.is_some_and(|delay| !allowed.contains(&delay.seconds)),
        "secret.version_destroy_ttl",
        || "The version destroy ttl must be between 1 and 1000 days.",
    )
}

/// Topics are kept as given: this server publishes nothing.
fn check_topics(secret: &Secret) -> Result<(), Status> {
    let place = "secret.topics";
    refuse(secret.topics.len() > TOPICS_MAXIMUM, place, || {
        format!("A secret can have at most {TOPICS_MAXIMUM} topics.")
    })?;
    for topic in &secret.topics {
        let segments: Vec<&str> = topic.name.split('/').collect();
        let sound =
            matches!(segments.as_slice(), ["projects", project, "topics", id] if !project.is_empty() && !id.is_empty());
        refuse(!sound, place, || format!("Topic [{}] must be named projects/*/topics/*.", topic.name))?;
    }
    refuse(
        secret.rotation.is_some() && secret.topics.is_empty(),
        "secret.rotation",
        || "A rotation needs at least one topic.",
    )
}

/// Refuses a new rotation that the real service would not take; an old one may lie in the past, because nothing rotates here.
pub(super) fn check_rotation(secret: &Secret, now: Timestamp) -> Result<(), Status> {
    let Some(rotation) = &secret.rotation else { return Ok(()) };
    let place = "secret.rotation";
    refuse(secret.topics.is_empty(), place, || "A rotation needs at least one topic.")?;
    let next = instant(rotation.next_rotation_time.as_ref());
    refuse(
        next.is_some_and(|next| next.duration_since(now) < ROTATION_NOTICE),
        place,
        || "The next rotation time must be at least 300 s in the future.",
    )?;
    let Some(period) = &rotation.rotation_period else { return Ok(()) };
    refuse(
        !ROTATION_PERIOD_SECONDS.contains(&period.seconds),
        place,
        || "The rotation period must be between 3600 s and 100 years.",
    )?;
    refuse(next.is_none(), place, || "A rotation period needs a next rotation time.")
}

fn refuse<M: Into<String>>(wrong: bool, field: &str, message: impl FnOnce() -> M) -> Result<(), Status> {
    if wrong { Err(Status::bad_field(field, message())) } else { Ok(()) }
}
