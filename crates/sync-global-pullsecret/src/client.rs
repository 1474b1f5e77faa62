//! Client of a running syncer's status socket.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::status::Status;

/// Maximum bytes of a response.
const MAX_BYTES: u64 = 64 * 1024;

/// The error of reading the status.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The syncer does not respond.
    #[error("the syncer does not respond on its socket; is it running on this node? ({0})")]
    NoResponse(#[from] io::Error),
    /// The response is not a syncer's status.
    #[error("the response on the socket is not a syncer's status")]
    NotUnderstood,
}

/// Reads the status of the syncer that serves this socket.
pub fn status(socket: &Path) -> Result<Status, StatusError> {
    let mut stream = UnixStream::connect(socket)?;
    let timeout = Some(Duration::from_secs(5));
    stream.set_read_timeout(timeout)?;
    stream.set_write_timeout(timeout)?;
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut response = String::new();
    stream.take(MAX_BYTES).read_to_string(&mut response)?;
    let body = response.split_once("\r\n\r\n").map(|(_head, body)| body).ok_or(StatusError::NotUnderstood)?;
    serde_json::from_str(body).map_err(|_quotes| StatusError::NotUnderstood)
}
