//! The lock that allows one syncer per node.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A lock that the system releases however the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

/// The error of taking the lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another syncer works on this node's file; there may be only one")]
    Held,
    /// The disk refused a step.
    #[error("cannot lock the state: {0}")]
    Disk(#[from] io::Error),
}

impl Lock {
    /// Takes the lock. Fails if another process holds it.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(LockError::Held),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}
