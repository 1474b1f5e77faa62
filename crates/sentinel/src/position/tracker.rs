//! Derives the position of a leader from the changes that it has received and those that it has published.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::version::{Position, Version};

/// Maximum number of published changes after an unpublished one that a position lists.
const MAX_PUBLISHED_AFTER: usize = 256;
/// The number of a change that was in the list of the whole fleet: none of the stream's, so that no position is known before it is
/// published.
const LISTED: u64 = 0;

/// The changes of which the events are not confirmed.
#[derive(Debug, Default)]
pub struct Tracker {
    epoch: Option<String>,
    /// The latest version of the stream.
    latest: u64,
    /// The first unpublished change of each resource.
    unpublished: BTreeMap<Arc<str>, u64>,
    order: BTreeSet<(u64, Arc<str>)>,
    /// The published changes after the first unpublished one.
    published_after: BTreeSet<u64>,
}

impl Tracker {
    /// Resumes from the position of a predecessor.
    pub fn resume(position: &Position) -> Self {
        let Position { epoch, low_watermark, published_after } = position.clone();
        Self { epoch: Some(epoch), latest: low_watermark, published_after, ..Self::default() }
    }

    /// Records that the stream has reached a version.
    pub fn reached(&mut self, version: &Version<'_>) {
        if self.epoch.as_deref() != Some(version.epoch) {
            self.epoch = Some(version.epoch.to_owned());
            (self.latest, self.published_after) = (0, BTreeSet::new());
        }
        self.latest = self.latest.max(version.number);
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
    pub fn done(&mut self, id: &str) {
        let Some((id, number)) = self.unpublished.remove_entry(id) else { return };
        self.order.remove(&(number, id));
        self.published_after.insert(number);
        let low_watermark = self.low_watermark();
        self.published_after.retain(|number| *number > low_watermark);
        while self.published_after.len() > MAX_PUBLISHED_AFTER {
            self.published_after.pop_last();
        }
    }

    /// Returns the position; `None` while it is not known, as the fleet is being read.
    pub fn position(&self) -> Option<Position> {
        let epoch = self.epoch.clone().filter(|_| self.is_known())?;
        let low_watermark = self.low_watermark();
        let published_after = self.published_after.iter().copied().filter(|number| *number > low_watermark).collect();
        Some(Position { epoch, low_watermark, published_after })
    }

    /// Returns true if there is a position.
    pub fn is_known(&self) -> bool {
        let is_listed = self.order.first().is_some_and(|(number, _)| *number == LISTED);
        self.epoch.is_some() && self.latest > 0 && !is_listed
    }

    fn low_watermark(&self) -> u64 {
        self.order.first().map_or(self.latest, |(number, _)| number.saturating_sub(1))
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
        tracker.done("b");
        assert_eq!(shown(&tracker), "e-9+11");
        tracker.done("a");
        assert_eq!(shown(&tracker), "e-11");
        tracker.done("c");
        tracker.reached(&version(20));
        assert_eq!(shown(&tracker), "e-20");
    }

    #[test]
    fn a_further_change_of_an_unpublished_resource_keeps_its_first() {
        let mut tracker = Tracker::default();
        change(&mut tracker, "a", 10);
        change(&mut tracker, "a", 15);
        assert_eq!(shown(&tracker), "e-9");
        tracker.done("a");
        assert_eq!(shown(&tracker), "e-15");
    }

    #[test]
    fn no_position_is_known_before_the_listed_changes_are_published() {
        let mut tracker = Tracker::default();
        tracker.changed("a", None);
        tracker.reached(&version(7));
        change(&mut tracker, "b", 8);
        assert_eq!(shown(&tracker), "none");
        tracker.done("a");
        assert_eq!(shown(&tracker), "e-7");
    }

    #[test]
    fn a_successor_goes_on_and_another_epoch_begins_anew() {
        let mut tracker = Tracker::resume(&"e-9+11".parse().unwrap());
        assert_eq!(shown(&tracker), "e-9+11");
        change(&mut tracker, "a", 10);
        assert_eq!(shown(&tracker), "e-9+11");
        tracker.reached(&version(12));
        tracker.done("a");
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
            tracker.done(&id);
        }
        assert_eq!(shown(&tracker).split('+').count(), 1 + MAX_PUBLISHED_AFTER);
        tracker.done("stuck");
        assert_eq!(shown(&tracker), "e-999");
    }
}
