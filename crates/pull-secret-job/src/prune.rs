//! Destroys superseded versions of stored secrets whose Job has not run since they were superseded, or since fewer are kept.
//!
//! A run of the Job destroys what it supersedes ([`decide`](crate::decide)). This is the same rule for secrets whose content
//! stays: only versions that the record lists as added by this project, only below the recorded one, and none while the
//! recorded one cannot be read.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use daemon::retry::Budget;
use secret_store::{
    ErrorKind, Metadata, SecretId, SecretStore, StoreError, VersionNumber, VersionState, VersionSummary,
};
use serde::Serialize;

use crate::outcome::RunError;
use crate::record::Record;
use crate::session::Session;

/// Maximum number of attempts where another process changes the record at the same time.
const MAX_ATTEMPTS: u32 = 3;

/// Message about a secret that is gone.
const DELETED: &str = "it was deleted";

/// The decision about one secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Versions are destroyed.
    Destroy {
        /// These; none if nothing is superseded.
        surplus: BTreeSet<VersionNumber>,
        /// The versions that the record lists and that are destroyed already.
        gone: BTreeSet<VersionNumber>,
    },
    /// Nothing is destroyed, for this reason.
    Keep(String),
}

/// The result for one secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    /// The versions that were destroyed.
    pub versions: BTreeSet<u64>,
    /// The reason why not all that is superseded was destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Decides which versions of a secret are destroyed; `retain` are kept, the recorded one included.
pub fn decide(record: &Record, versions: &[VersionSummary], retain: NonZeroUsize) -> Decision {
    let Some(current) = record.version else { return Decision::Keep("it has no record of a version".to_owned()) };
    let state = |number: VersionNumber| versions.iter().find(|version| version.number == number);
    match state(current).map(|version| version.state) {
        Some(VersionState::Live) => {}
        Some(VersionState::Disabled) => {
            return Decision::Keep(format!("version {current}, which is in use, is disabled"));
        }
        Some(VersionState::Destroyed) => {
            return Decision::Keep(format!("version {current}, which is in use, is destroyed"));
        }
        None => return Decision::Keep(format!("version {current}, which is in use, is not in the list of versions")),
    }
    let is_there =
        |number: &&VersionNumber| state(**number).is_some_and(|found| found.state != VersionState::Destroyed);
    let (there, gone): (BTreeSet<_>, BTreeSet<_>) = record.added.iter().partition(is_there);
    let too_many = there.len().saturating_sub(retain.get());
    Decision::Destroy { surplus: there.into_iter().filter(|number| *number < current).take(too_many).collect(), gone }
}

/// Decides about a secret as it was listed. Nothing is changed.
///
/// # Errors
///
/// The versions cannot be listed.
pub async fn observe<S: SecretStore>(
    store: &S,
    secret: &SecretId,
    listed: &Metadata,
    options: Options<'_>,
) -> Result<Decision, Refused> {
    let session = Session::new(store, secret, options.budget);
    Ok(decided(&session, listed, options.retain).await?)
}

/// The rule and the limits of a pruning.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Number of versions that are kept, the recorded one included.
    pub retain: NonZeroUsize,
    /// Maximum time, and the permission to go on.
    pub budget: &'a Budget,
}

