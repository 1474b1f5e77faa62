//! The list that polling last read, and the changes between two lists.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fleet_model::names::condition::RECONCILED;
use jiff::Timestamp;
use serde_json::Value;

use super::event::{WatchEvent, WatchKind};
use crate::wire::{Resource, ResourceStatus};
use crate::{Generation, Status};

/// The present state.
pub(crate) struct Listing {
    pub(crate) items: Vec<Resource>,
    /// True if it is one snapshot; a list of several pages may lack resources that moved between pages.
    pub(crate) is_exact: bool,
}

/// The list that polling last read.
#[derive(Debug, Default)]
pub(crate) struct View {
    known: BTreeMap<String, Known>,
    /// Resources that the last list lacked; they are deleted if the next one lacks them too.
    missed: BTreeSet<String>,
}

#[derive(Debug)]
struct Known {
    fingerprint: Fingerprint,
    /// Its identity, without spec and status: a fleet's specs are not held in memory.
    object: Resource,
}

/// Members that are equal in an unchanged resource.
#[derive(Debug)]
struct Fingerprint {
    generation: Generation,
    updated: Option<Timestamp>,
    deleted: Option<Timestamp>,
    conditions: u64,
    /// `None` if the resource's reports were not read.
    reports: Option<u64>,
}

// === impl View ===

impl View {
    /// Returns the changes since the last list.
    pub(crate) fn changes(&mut self, listing: Listing) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        let mut here = BTreeSet::new();
        for resource in listing.items {
            here.insert(resource.id.clone());
            let fingerprint = Fingerprint::of(&resource);
            let known = || Known { fingerprint: Fingerprint::of(&resource), object: without_contents(&resource) };
            let kind = match self.known.entry(resource.id.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(known());
                    WatchKind::Added
                }
                Entry::Occupied(mut entry) if entry.get().fingerprint.differs_from(&fingerprint) => {
                    entry.insert(known());
                    WatchKind::Modified
                }
                Entry::Occupied(_) => continue,
            };
            events.push(WatchEvent::about(kind, resource));
        }
        let missing: BTreeSet<String> = self.known.keys().filter(|id| !here.contains(*id)).cloned().collect();
        let is_gone = |id: &&String| listing.is_exact || self.missed.contains(*id);
        for id in missing.iter().filter(is_gone) {
            let known = self.known.remove(id);
            events.extend(known.map(|known| WatchEvent::about(WatchKind::Deleted, known.object)));
        }
        self.missed = missing;
        events
    }

    /// Returns true unless the resource is as it was, with its reports read, and is reconciled, so that no adapter has work to report.
    pub(crate) fn may_have_new_reports(&self, resource: &Resource) -> bool {
        let is_reconciled = resource.condition(RECONCILED).is_some_and(|condition| condition.status == Status::True);
        let known = self.known.get(&resource.id).map(|known| &known.fingerprint);
        !is_reconciled
            || known.is_none_or(|known| known.reports.is_none() || known.differs_from(&Fingerprint::of(resource)))
    }
}

// === impl Fingerprint ===

impl Fingerprint {
    /// Returns true if the resource has changed. Reports that were not read now did not change.
    fn differs_from(&self, now: &Self) -> bool {
        let resource = |it: &Self| (it.generation, it.updated, it.deleted, it.conditions);
        resource(self) != resource(now) || (now.reports.is_some() && self.reports != now.reports)
    }

