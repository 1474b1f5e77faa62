//! Keys of an issuer in a file, read again when it has changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use daemon::reload::Reloaded;
use jsonwebtoken::jwk::JwkSet;
use tokio::time::Instant;

/// A file with keys.
#[derive(Debug)]
pub(super) struct KeyFile {
    path: PathBuf,
    set: Reloaded<JwkSet>,
}

impl KeyFile {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let set = Reloaded::new("the file of an issuer's keys", vec![path.to_path_buf()], || read(path))?;
        Ok(Self { path: path.to_path_buf(), set })
    }

    /// The newest keys that can be used, as of `now`.
    pub(super) fn at(&self, now: Instant) -> Arc<JwkSet> {
        self.set.at(now, || read(&self.path))
    }
}

fn read(path: &Path) -> Result<JwkSet, String> {
    let text = std::fs::read(path).map_err(|_error| "jwk_cert_file: cannot be read")?;
    serde_json::from_slice(&text).map_err(|_error| "jwk_cert_file: is not a JSON Web Key Set".to_owned())
}

#[cfg(test)]
mod tests {
    use daemon::reload::CHECK_INTERVAL;

    use super::*;

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let write = |text: &str| daemon::file::replace(&path, text.as_bytes()).unwrap();
        let one = r#"{"kty": "RSA", "kid": "a", "n": "AQAB", "e": "AQAB"}"#;
        write(r#"{"keys": []}"#);
        let file = KeyFile::read(&path).unwrap();
        let start = Instant::now();
        let keys = |checks: u32| file.at(start + CHECK_INTERVAL * 2 * checks).keys.len();
        assert_eq!(keys(1), 0);
        write(&format!(r#"{{"keys": [{one}]}}"#));
        assert_eq!(file.at(start + CHECK_INTERVAL * 2).keys.len(), 0, "the file is not read for each token");
        assert_eq!(keys(2), 1);
        write("nothing");
        assert_eq!(keys(3), 1);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(keys(4), 1);
        write(r#"{"keys": []}"#);
        assert_eq!(keys(5), 0);
    }
}
