//! The new pull secrets: one file for all clusters, or a directory with a file for each.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use docker_config::{Limits, Problems};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use zeroize::Zeroizing;

use crate::digest::ShortDigest;
use crate::plan::{Plan, Planned, SkipReason, Skipped};

/// The least number of bytes of a digest key.
const SHORTEST_KEY: usize = 32;
/// The most that is read of a digest key.
const LONGEST_KEY: usize = 64 * 1024;
/// Number of faults of a document that a message names.
const NAMED_PROBLEMS: usize = 5;

/// The place of the new pull secrets, and the key of their digests.
#[derive(Debug)]
pub struct Sources {
    key: SecretSlice<u8>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    File(Box<Document>),
    Directory(PathBuf),
}

/// A valid pull secret.
#[derive(Debug)]
pub struct Document {
    /// The document as it was given.
    pub text: SecretString,
    /// Its digest.
    pub digest: ShortDigest,
}

/// The cause for which new pull secrets cannot be used. Neither paths of documents nor their content are quoted.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The digest key cannot be read.
    #[error("cannot read the digest key: give the API's pull_secret.digest_key_file with --digest-key-file")]
    Key(#[source] io::Error),
    /// The digest key is too short.
    #[error("the digest key has less than {SHORTEST_KEY} bytes: give the API's pull_secret.digest_key_file")]
    ShortKey,
    /// The path of --from cannot be read.
    #[error("cannot read what --from names: give a file, or a directory with a file CLUSTER-ID.json for each cluster")]
    Unreadable(#[source] io::Error),
    /// The one file is not a valid pull secret.
    #[error("the file of --from is not a valid pull secret: {0}; see `pull-secret validate`")]
    Invalid(String),
    /// The file of a planned cluster cannot be used any more.
    #[error("the new pull secret of cluster {cluster} cannot be used: {cause}; nothing was written to it")]
    OfCluster {
        /// The cluster.
        cluster: String,
        /// The cause.
        cause: String,
    },
    /// Content or key is not what was planned.
    #[error(
        "the new pull secret of cluster {0} is not the planned one, or the digest key is another: give the files and the key of \
         the plan, or plan again"
    )]
    NotPlanned(String),
}

enum Unusable {
    Unreadable(io::Error),
    Invalid(String),
}

// === impl Sources ===

impl Sources {
    /// Reads the digest key and, if `from` is a file, the pull secret for all clusters.
    pub fn open(from: &Path, digest_key: &Path) -> Result<Self, SourceError> {
        let key = read(digest_key, LONGEST_KEY).map_err(SourceError::Key)?;
        if key.len() < SHORTEST_KEY {
            return Err(SourceError::ShortKey);
        }
        let key = SecretSlice::from(key.to_vec());
        let place = if from.is_dir() {
            Place::Directory(from.to_path_buf())
        } else {
            let document = document(from, &key).map_err(|unusable| match unusable {
                Unusable::Unreadable(error) => SourceError::Unreadable(error),
                Unusable::Invalid(problems) => SourceError::Invalid(problems),
            })?;
            Place::File(Box::new(document))
        };
        Ok(Self { key, place })
    }

    /// Returns the digest of a cluster's new pull secret, or the cause for which it has none.
    pub fn digest(&self, id: &str) -> Result<ShortDigest, Skipped> {
        let directory = match &self.place {
            Place::File(document) => return Ok(document.digest.clone()),
            Place::Directory(directory) => directory,
        };
        let skip = |reason, message| Skipped { cluster: id.to_owned(), reason, message };
        match document(&file(directory, id), &self.key) {
            Ok(document) => Ok(document.digest),
            Err(Unusable::Invalid(problems)) => Err(skip(SkipReason::InvalidPullSecret, problems)),
            Err(Unusable::Unreadable(error)) => Err(skip(
                SkipReason::NoFile,
                format!("{id}.json cannot be read in the directory of --from: {}", error.kind()),
            )),
        }
    }

    /// Checks that each planned cluster has the content that was planned.
    pub fn check(&self, plan: &Plan) -> Result<(), SourceError> {
        plan.waves.iter().flatten().try_for_each(|planned| match &self.place {
            Place::File(document) => is_planned(planned, &document.digest),
            Place::Directory(_) => self.text(planned).map(drop),
        })
    }

