//! A folder that one server uses at a time.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::start_error::StartError;

/// The folder, locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder if need be, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, StartError> {
        let folder = || path.to_path_buf();
        let fail = |source| StartError::Folder { folder: folder(), source };
        fs::create_dir_all(path).map_err(fail)?;
        let lock = File::options().create(true).truncate(false).write(true).open(path.join("lock"));
        let lock = lock.map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: folder(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StartError::Locked { folder: folder() }),
            Err(TryLockError::Error(source)) => Err(fail(source)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// FNV-1a, 64 bits: small, and the same on every machine and in every release.
pub(crate) fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
