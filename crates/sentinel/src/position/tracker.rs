//! Derives the position of a leader from the changes that it has seen and those that it has published.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::version::{Position, Version};

/// Maximum number of published changes behind an unpublished one that a position lists.
const MAX_BEYOND: usize = 256;
/// The number of a change that was in the list of the whole fleet: none of the stream's, so that no position is known before it is
/// published.
const LISTED: u64 = 0;

/// The changes of which the events are not confirmed.
#[derive(Debug, Default)]
pub struct Tracker {
    epoch: Option<String>,
    seen: u64,
    /// The first unpublished change of each resource.
    unpublished: BTreeMap<Arc<str>, u64>,
    order: BTreeSet<(u64, Arc<str>)>,
    /// The published changes behind the first unpublished one.
    beyond: BTreeSet<u64>,
}

impl Tracker {
    /// Goes on from the position of a predecessor.
    pub fn resume(position: &Position) -> Self {
        let Position { epoch, mark, beyond } = position.clone();
        Self { epoch: Some(epoch), seen: mark, beyond, ..Self::default() }
    }

    /// Records that the stream has reached a version.
    pub fn reached(&mut self, version: &Version<'_>) {
        if self.epoch.as_deref() != Some(version.epoch) {
            self.epoch = Some(version.epoch.to_owned());
            (self.seen, self.beyond) = (0, BTreeSet::new());
        }
        self.seen = self.seen.max(version.number);
    }

    /// Records that a resource has an unpublished change, of this version, or from the list of the whole fleet.
    pub fn changed(&mut self, id: &str, version: Option<&Version<'_>>) {
        if self.unpublished.contains_key(id) {
            return;
        }
        let (id, number) = (Arc::<str>::from(id), version.map_or(LISTED, |version| version.number));
        self.unpublished.insert(Arc::clone(&id), number);
        self.order.insert((number, id));
    }

    /// Records that a resource has no unpublished change any more.
    pub fn settled(&mut self, id: &str) {
        let Some((id, number)) = self.unpublished.remove_entry(id) else { return };
        self.order.remove(&(number, id));
        self.beyond.insert(number);
        let mark = self.mark();
        self.beyond.retain(|number| *number > mark);
        while self.beyond.len() > MAX_BEYOND {
            self.beyond.pop_last();
        }
    }

    /// Returns the position; `None` while it is not known, as the fleet is being read.
    pub fn position(&self) -> Option<Position> {
        let epoch = self.epoch.clone().filter(|_| self.is_known())?;
        let mark = self.mark();
        let beyond = self.beyond.iter().copied().filter(|number| *number > mark).collect();
        Some(Position { epoch, mark, beyond })
    }

    /// Returns true if there is a position.
    pub fn is_known(&self) -> bool {
        let is_listed = self.order.first().is_some_and(|(number, _)| *number == LISTED);
        self.epoch.is_some() && self.seen > 0 && !is_listed
    }

    fn mark(&self) -> u64 {
        self.order.first().map_or(self.seen, |(number, _)| number.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Version<'static> {
        Version { epoch: "e", number }
    }

    fn change(tracker: &mut Tracker, id: &str, number: u64) {
        tracker.reached(&version(number));
        tracker.changed(id, Some(&version(number)));
    }

    fn shown(tracker: &Tracker) -> String {
        tracker.position().map_or_else(|| "none".to_owned(), |position| position.to_string())
    }

    #[test]
    fn a_position_advances_with_the_oldest_unpublished_change() {
        let mut tracker = Tracker::default();
        assert_eq!(shown(&tracker), "none");
        for (number, id) in [(10, "a"), (11, "b"), (12, "c")] {
            change(&mut tracker, id, number);
        }
        assert_eq!(shown(&tracker), "e-9");
        tracker.settled("b");
        assert_eq!(shown(&tracker), "e-9+11");
        tracker.settled("a");
        assert_eq!(shown(&tracker), "e-11");
        tracker.settled("c");
        tracker.reached(&version(20));
        assert_eq!(shown(&tracker), "e-20");
    }

    #[test]
    fn a_further_change_of_an_unpublished_resource_keeps_its_first() {
        let mut tracker = Tracker::default();
        change(&mut tracker, "a", 10);
        change(&mut tracker, "a", 15);
        assert_eq!(shown(&tracker), "e-9");
        tracker.settled("a");
        assert_eq!(shown(&tracker), "e-15");
    }

    #[test]
    fn no_position_is_known_before_the_listed_changes_are_published() {
        let mut tracker = Tracker::default();
        tracker.changed("a", None);
        tracker.reached(&version(7));
        change(&mut tracker, "b", 8);
        assert_eq!(shown(&tracker), "none");
        tracker.settled("a");
        assert_eq!(shown(&tracker), "e-7");
    }

    #[test]
    fn a_successor_goes_on_and_another_epoch_begins_anew() {
        let mut tracker = Tracker::resume(&"e-9+11".parse().unwrap());
        assert_eq!(shown(&tracker), "e-9+11");
        change(&mut tracker, "a", 10);
        assert_eq!(shown(&tracker), "e-9+11");
        tracker.reached(&version(12));
        tracker.settled("a");
        assert_eq!(shown(&tracker), "e-12");
        tracker.reached(&Version { epoch: "f", number: 3 });
        assert_eq!(shown(&tracker), "f-3");
    }

    #[test]
    fn a_resource_that_is_never_published_makes_no_endless_position() {
        let mut tracker = Tracker::default();
        change(&mut tracker, "stuck", 1);
        for number in 2..1_000 {
            let id = number.to_string();
            change(&mut tracker, &id, number);
            tracker.settled(&id);
        }
        assert_eq!(shown(&tracker).split('+').count(), 1 + MAX_BEYOND);
        tracker.settled("stuck");
        assert_eq!(shown(&tracker), "e-999");
    }
}
