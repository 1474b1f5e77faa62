//! Keys of an issuer in a file, read again when it has changed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use jsonwebtoken::jwk::JwkSet;
use tokio::time::Instant;

/// Time between two looks at the file.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A file with keys.
#[derive(Debug)]
pub(super) struct KeyFile {
    path: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    set: Arc<JwkSet>,
    version: Version,
    checked: Instant,
}

/// The marks by which a change of the file is noticed.
type Version = Option<(SystemTime, u64, u64)>;

impl KeyFile {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let version = version(path);
        let set = Arc::new(read(path)?);
        let current = Mutex::new(Current { set, version, checked: Instant::now() });
        Ok(Self { path: path.to_path_buf(), current })
    }

    /// The newest keys that can be used, as of `now`.
    pub(super) fn at(&self, now: Instant) -> Arc<JwkSet> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(current.checked) >= CHECK_INTERVAL {
            current.checked = now;
            let version = version(&self.path);
            if version != current.version {
                current.version = version;
                match read(&self.path) {
                    Ok(set) => current.set = Arc::new(set),
                    Err(fault) => tracing::warn!(operation = "reload", "the last good keys stay: {fault}"),
                }
            }
        }
        Arc::clone(&current.set)
    }
}

fn version(path: &Path) -> Version {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

fn read(path: &Path) -> Result<JwkSet, String> {
    let text = std::fs::read(path).map_err(|_error| "jwk_cert_file: cannot be read")?;
    serde_json::from_slice(&text).map_err(|_error| "jwk_cert_file: is not a JSON Web Key Set".to_owned())
}

#[cfg(test)]
mod tests {
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
