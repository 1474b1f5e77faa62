//! Atomic, durable replacement of files.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// A file that could not be replaced. Names the file, not the temporary one beside it.
#[derive(Debug, thiserror::Error)]
#[error("cannot replace file {}", path.display())]
pub struct ReplaceError {
    /// The file that was to be replaced.
    pub path: PathBuf,
    source: io::Error,
}

impl ReplaceError {
    /// The kind of the operating system's error.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// Users with read permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The owner only.
    Owner,
    /// All users: for files without secrets.
    All,
}

/// Replaces the file at `path`: writes a temporary file beside it, flushes it to disk, renames it.
///
/// A reader sees the old content or the new one, never a part. A crash at any instruction leaves one of the two.
/// The new file is readable by its owner only; see [`replace_for`] for others.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    replace_for(Readers::Owner, path, content)
}

/// Does the same as [`replace`], for these readers.
pub fn replace_for(readers: Readers, path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    let fail = |source| ReplaceError { path: path.to_path_buf(), source };
    let folder = folder_of(path);
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::All => 0o644,
    };
    let permissions = Permissions::from_mode(mode);
    let mut file = Builder::new().prefix(".replace-").permissions(permissions).tempfile_in(folder).map_err(fail)?;
    file.write_all(content).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    sync_folder(folder).map_err(fail)
}

/// Creates a file with `content` unless one exists, also under concurrent calls. Returns true if it did. Readable by its
/// owner only.
pub fn create(path: &Path, content: &[u8]) -> Result<bool, ReplaceError> {
    let fail = |source| ReplaceError { path: path.to_path_buf(), source };
    let folder = folder_of(path);
    let permissions = Permissions::from_mode(0o600);
    let mut file = Builder::new().prefix(".create-").permissions(permissions).tempfile_in(folder).map_err(fail)?;
    file.write_all(content).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    match file.persist_noclobber(path) {
        Ok(_file) => sync_folder(folder).map(|()| true).map_err(fail),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fail(error.error)),
    }
}

/// Removes `path` durably. A missing file is a success.
pub fn remove(path: &Path) -> Result<(), ReplaceError> {
    let fail = |source| ReplaceError { path: path.to_path_buf(), source };
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fail(error)),
    }
    sync_folder(folder_of(path)).map_err(fail)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a rename in this folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        replace(&path, b"first").unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        replace_for(Readers::All, &path, b"third").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert!(!create(&path, b"fourth").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"third");
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(create(&path, b"fifth").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_the_file_that_could_not_be_replaced() {
        let error = replace(Path::new("/nowhere/result.json"), b"").unwrap_err();
        assert_eq!(error.to_string(), "cannot replace file /nowhere/result.json");
    }
}
