//! The errors of an emulator's start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The cause of a failed start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The folder cannot be made or read.
    #[error("cannot use the data folder {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another server uses the folder.
    #[error("the data folder {} is in use by another server", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// A stored object cannot be read.
    #[error("cannot read the stored object {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The problem, without any of the content.
        reason: String,
    },
    /// The first objects cannot be made.
    #[error("cannot make the first objects: {reason}")]
    Initial {
        /// The refusal.
        reason: String,
    },
    /// The server's certificate cannot be made.
    #[error("cannot make the server's certificate: {reason}")]
    Certificate {
        /// The library's error.
        reason: String,
    },
}
