//! The latest changes, in memory: contiguous, bounded, and shared by all readers of the change stream.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::batch::Batch;
use super::recorded::Recorded;
use super::version::Version;
use crate::tenancy::Reach;

/// Bounds of the changes in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Maximum number of changes.
    pub(super) items: usize,
    /// Maximum size, in bytes.
    pub(super) bytes: usize,
}

/// A minute of a busy fleet.
pub(super) const BOUNDS: Bounds = Bounds { items: 8192, bytes: 16 * 1024 * 1024 };

/// The latest changes of all kinds and tenancies; nothing while there are no readers.
#[derive(Debug)]
pub(super) struct Recent {
    bounds: Bounds,
    held: Mutex<Option<Held>>,
}

/// All changes after a version.
#[derive(Debug)]
struct Held {
    after: Version,
    changes: VecDeque<Arc<Recorded>>,
    bytes: usize,
}

/// The result of a read of the database: the newest version, and the first changes after the position of the read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) newest: Version,
    pub(super) changes: Vec<Recorded>,
}

/// The changes that a reader gets, ascending, and the version up to which these are all.
pub type Changes = (Vec<Arc<Recorded>>, Version);

// === impl Recent ===

impl Recent {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, held: Mutex::default() }
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Option<Held>) -> T) -> T {
        work(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets all changes.
    pub(super) fn clear(&self) {
        self.locked(|held| *held = None);
    }

    /// Returns the version up to which changes were added; `None` if there is none yet.
    pub(super) fn until(&self) -> Option<Version> {
        self.locked(|held| held.as_ref().map(Held::until))
    }

    /// Adds what was read after [`Recent::until`]. Changes that do not follow those in memory replace them: of another epoch, after a
    /// pause, or after changes that were removed from the database.
    pub(super) fn add(&self, read: Read) {
        let Read { newest, changes } = read;
        let before = changes.first().map_or(newest.number, |first| first.version.number - 1);
        self.locked(|held| {
            let next = held.take().filter(|held| held.until() == newest.at(before));
            let mut next =
                next.unwrap_or_else(|| Held { after: newest.at(before), changes: VecDeque::new(), bytes: 0 });
            for change in changes {
                next.push(change, self.bounds);
            }
            *held = Some(next);
        });
    }

    /// Returns the changes of that kind within reach among the next `batch.items` versions after `after`, as many as fit into
    /// `batch.bytes` but at least one; `None` if not all changes after it are in memory.
    pub(super) fn after(&self, after: &Version, kind: &str, reach: &Reach, batch: Batch) -> Option<Changes> {
        self.locked(|held| {
            let held = held.as_ref().filter(|held| held.reaches(after))?;
            let skipped = held.changes.partition_point(|change| change.version.number <= after.number);
            let (mut selected, mut bytes, mut until) = (Vec::new(), 0, after.number);
            for change in held.changes.iter().skip(skipped).take(usize::try_from(batch.items).unwrap_or(0)) {
                if change.is_for(kind, reach) {
                    bytes += change.length();
                    if !selected.is_empty() && bytes > batch.bytes {
                        break;
                    }
                    selected.push(Arc::clone(change));
                }
                until = change.version.number;
            }
            Some((selected, after.at(until)))
        })
    }

    /// Returns true if all changes after that version are in memory.
    pub(super) fn reaches(&self, after: &Version) -> bool {
        self.locked(|held| held.as_ref().is_some_and(|held| held.reaches(after)))
    }
}

// === impl Held ===

impl Held {
    fn until(&self) -> Version {
        self.after.at(self.changes.back().map_or(self.after.number, |last| last.version.number))
    }

    fn reaches(&self, after: &Version) -> bool {
        after.epoch == self.after.epoch && (self.after.number..=self.until().number).contains(&after.number)
    }

    /// Adds the next change, and drops the oldest ones beyond the bounds: all of them if this one alone exceeds these.
    fn push(&mut self, change: Recorded, bounds: Bounds) {
        self.bytes += change.size();
        self.changes.push_back(Arc::new(change));
        while self.changes.len() > bounds.items || self.bytes > bounds.bytes {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.bytes -= oldest.size();
            self.after = oldest.version.clone();
        }
    }
}