    /// Returns the planned content of a cluster.
    pub fn text(&self, planned: &Planned) -> Result<SecretString, SourceError> {
        let document = match &self.place {
            Place::File(document) => {
                is_planned(planned, &document.digest)?;
                return Ok(document.text.clone());
            }
            Place::Directory(directory) => document(&file(directory, &planned.id), &self.key),
        };
        let document = document.map_err(|unusable| {
            let cause = match unusable {
                Unusable::Unreadable(error) => error.kind().to_string(),
                Unusable::Invalid(problems) => problems,
            };
            SourceError::OfCluster { cluster: planned.id.clone(), cause }
        })?;
        is_planned(planned, &document.digest)?;
        Ok(document.text)
    }
}

fn is_planned(planned: &Planned, digest: &ShortDigest) -> Result<(), SourceError> {
    if planned.digest == *digest { Ok(()) } else { Err(SourceError::NotPlanned(planned.id.clone())) }
}

/// The file of a cluster. Ids are DNS labels: one that is not leads nowhere.
fn file(directory: &Path, id: &str) -> PathBuf {
    let name = if fleet_model::id::is_dns_label(id) { id } else { "" };
    directory.join(format!("{name}.json"))
}

fn document(path: &Path, key: &SecretSlice<u8>) -> Result<Document, Unusable> {
    let limits = Limits::default();
    let bytes = read(path, limits.max_bytes).map_err(Unusable::Unreadable)?;
    let invalid = |problems: Problems| Unusable::Invalid(problems.summary(NAMED_PROBLEMS));
    let parsed = docker_config::parse(&bytes, &limits).map_err(invalid)?;
    let text = str::from_utf8(&bytes).map_err(|_quotes| Unusable::Invalid("it is not UTF-8".to_owned()))?;
    let digest = ShortDigest::of(&parsed.digest(), key.expose_secret());
    Ok(Document { text: SecretString::from(text), digest })
}

/// Reads a file, one byte further than the limit at most: the reader refuses what is longer.
fn read(path: &Path, limit: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const ONE: &str = r#"{"auths":{"a.example.com":{"auth":"dTpo"}}}"#;
    const OTHER: &str = r#"{"auths":{"b.example.com":{"auth":"dTpo"}}}"#;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        daemon::file::replace(&folder.path().join("key"), &[7; 32]).unwrap();
        for (name, text) in files {
            daemon::file::replace(&folder.path().join(name), text.as_bytes()).unwrap();
        }
        folder
    }

    fn open(folder: &TempDir, from: &str) -> Result<Sources, SourceError> {
        Sources::open(&folder.path().join(from), &folder.path().join("key"))
    }

    fn planned(id: &str, digest: ShortDigest) -> Planned {
        Planned { id: id.to_owned(), generation: 1_u32.into(), digest }
    }

    #[test]
    fn one_file_is_for_all() {
        let folder = folder(&[("new", ONE), ("invalid", r#"{"auths":{"a":"hunter2"}}"#)]);
        let sources = open(&folder, "new").unwrap();
        let digest = sources.digest("cls-1").unwrap();
        assert_eq!(sources.digest("cls-2").unwrap(), digest);
        assert_eq!(sources.text(&planned("cls-1", digest)).unwrap().expose_secret(), ONE);
        let refused = open(&folder, "invalid").unwrap_err();
        assert!(matches!(refused, SourceError::Invalid(_)) && !format!("{refused} {refused:?}").contains("hunter2"));
        assert!(matches!(open(&folder, "nothing").unwrap_err(), SourceError::Unreadable(_)));
        assert!(!format!("{sources:?}").contains("dTpo"));
    }

    #[test]
    fn a_directory_has_a_file_for_each() {
        let folder = folder(&[("cls-1.json", ONE), ("cls-2.json", "{"), ("cls-4.json", OTHER)]);
        let sources = open(&folder, "").unwrap();
        let digest = sources.digest("cls-1").unwrap();
        let reason = |id: &str| sources.digest(id).unwrap_err().reason;
        assert_eq!(reason("cls-2"), SkipReason::InvalidPullSecret);
        assert_eq!(reason("cls-3"), SkipReason::NoFile);
        assert_eq!(reason("../cls-1"), SkipReason::NoFile);
        let wrong = planned("cls-4", digest);
        assert!(matches!(sources.text(&wrong).unwrap_err(), SourceError::NotPlanned(_)));
    }

    #[test]
    fn a_short_key_is_refused() {
        let folder = folder(&[("new", ONE)]);
        daemon::file::replace(&folder.path().join("key"), &[7; 31]).unwrap();
        assert!(matches!(open(&folder, "new").unwrap_err(), SourceError::ShortKey));
    }
}
