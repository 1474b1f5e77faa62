//! The state that the follower of the changes shares with the readers of the change stream.

use tokio::sync::{Semaphore, watch};

use super::recent::{BOUNDS, Recent};
use super::version::Version;

/// The state that the follower shares with the readers.
#[derive(Debug)]
pub(super) struct Following {
    /// The newest version that this server has committed, or that a reader has read.
    pub(super) announced: watch::Sender<Version>,
    pub(super) followed: watch::Sender<Followed>,
    pub(super) recent: Recent,
    /// Permits of readers that read the database themselves: most connections serve everything else.
    pub(super) read_permits: Semaphore,
}

/// The progress of the follower.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// The version up to which changes were read; of no epoch while there are no readers.
    pub(super) until: Version,
    /// Number of times that the database could not be read.
    pub(super) outages: u64,
}

// === impl Following ===

impl Following {
    /// Returns the state of a store with that many connections.
    pub(super) fn new(connections: u32) -> Self {
        let permits = usize::try_from(connections / 4).unwrap_or(1).max(1);
        Self {
            announced: watch::Sender::default(),
            followed: watch::Sender::default(),
            recent: Recent::new(BOUNDS),
            read_permits: Semaphore::new(permits),
        }
    }

    /// Publishes the follower's progress.
    pub(super) fn publish(&self, until: Version) {
        self.followed.send_if_modified(|followed| {
            let is_new = followed.until != until;
            followed.until = until;
            is_new
        });
    }

    /// Ends all readers: the database cannot be read, or has lost what they have got.
    pub(super) fn interrupt(&self) {
        self.followed.send_modify(|followed| followed.outages += 1);
    }
}
