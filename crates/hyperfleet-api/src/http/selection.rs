//! The resources that one change stream delivers, and the copies that its client has of them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};

use axum::body::Bytes;
use tokio::time::Instant;

use crate::search::Search;
use crate::store::{ChangeKind, Recorded};

/// The resources of one stream.
#[derive(Debug, Default)]
pub(super) struct Selection {
    owner_id: Option<String>,
    search: Search,
    /// The current state, as far as it was read, by batch: the last id and the version as of which all ids up to it were read.
    /// Empty once all changes since then are sent.
    state: Vec<(String, i64)>,
    /// The version as of which there are no resources behind the last batch.
    end: i64,
    /// Of which resources the client has, or has not, a copy; only of a selection that evaluates. A key is the hash of an id: two
    /// of 10,000 ids share one once in 10^11 streams, and then an addition may be called a modification.
    held: BTreeMap<u64, bool>,
    hashes: RandomState,
    /// True if the client has no copy of a resource that is not in `held`: the stream began with the current state.
    complete: bool,
}

/// The search took longer than a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooSlow;

// === impl Selection ===

impl Selection {
    pub(super) fn new(owner_id: Option<String>, search: Search, complete: bool) -> Self {
        Self { owner_id, search, complete, ..Self::default() }
    }

    /// True if a change has to be evaluated, which can take long.
    pub(super) fn evaluates(&self) -> bool {
        self.owner_id.is_some() || !self.search.is_blank()
    }

    /// Notes that the client has a copy of these resources, and of no others with ids up to the last one, as of that version.
    /// Without resources, the current state is complete.
    pub(super) fn hold<'a>(&mut self, ids: impl Iterator<Item = &'a str>, version: i64) {
        let mut last = None;
        for id in ids {
            if self.evaluates() {
                self.held.insert(self.hashes.hash_one(id), true);
            }
            last = Some(id);
        }
        match last {
            Some(last) => self.state.push((last.to_owned(), version)),
            None => self.end = version,
        }
    }

    /// Forgets as of which version each resource was read: all changes that follow are later.
    pub(super) fn caught_up(&mut self) {
        self.state = Vec::new();
        self.end = 0;
    }

    /// Returns the lines for these changes.
    pub(super) fn events(
        &mut self,
        changes: impl IntoIterator<Item = impl AsRef<Recorded>>,
        deadline: Instant,
    ) -> Result<Vec<Bytes>, TooSlow> {
        let mut lines = Vec::new();
        for change in changes {
            if Instant::now() > deadline {
                return Err(TooSlow);
            }
            let change = change.as_ref();
            lines.extend(self.event_of(change).map(|kind| change.line(kind)));
        }
        Ok(lines)
    }

    /// The change for this client: a resource that begins to match is added, one that ceases to match is deleted. `None` if the
    /// client has a later version or is not affected.
    fn event_of(&mut self, change: &Recorded) -> Option<ChangeKind> {
        let (kind, id) = (change.kind, change.resource_id());
        if change.version.number <= self.read_at(id) {
            return None;
        }
        if !self.evaluates() {
            return Some(kind);
        }
        let key = self.hashes.hash_one(id);
        let matches = kind != ChangeKind::Deleted && self.matches(change);
        let held = self.held.get(&key).copied().or_else(|| self.complete.then_some(false));
        if kind == ChangeKind::Deleted || (self.complete && !matches) {
            self.held.remove(&key);
        } else {
            self.held.insert(key, matches);
        }
        match (matches, held) {
            (true, Some(true)) => Some(ChangeKind::Modified),
            (true, Some(false)) => Some(ChangeKind::Added),
            (true, None) => Some(kind),
            (false, Some(false)) => None,
            (false, _) => Some(ChangeKind::Deleted),
        }
    }

    /// The version as of which the client knows that resource from the current state.
    fn read_at(&self, id: &str) -> i64 {
        let batch = self.state.partition_point(|(last, _)| last.as_str() < id);
        self.state.get(batch).map_or(self.end, |(_, version)| *version)
    }

    fn matches(&self, change: &Recorded) -> bool {
        let Some(resource) = change.resource() else { return false };
        let owned =
            self.owner_id.as_ref().is_none_or(|id| resource.owner.as_ref().is_some_and(|owner| owner.id == *id));
        owned && self.search.matches(&resource)
    }
}
