//! Reads the pull secret of a run and the key of its published digests.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use docker_config::{DockerConfig, Limits};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::settings::Source;

/// The specification's fake pull secret: four registries, one invented credential.
const FAKE: &str = r#"{"auths":{
"cloud.openshift.com":{"auth":"ZmFrZXVzZXI6ZmFrZXBhc3N3b3Jk","email":"user@example.com"},
"quay.io":{"auth":"ZmFrZXVzZXI6ZmFrZXBhc3N3b3Jk","email":"user@example.com"},
"registry.connect.redhat.com":{"auth":"ZmFrZXVzZXI6ZmFrZXBhc3N3b3Jk","email":"user@example.com"},
"registry.redhat.io":{"auth":"ZmFrZXVzZXI6ZmFrZXBhc3N3b3Jk","email":"user@example.com"}}}"#;

/// Minimum length of a key, in bytes; a shorter one could be guessed.
const SHORTEST_KEY: usize = 32;
/// Maximum size of a key or pull secret, in bytes.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Maximum number of problems that are named; more are counted, to keep the message readable.
const MAX_PROBLEMS: usize = 10;

/// Error of reading the pull secret or the digest key. It never contains the path, which may be the document itself, given in
/// the wrong place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("cannot read the file: {0}")]
    Unreadable(io::Error),
    #[error("the file is larger than {LARGEST_FILE} bytes")]
    TooLarge,
    #[error("the file holds a key of fewer than {SHORTEST_KEY} bytes; make one with: openssl rand -out FILE 32")]
    ShortKey,
    #[error("{}", .0.summary(MAX_PROBLEMS))]
    Invalid(docker_config::Problems),
}

/// A pull secret that may be stored.
pub(crate) struct PullSecret {
    /// The document as it was given.
    pub(crate) bytes: SecretSlice<u8>,
    /// The parsed document.
    pub(crate) document: DockerConfig,
}

/// Reads and validates the pull secret.
pub(crate) fn pull_secret(source: &Source, max_bytes: usize) -> Result<PullSecret, SourceError> {
    let bytes = match source {
        Source::File(path) => read(path)?,
        Source::Text(text) => SecretSlice::from(text.expose_secret().as_bytes().to_vec()),
        Source::Fake => SecretSlice::from(FAKE.as_bytes().to_vec()),
    };
    let limits = Limits { max_bytes, ..Limits::default() };
    let document = docker_config::parse(bytes.expose_secret(), &limits).map_err(SourceError::Invalid)?;
    Ok(PullSecret { bytes, document })
}

/// Reads the key of published digests.
pub(crate) fn digest_key(path: &Path) -> Result<SecretSlice<u8>, SourceError> {
    let key = read(path)?;
    if key.expose_secret().len() < SHORTEST_KEY {
        return Err(SourceError::ShortKey);
    }
    Ok(key)
}

fn read(path: &Path) -> Result<SecretSlice<u8>, SourceError> {
    let mut bytes = Zeroizing::new(Vec::new());
    let read = File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
    let length = read.map_err(SourceError::Unreadable)?;
    if length as u64 > LARGEST_FILE {
        return Err(SourceError::TooLarge);
    }
    Ok(SecretSlice::from(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fake_is_a_valid_pull_secret_of_four_registries() {
        let fake = pull_secret(&Source::Fake, 65_536).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fake.document.entries().len(), 4);
        assert_eq!(fake.document.warnings().len(), 0);
    }

    #[test]
    fn a_short_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        daemon::file::replace(&path, &[7; 31]).unwrap();
        assert!(matches!(digest_key(&path), Err(SourceError::ShortKey)));
        daemon::file::replace(&path, &[7; 32]).unwrap();
        assert!(digest_key(&path).is_ok());
    }
}