/// Prunes a secret as it was listed: writes its record under the listed etag, which shows that the listed record is the current
/// one, destroys, and takes what was destroyed out of the record. A run that is killed in between leaves a record that lists
/// destroyed versions, with which the next one begins again.
///
/// # Errors
///
/// A call fails.
pub async fn prune<S: SecretStore>(
    store: &S,
    secret: &SecretId,
    listed: Metadata,
    options: Options<'_>,
) -> Result<Pruned, Refused> {
    let session = Session::new(store, secret, options.budget);
    let mut metadata = listed;
    for _attempt in 0..MAX_ATTEMPTS {
        let (surplus, gone) = match decided(&session, &metadata, options.retain).await? {
            Decision::Keep(because) => return Ok(Pruned::nothing(Some(because))),
            Decision::Destroy { surplus, gone } if surplus.is_empty() && gone.is_empty() => {
                return Ok(Pruned::nothing(None));
            }
            Decision::Destroy { surplus, gone } => (surplus, gone),
        };
        let Some(etag) = update(&session, &metadata).await? else {
            match session.find().await? {
                Some(current) => metadata = current,
                None => return Ok(Pruned::nothing(Some(DELETED.to_owned()))),
            }
            continue;
        };
        metadata.etag = etag;
        for number in &surplus {
            destroy(&session, *number).await?;
        }
        forget(&session, metadata, &surplus | &gone).await?;
        return Ok(Pruned { versions: surplus.iter().map(|number| number.get()).collect(), because: None });
    }
    let because = "another process changes it at the same time, or its metadata lags: try again".to_owned();
    Ok(Pruned::nothing(Some(because)))
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The message for people.
    pub message: String,
    /// True if calls about other secrets would fail in the same way, or no time is left.
    pub is_final: bool,
}

async fn decided<S: SecretStore>(
    session: &Session<'_, S>,
    metadata: &Metadata,
    retain: NonZeroUsize,
) -> Result<Decision, RunError> {
    let record = Record::read(&metadata.annotations);
    if record.added.len() <= retain.get() && record.version.is_some() {
        return Ok(Decision::Destroy { surplus: BTreeSet::new(), gone: BTreeSet::new() });
    }
    let listed = async || match session.store.list_versions(session.secret).await {
        Ok(versions) => Ok(Some(versions)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let versions = session.caller.call(listed).await?;
    Ok(versions.map_or_else(|| Decision::Keep(DELETED.to_owned()), |versions| decide(&record, &versions, retain)))
}

/// Writes the metadata; `None` if it has changed since it was read.
async fn update<S: SecretStore>(session: &Session<'_, S>, metadata: &Metadata) -> Result<Option<String>, RunError> {
    let written = async || match session.store.update(session.secret, metadata).await {
        Ok(etag) => Ok(Some(etag)),
        Err(error) if matches!(error.kind, ErrorKind::Changed | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    };
    session.caller.call(written).await
}

async fn destroy<S: SecretStore>(session: &Session<'_, S>, number: VersionNumber) -> Result<(), RunError> {
    let destroyed = async || match session.store.destroy_version(session.secret, number).await {
        Err(error) if error.kind == ErrorKind::NotFound => Ok::<(), StoreError>(()),
        destroyed => destroyed,
    };
    session.caller.call(destroyed).await
}

/// Takes versions out of the record. If others change it at the same time they stay listed, and are found destroyed later.
async fn forget<S: SecretStore>(
    session: &Session<'_, S>,
    mut metadata: Metadata,
    destroyed: BTreeSet<VersionNumber>,
) -> Result<(), RunError> {
    for _attempt in 0..MAX_ATTEMPTS {
        let mut record = Record::read(&metadata.annotations);
        record.added.retain(|number| !destroyed.contains(number));
        record.write(&mut metadata.annotations);
        if update(session, &metadata).await?.is_some() {
            break;
        }
        match session.find().await? {
            Some(current) => metadata = current,
            None => break,
        }
    }
    Ok(())
}

// === impl Pruned ===

impl Pruned {
    fn nothing(because: Option<String>) -> Self {
        Self { versions: BTreeSet::new(), because }
    }
}

// === impl Refused ===

impl From<RunError> for Refused {
    fn from(error: RunError) -> Self {
        use fleet_model::job::Reason;
        let of_all = [
            Reason::PermissionDenied,
            Reason::ApiDisabled,
            Reason::Unauthenticated,
            Reason::Interrupted,
            Reason::DeadlineExceeded,
        ];
        Self { is_final: of_all.contains(&error.reason), message: error.message }
    }
}

#[cfg(test)]
mod tests;
