//! Whose turn it is: each resource one look at a time, what comes meanwhile together in the next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use message_broker::Delivery;
use tokio::time::Instant;

use crate::manifest::Occasion;

/// A look that is to begin.
#[derive(Debug)]
pub(crate) struct Errand<D = Delivery> {
    pub(crate) id: String,
    /// The deliveries that it answers.
    pub(crate) deliveries: Vec<D>,
    /// Upon what.
    pub(crate) occasion: Occasion,
}

/// The resources that are looked at, or wait to be.
#[derive(Debug)]
pub(crate) struct Desk<D = Delivery> {
    concurrency: usize,
    entries: BTreeMap<String, Entry<D>>,
    ready: VecDeque<String>,
    timers: BTreeSet<(Instant, String)>,
    busy: usize,
}

#[derive(Debug)]
struct Entry<D> {
    deliveries: Vec<D>,
    occasion: Occasion,
    is_busy: bool,
    is_wanted: bool,
    timer: Option<Instant>,
}

impl<D> Desk<D> {
    /// So many at once.
    pub(crate) fn new(concurrency: usize) -> Self {
        let (entries, ready, timers) = (BTreeMap::new(), VecDeque::new(), BTreeSet::new());
        Self { concurrency, entries, ready, timers, busy: 0 }
    }

    /// A look at this resource is wanted, now or after the one that goes on.
    pub(crate) fn ask(&mut self, id: &str, delivery: Option<D>, occasion: Occasion) {
        let entry = self.entries.entry(id.to_owned()).or_insert_with(|| Entry {
            deliveries: Vec::new(),
            occasion: Occasion::default(),
            is_busy: false,
            is_wanted: false,
            timer: None,
        });
        entry.deliveries.extend(delivery);
        if occasion.event.is_some() || occasion.trace.is_some() {
            entry.occasion = occasion;
        }
        if let Some(timer) = entry.timer.take() {
            self.timers.remove(&(timer, id.to_owned()));
        }
        if !std::mem::replace(&mut entry.is_wanted, true) && !entry.is_busy {
            self.ready.push_back(id.to_owned());
        }
    }

    /// The next look, if one may begin.
    pub(crate) fn next(&mut self) -> Option<Errand<D>> {
        if self.busy >= self.concurrency {
            return None;
        }
        let id = self.ready.pop_front()?;
        let entry = self.entries.get_mut(&id)?;
        entry.is_wanted = false;
        entry.is_busy = true;
        self.busy += 1;
        let deliveries = std::mem::take(&mut entry.deliveries);
        Some(Errand { deliveries, occasion: std::mem::take(&mut entry.occasion), id })
    }

    /// A look is over; another may be due after a while.
    pub(crate) fn done(&mut self, id: &str, next: Option<Duration>, now: Instant) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.is_busy) else { return };
        entry.is_busy = false;
        self.busy = self.busy.saturating_sub(1);
        if entry.is_wanted {
            self.ready.push_back(id.to_owned());
            return;
        }
        match next {
            Some(wait) => {
                let at = now + wait;
                entry.timer = Some(at);
                self.timers.insert((at, id.to_owned()));
            }
            None => drop(self.entries.remove(id)),
        }
    }

    /// When the next wait is over.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Asks for those whose wait is over.
    pub(crate) fn ring(&mut self, now: Instant) {
        while let Some((at, id)) = self.timers.first().cloned()
            && at <= now
        {
            self.timers.pop_first();
            self.ask(&id, None, Occasion::default());
        }
    }

    /// Lets go of everything that has not begun.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.ready.clear();
        self.timers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(desk: &mut Desk<u32>) -> Vec<(String, Vec<u32>)> {
        std::iter::from_fn(|| desk.next().map(|errand| (errand.id, errand.deliveries))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn one_look_at_a_resource_at_a_time_and_the_rest_together() {
        let (mut desk, now) = (Desk::new(2), Instant::now());
        for delivery in [1, 2] {
            desk.ask("a", Some(delivery), Occasion::default());
        }
        assert_eq!(ids(&mut desk), [("a".to_owned(), vec![1, 2])]);
        desk.ask("a", Some(3), Occasion::default());
        desk.ask("a", None, Occasion::default());
        for id in ["b", "c"] {
            desk.ask(id, None, Occasion::default());
        }
        assert_eq!(ids(&mut desk), [("b".to_owned(), vec![])], "two at once");
        desk.done("a", None, now);
        assert_eq!(ids(&mut desk), [("c".to_owned(), vec![])], "first come");
        desk.done("c", None, now);
        assert_eq!(ids(&mut desk), [("a".to_owned(), vec![3])]);
        desk.done("a", None, now);
        desk.done("b", None, now);
        assert!(desk.entries.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_by_time_or_by_news() {
        let (mut desk, now) = (Desk::<u32>::new(2), Instant::now());
        for id in ["a", "b"] {
            desk.ask(id, None, Occasion::default());
        }
        assert_eq!(ids(&mut desk).len(), 2);
        for (id, wait) in [("a", 5), ("b", 10)] {
            desk.done(id, Some(Duration::from_secs(wait)), now);
        }
        desk.ask("b", Some(1), Occasion::default());
        assert_eq!(ids(&mut desk), [("b".to_owned(), vec![1])]);
        desk.done("b", None, now);
        assert_eq!(desk.next_timer(), Some(now + Duration::from_secs(5)));
        desk.ring(now + Duration::from_secs(5));
        assert_eq!(ids(&mut desk), [("a".to_owned(), vec![])]);
    }
}
