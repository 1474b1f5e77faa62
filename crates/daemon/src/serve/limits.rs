//! Limits of a listener's connections: how long they may be silent or slow, and how many there may be.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The part of all file descriptors that connections of one listener may use, in percent. The rest is for probes, the
/// database, files and calls.
const SHARE: u64 = 60;

/// Maximum number of connections, whatever the number of file descriptors.
const MOST: u64 = 10_000;

/// The number of file descriptors that a process has use for.
const DESCRIPTORS: u64 = 65_536;

/// Limits of a listener's connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Maximum time to receive the whole body of a request.
    pub body: Duration,
    /// Maximum time for which a client may read nothing of what was written, on the connection or on one HTTP/2 stream.
    pub stall: Duration,
    /// Time after which a silent HTTP/2 connection is asked for a sign of life, and the time for its answer.
    pub keep_alive: Duration,
    /// Maximum number of connections. Beyond it, the oldest that has not made a request is closed; if all have, new ones wait.
    pub connections: usize,
}

/// The connections of a listener.
pub(super) struct Connections {
    permits: Arc<Semaphore>,
    /// The open ones that had not made a request when this was last examined, the oldest first.
    idle: VecDeque<Guest>,
}

/// The place of a connection among others. Its end frees the place.
pub(super) struct Place {
    /// Cancelled when another connection needs the place.
    pub(super) evicted: CancellationToken,
    /// True once a request was made.
    pub(super) is_used: Arc<AtomicBool>,
    _permit: OwnedSemaphorePermit,
    _ended: tokio_util::sync::DropGuard,
}

struct Guest {
    evicted: CancellationToken,
    is_used: Arc<AtomicBool>,
    ended: CancellationToken,
}

/// Raises the limit of file descriptors to what the system allows, and returns it.
pub(super) fn descriptors() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    let current = current.unwrap_or(DESCRIPTORS);
    if current >= wanted {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => wanted,
        Err(_refused) => current,
    }
}

// === impl ConnectionLimits ===

impl Default for ConnectionLimits {
    fn default() -> Self {
        let connections = (descriptors().saturating_mul(SHARE) / 100).clamp(1, MOST);
        Self {
            body: Duration::from_mins(1),
            stall: Duration::from_secs(30),
            keep_alive: Duration::from_secs(20),
            connections: usize::try_from(connections).unwrap_or(1),
        }
    }
}

// === impl Connections ===

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))), idle: VecDeque::new() }
    }

    /// Accepts a connection, for which there is a place.
    pub(super) async fn accept(&mut self, listener: &TcpListener) -> io::Result<(TcpStream, Place)> {
        let (stream, _peer) = listener.accept().await?;
        if self.permits.available_permits() == 0 {
            self.evict();
        }
        let closed = |_never| io::Error::other("the listener is closed");
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(closed)?;
        let (evicted, is_used, ended) = <(CancellationToken, Arc<AtomicBool>, CancellationToken)>::default();
        // Bounded: those that have ended or are used need not be remembered.
        if self.idle.len() > self.permits.available_permits().saturating_mul(2) {
            self.idle.retain(Guest::is_idle);
        }
        self.idle.push_back(Guest { evicted: evicted.clone(), is_used: Arc::clone(&is_used), ended: ended.clone() });
        Ok((stream, Place { evicted, is_used, _permit: permit, _ended: ended.drop_guard() }))
    }

    /// Closes the oldest connection that has not made a request.
    fn evict(&mut self) {
        while let Some(guest) = self.idle.pop_front() {
            if guest.is_idle() {
                guest.evicted.cancel();
                return;
            }
        }
    }
}

// === impl Guest ===

impl Guest {
    fn is_idle(&self) -> bool {
        !self.ended.is_cancelled() && !self.is_used.load(Ordering::Relaxed)
    }
}
