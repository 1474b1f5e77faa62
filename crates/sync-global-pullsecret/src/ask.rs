//! Asking a running syncer how things are.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::status::Status;

/// More than any status.
const MOST: u64 = 64 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers.
    #[error("the syncer does not answer on its socket; is it running on this node? ({0})")]
    NoAnswer(#[from] io::Error),
    /// The answer is none of ours.
    #[error("the answer on the socket is not the syncer's")]
    NotUnderstood,
}

/// Asks on the socket.
pub fn status(socket: &Path) -> Result<Status, AskError> {
    let mut stream = UnixStream::connect(socket)?;
    let patience = Some(Duration::from_secs(5));
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(MOST).read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_head, body)| body).ok_or(AskError::NotUnderstood)?;
    serde_json::from_str(body).map_err(|_words| AskError::NotUnderstood)
}
