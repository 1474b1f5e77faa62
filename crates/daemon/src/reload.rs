//! A value that is read from files, and read again when one of them is replaced.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Minimum time between two checks of the files.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A value from files: certificates, keys, authorities. Content that cannot be used is logged once, and the last good value
/// stays.
#[derive(Debug)]
pub struct Reloaded<T> {
    name: &'static str,
    current: Mutex<Current<T>>,
}

#[derive(Debug)]
struct Current<T> {
    value: Arc<T>,
    files: Files,
    checked: Instant,
}

/// Files, and the versions of them that were noticed last.
#[derive(Clone, Debug)]
pub struct Files {
    paths: Vec<PathBuf>,
    versions: Vec<Version>,
}

/// Modification time, length and inode of a file, by which its replacement is noticed; `None` if there is none.
type Version = Option<(SystemTime, u64, u64)>;

// === impl Reloaded ===

impl<T> Reloaded<T> {
    /// Reads the value for the first time. `name` is for the log, such as `the server's certificate`.
    ///
    /// # Errors
    ///
    /// The error of `read`.
    pub fn new<E>(name: &'static str, files: Vec<PathBuf>, read: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        // Before the content, so that a change in between is noticed.
        let files = Files::new(files);
        let value = Arc::new(read()?);
        let current = Mutex::new(Current { value, files, checked: Instant::now() });
        Ok(Self { name, current })
    }

    /// Returns the newest good value, as of `now`.
    pub fn at<E: Display>(&self, now: Instant, read: impl FnOnce() -> Result<T, E>) -> Arc<T> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(current.checked) < CHECK_INTERVAL {
            return Arc::clone(&current.value);
        }
        current.checked = now;
        if current.files.have_changed() {
            match read() {
                Ok(value) => {
                    tracing::info!(operation = "reload", "{} is replaced", self.name);
                    current.value = Arc::new(value);
                }
                Err(error) => {
                    tracing::warn!(operation = "reload", "{} stays the last good one: {error}", self.name);
                }
            }
        }
        Arc::clone(&current.value)
    }
}

// === impl Files ===

impl Files {
    /// Notes the versions of these files as they are now.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let versions = versions(&paths);
        Self { paths, versions }
    }

    /// Returns true if one has been replaced since the last call.
    pub fn have_changed(&mut self) -> bool {
        let versions = versions(&self.paths);
        let changed = versions != self.versions;
        self.versions = versions;
        changed
    }
}

fn versions(files: &[PathBuf]) -> Vec<Version> {
    use std::os::unix::fs::MetadataExt as _;
    let version = |file: &PathBuf| {
        let meta = std::fs::metadata(file).ok()?;
        Some((meta.modified().ok()?, meta.len(), meta.ino()))
    };
    files.iter().map(version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_read_once_and_a_bad_one_is_kept_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("number");
        let read = || std::fs::read_to_string(&file).map_err(|_error| "missing")?.parse::<u8>().map_err(|_error| "bad");
        assert!(Reloaded::new("the number", vec![file.clone()], read).is_err());
        crate::file::replace(&file, b"1").unwrap();
        let number = Reloaded::new("the number", vec![file.clone()], read).unwrap();
        let start = Instant::now();
        let at = |checks: u32| *number.at(start + CHECK_INTERVAL * 2 * checks, read);
        crate::file::replace(&file, b"2").unwrap();
        assert_eq!(*number.at(start, read), 1, "the file is not checked each time");
        assert_eq!(at(1), 2);
        crate::file::replace(&file, b"none").unwrap();
        assert_eq!(at(2), 2);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(at(3), 2);
        crate::file::replace(&file, b"3").unwrap();
        assert_eq!(at(4), 3);
        let unread = || -> Result<u8, &str> { unreachable!("the file is as before") };
        assert_eq!(*number.at(start + CHECK_INTERVAL * 10, unread), 3);
    }
}
