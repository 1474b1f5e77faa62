//! Reads a keyring from the files that the settings of a component name.

use std::path::{Path, PathBuf};

use daemon::settings::held::secret_bytes;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::keyring::{DigestKey, KeyBytes, Keyring};

/// An encryption key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySettings {
    /// Name by which encrypted values refer to the key.
    pub id: String,
    /// File with the 32 bytes of the key.
    pub file: PathBuf,
}

/// The files of a component's keyring.
#[derive(Clone, Copy, Debug)]
pub struct KeyFiles<'settings> {
    /// The keys: the first encrypts, all decrypt.
    pub keys: &'settings [KeySettings],
    /// Name of the setting with the keys, for errors.
    pub keys_setting: &'static str,
    /// File with the digest key; without it one is derived from the first key.
    pub digest_key: Option<&'settings Path>,
    /// Name of the setting with that file, for errors.
    pub digest_key_setting: &'static str,
    /// Label of the derived digest key.
    pub digest_label: &'static str,
    /// The embedded database (`database.path`), beside which a key is generated where there are no others.
    pub beside: Option<&'settings Path>,
}

// === impl KeyFiles ===

impl KeyFiles<'_> {
    /// Reads the keyring; `None` without keys.
    ///
    /// # Errors
    ///
    /// A line for a message that names the setting.
    pub fn read(&self) -> Result<Option<Keyring>, String> {
        let mut keys = Vec::new();
        for (index, KeySettings { id, file }) in self.keys.iter().enumerate() {
            let bytes = key(file, &format!("{}[{index}].file", self.keys_setting))?;
            keys.push(KeyBytes { id: id.clone(), bytes });
        }
        if let (true, Some(database)) = (keys.is_empty(), self.beside) {
            let bytes = embedded_key(database)?;
            // A name that follows from the key distinguishes it from a later one.
            let digest = Sha256::digest(bytes.expose_secret());
            let id = digest.iter().take(4).fold("embedded-".to_owned(), |id, byte| format!("{id}{byte:02x}"));
            keys.push(KeyBytes { id, bytes });
        }
        if keys.is_empty() {
            return Ok(None);
        }
        let digest_key = match self.digest_key {
            Some(file) => DigestKey::Given(digest_key(file, self.digest_key_setting)?),
            None => DigestKey::Derived(self.digest_label),
        };
        Keyring::new(keys, digest_key).map(Some).ok_or_else(|| format!("{}: cannot be used", self.keys_setting))
    }
}

fn key(file: &Path, setting: &str) -> Result<SecretSlice<u8>, String> {
    let bytes = secret_bytes(file, setting)?;
    if bytes.expose_secret().len() == 32 { Ok(bytes) } else { Err(format!("{setting}: must hold exactly 32 bytes")) }
}

fn digest_key(file: &Path, setting: &str) -> Result<SecretSlice<u8>, String> {
    let bytes = secret_bytes(file, setting)?;
    if bytes.expose_secret().len() < 32 { Err(format!("{setting}: must hold 32 bytes or more")) } else { Ok(bytes) }
}

/// Returns the file of the key that is generated beside an embedded database.
pub fn key_beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".key");
    PathBuf::from(name)
}

/// Returns the key beside an embedded database: generated once, readable by its owner only.
fn embedded_key(database: &Path) -> Result<SecretSlice<u8>, String> {
    let path = key_beside(database);
    if !path.exists() {
        let bytes: [u8; 32] = rand::random();
        let made = daemon::file::create(&path, &bytes);
        made.map_err(|error| format!("database.path: the key beside it cannot be written: {}", error.kind()))?;
    }
    key(&path, "the key beside database.path")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn files<'a>(keys: &'a [KeySettings], digest_key: Option<&'a Path>, beside: Option<&'a Path>) -> KeyFiles<'a> {
        let (keys_setting, digest_key_setting) = ("test.keys", "test.digest_key_file");
        KeyFiles { keys, keys_setting, digest_key, digest_key_setting, digest_label: "test/digest/1", beside }
    }

    #[test]
    fn the_key_beside_the_database_is_made_once_and_only_without_others() {
        let folder = tempfile::tempdir().unwrap();
        let (database, given) = (folder.path().join("test.db"), folder.path().join("given"));
        let id = || files(&[], None, Some(&database)).read().unwrap().unwrap().first().unwrap().to_owned();
        let first = id();
        assert!(first.starts_with("embedded-") && first.len() == 17, "{first}");
        assert_eq!(id(), first);
        daemon::file::replace(&given, &[7; 32]).unwrap();
        let keys = [KeySettings { id: "given".to_owned(), file: given }];
        let keyring = files(&keys, None, Some(&database)).read().unwrap().unwrap();
        assert_eq!((keyring.first(), keyring.has(&first)), (Some("given"), false));
        assert!(files(&[], None, None).read().unwrap().is_none());
    }

    #[rstest]
    #[case::a_short_key(31, 32, "test.keys[0].file: must hold exactly 32 bytes")]
    #[case::a_long_key(33, 32, "test.keys[0].file: must hold exactly 32 bytes")]
    #[case::a_short_digest_key(32, 31, "test.digest_key_file: must hold 32 bytes or more")]
    fn errors_name_the_setting(#[case] key: usize, #[case] digest_key: usize, #[case] expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let (file, digest) = (folder.path().join("key"), folder.path().join("digest"));
        daemon::file::replace(&file, &vec![7; key]).unwrap();
        daemon::file::replace(&digest, &vec![7; digest_key]).unwrap();
        let keys = [KeySettings { id: "a".to_owned(), file }];
        assert_eq!(files(&keys, Some(&digest), None).read().unwrap_err(), expected);
        let absent = [KeySettings { id: "a".to_owned(), file: folder.path().join("absent") }];
        let error = files(&absent, None, None).read().unwrap_err();
        assert!(error.starts_with("test.keys[0].file: ") && error.contains("absent"), "{error}");
    }
}
