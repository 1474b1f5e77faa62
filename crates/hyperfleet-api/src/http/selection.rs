//! The resources that one change stream delivers, and the copies that its client has of them.

use std::collections::BTreeMap;

use axum::body::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use crate::render;
use crate::search::Search;
use crate::store::{Change, ChangeKind, Version};

/// The resources of one stream.
#[derive(Debug, Default)]
pub(super) struct Selection {
    owner_id: Option<String>,
    search: Search,
    /// The resources of which the client has, or has not, a copy, by id.
    known: BTreeMap<String, Known>,
    /// True if the client has no copy of a resource that is not in `known`: the stream began with the current state.
    complete: bool,
}

/// The knowledge about the client's copy of one resource, as of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    is_held: bool,
    version: i64,
}

/// The search took longer than a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooSlow;

// === impl Selection ===

impl Selection {
    pub(super) fn new(owner_id: Option<String>, search: Search, complete: bool) -> Self {
        Self { owner_id, search, known: BTreeMap::new(), complete }
    }

    /// True if a change has to be evaluated, which can take long.
    pub(super) fn evaluates(&self) -> bool {
        self.owner_id.is_some() || !self.search.is_blank()
    }

    /// Notes that the client has a copy.
    pub(super) fn hold(&mut self, id: String, version: i64) {
        self.known.insert(id, Known { is_held: true, version });
    }

    /// Returns the lines for these changes, all of the epoch of `after`.
    pub(super) fn events(
        &mut self,
        after: &Version,
        changes: Vec<(i64, Change)>,
        deadline: Instant,
    ) -> Result<Bytes, TooSlow> {
        let mut lines = Vec::new();
        for (number, change) in changes {
            if Instant::now() > deadline {
                return Err(TooSlow);
            }
            lines.extend(self.event_of(&after.at(number), change).into_iter().flatten());
        }
        Ok(lines.into())
    }

    /// The event of a change for this client: a resource that begins to match is added, one that ceases to match is deleted.
    /// `None` if the client has a later version or is not affected.
    fn event_of(&mut self, version: &Version, change: Change) -> Option<Bytes> {
        let Change { kind, resource_id, object, .. } = change;
        let known = self.known.get(&resource_id).copied();
        if known.is_some_and(|known| known.version >= version.number) {
            return None;
        }
        let matches = kind != ChangeKind::Deleted && self.matches(&object);
        let held = known.map(|known| known.is_held).or_else(|| self.complete.then_some(false));
        let event_kind = match (matches, held) {
            (true, Some(true)) => ChangeKind::Modified,
            (true, Some(false)) => ChangeKind::Added,
            (true, None) => kind,
            (false, Some(false)) => return None,
            (false, _) => ChangeKind::Deleted,
        };
        if kind == ChangeKind::Deleted || (self.complete && !matches) {
            self.known.remove(&resource_id);
        } else {
            self.known.insert(resource_id, Known { is_held: matches, version: version.number });
        }
        Some(event(event_kind.as_str(), &version.to_string(), &object))
    }

    fn matches(&self, object: &str) -> bool {
        if !self.evaluates() {
            return true;
        }
        let Ok(object) = serde_json::from_str::<Value>(object) else { return false };
        let owned = self.owner_id.as_deref().is_none_or(|owner| {
            object.get("owner_references").and_then(|owner| owner.get("id")).and_then(Value::as_str) == Some(owner)
        });
        owned && render::parse(&object).is_some_and(|resource| self.search.matches(&resource))
    }
}

/// An event line with a serialised object.
pub(super) fn event(kind: &str, version: &str, object: &str) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{kind}\",\"resource_version\":\"{version}\",\"object\":{object}}}\n"))
}
