//! The lines of a change stream on their way to its client.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Lines that are sent together, each as a part of the body.
pub(super) type Lines = VecDeque<Bytes>;

/// Room for the lines of one read. It is free again when the last of them was written to the client's connection.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

/// The room, until lines take it.
#[derive(Debug)]
pub(super) struct Free(OwnedSemaphorePermit);

/// A line that takes room for as long as it waits for the client.
struct Waiting {
    line: Bytes,
    _room: Arc<OwnedSemaphorePermit>,
}

/// Returns the body that delivers these lines.
pub(super) fn body(receiver: mpsc::Receiver<Lines>) -> Body {
    Body::from_stream(stream::unfold((receiver, Lines::new()), |(mut receiver, mut lines)| async move {
        loop {
            if let Some(line) = lines.pop_front() {
                return Some((Ok::<Bytes, Infallible>(line), (receiver, lines)));
            }
            lines = receiver.recv().await?;
        }
    }))
}

// === impl Room ===

impl Room {
    /// Waits until the client has taken all lines.
    pub(super) async fn wait(&self) -> Option<Free> {
        // The semaphore is never closed.
        Arc::clone(&self.0).acquire_owned().await.ok().map(Free)
    }
}

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

// === impl Free ===

impl Free {
    /// Returns the lines so that they take the room.
    pub(super) fn take(self, lines: Vec<Bytes>) -> Lines {
        let room = Arc::new(self.0);
        let waiting = |line| Bytes::from_owner(Waiting { line, _room: Arc::clone(&room) });
        lines.into_iter().map(waiting).collect()
    }
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.line
    }
}
