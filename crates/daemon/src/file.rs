//! Files that are either wholly the old one or wholly the new one, whatever happens in between.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// Why a file could not be replaced; the path is that of the file, not of the temporary one beside it.
#[derive(Debug, thiserror::Error)]
#[error("cannot replace file {}", path.display())]
pub struct ReplaceError {
    /// The file that was to be replaced.
    pub path: PathBuf,
    source: io::Error,
}

impl ReplaceError {
    /// What kind of failure it was.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner.
    Owner,
    /// Everybody: for what holds no secret and is read by another user.
    Everybody,
}

/// Puts `content` at `path`: written to a temporary file beside it, flushed to disk, renamed over it.
///
/// A reader sees the old content or the new one, never a part. A crash at any instruction leaves one of the two.
/// The new file is readable by its owner only; [`replace_for`] says otherwise.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    replace_for(Readers::Owner, path, content)
}

/// Does what [`replace`] does, for these readers.
pub fn replace_for(readers: Readers, path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    let fail = |source| ReplaceError { path: path.to_path_buf(), source };
    let folder = folder_of(path);
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Everybody => 0o644,
    };
    let permissions = Permissions::from_mode(mode);
    let mut file = Builder::new().prefix(".replace-").permissions(permissions).tempfile_in(folder).map_err(fail)?;
    file.write_all(content).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    sync_folder(folder).map_err(fail)
}

/// Puts `content` at `path` unless there is a file already, whoever made it and however many try at once; says whether it
/// did. Readable by its owner only.
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

/// Removes `path` and makes the removal durable; a file that is not there is a success.
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

/// A rename is durable once the folder that names it is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_else_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        replace(&path, b"first").unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        replace_for(Readers::Everybody, &path, b"third").unwrap();
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