    fn of(resource: &Resource) -> Self {
        // The API guarantees no order of conditions.
        let mut conditions: Vec<_> = resource.status.conditions.iter().collect();
        conditions.sort_by_key(|condition| &condition.kind);
        let mut digest = DefaultHasher::new();
        for condition in conditions {
            condition.kind.hash(&mut digest);
            condition.status.hash(&mut digest);
            condition.reason.hash(&mut digest);
            condition.message.hash(&mut digest);
            condition.observed_generation.hash(&mut digest);
            let times = [condition.created_time, condition.last_updated_time, condition.last_transition_time];
            times.map(Timestamp::as_nanosecond).hash(&mut digest);
        }
        Self {
            generation: resource.generation,
            updated: resource.updated_time,
            deleted: resource.deleted_time,
            conditions: digest.finish(),
            reports: resource.status.adapters.as_ref().map(|adapters| {
                let mut digest = DefaultHasher::new();
                Value::Object(adapters.clone()).to_string().hash(&mut digest);
                digest.finish()
            }),
        }
    }
}

fn without_contents(resource: &Resource) -> Resource {
    Resource {
        id: resource.id.clone(),
        kind: resource.kind.clone(),
        name: resource.name.clone(),
        href: resource.href.clone(),
        spec: Value::Null,
        status: ResourceStatus::default(),
        generation: resource.generation,
        deleted_time: resource.deleted_time,
        owner: resource.owner.clone(),
        ..Resource::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(id: &str, generation: i64, conditions: &[(&str, &str)]) -> Resource {
        let conditions: Vec<_> =
            conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status})).collect();
        serde_json::from_value(
            json!({"id": id, "generation": generation, "spec": {"big": 1}, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    fn delivered(view: &mut View, items: &[Resource], is_exact: bool) -> Vec<(WatchKind, String)> {
        let events = view.changes(Listing { items: items.to_vec(), is_exact });
        events.into_iter().map(|event| (event.kind, event.object.unwrap().id)).collect()
    }

    fn expect(kind: WatchKind, id: &str) -> (WatchKind, String) {
        (kind, id.to_owned())
    }

    #[test]
    fn changes_are_delivered_once() {
        let mut view = View::default();
        let (a, b) = (resource("a", 1, &[("Reconciled", "False")]), resource("b", 1, &[]));
        let both = [expect(WatchKind::Added, "a"), expect(WatchKind::Added, "b")];
        assert_eq!(delivered(&mut view, &[a.clone(), b.clone()], true), both);
        assert_eq!(delivered(&mut view, &[b.clone(), a], true), []);
        let reconciled = resource("a", 1, &[("Reconciled", "True")]);
        assert_eq!(delivered(&mut view, &[reconciled.clone(), b], true), [expect(WatchKind::Modified, "a")]);
        let changed = resource("b", 2, &[]);
        assert_eq!(
            delivered(&mut view, &[reconciled.clone(), changed.clone()], true),
            [expect(WatchKind::Modified, "b")]
        );
        assert_eq!(delivered(&mut view, &[changed], true), [expect(WatchKind::Deleted, "a")]);
        assert_eq!(delivered(&mut view, &[], true), [expect(WatchKind::Deleted, "b")]);
    }

    #[test]
    fn the_order_of_conditions_does_not_matter() {
        let mut view = View::default();
        let first = resource("a", 1, &[("Reconciled", "True"), ("DnsSuccessful", "True")]);
        let second = resource("a", 1, &[("DnsSuccessful", "True"), ("Reconciled", "True")]);
        assert_eq!(delivered(&mut view, &[first], true), [expect(WatchKind::Added, "a")]);
        assert_eq!(delivered(&mut view, &[second], true), []);
    }

    #[test]
    fn a_resource_that_moved_between_pages_is_not_deleted() {
        let mut view = View::default();
        let (a, b) = (resource("a", 1, &[]), resource("b", 1, &[]));
        delivered(&mut view, &[a.clone(), b.clone()], false);
        assert_eq!(delivered(&mut view, std::slice::from_ref(&a), false), []);
        assert_eq!(delivered(&mut view, &[a.clone(), b], false), []);
        assert_eq!(delivered(&mut view, std::slice::from_ref(&a), false), []);
        assert_eq!(delivered(&mut view, &[a], false), [expect(WatchKind::Deleted, "b")]);
    }
}
