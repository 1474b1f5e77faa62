//! One syncer a node.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Held for as long as the process lives; the system lets go of it however that ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

/// Why the lock is not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("another syncer works on this node's file; there may be only one")]
    Taken,
    /// The disk refuses.
    #[error("cannot lock the state: {0}")]
    Disk(#[from] io::Error),
}

impl Lock {
    /// Takes the lock, or says that somebody else has it.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(LockError::Taken),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}
