//! Counts SQLite's commits, so that checkpoints follow them.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

/// Commits between two checkpoints. One commit of many requests writes some dozens of pages.
pub(crate) const COMMITS: u32 = 32;

/// Commits that are only in the write-ahead log.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    count: AtomicU32,
    is_due: Notify,
}

impl Commits {
    /// Notes a commit.
    pub(crate) fn add(&self) {
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 >= COMMITS {
            self.is_due.notify_one();
        }
    }

    /// Returns when there are enough for a checkpoint, and counts from 0 again.
    pub(crate) async fn are_enough(&self) {
        self.is_due.notified().await;
        self.count.store(0, Ordering::Relaxed);
    }
}
