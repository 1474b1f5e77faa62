//! The work queue: one reconcile pass per resource at a time, with what arrives meanwhile merged into the next one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use message_broker::Delivery;
use tokio::time::Instant;

use crate::manifest::Trigger;

/// A resource that is to be reconciled.
#[derive(Debug)]
pub(crate) struct WorkItem<D = Delivery> {
    pub(crate) id: String,
    /// The deliveries that are acked or nacked by the result.
    pub(crate) deliveries: Vec<D>,
    /// The event that the pass is attributed to.
    pub(crate) trigger: Trigger,
}

/// The resources that are being reconciled, are queued, or wait for a timer.
#[derive(Debug)]
pub(crate) struct WorkQueue<D = Delivery> {
    concurrency: usize,
    entries: BTreeMap<String, Entry<D>>,
    ready: VecDeque<String>,
    timers: BTreeSet<(Instant, String)>,
    busy: usize,
}

#[derive(Debug)]
struct Entry<D> {
    deliveries: Vec<D>,
    trigger: Trigger,
    is_busy: bool,
    is_queued: bool,
    timer: Option<Instant>,
}

fn names_an_event(trigger: &Trigger) -> bool {
    trigger.event.is_some() || trigger.trace.is_some()
}

impl<D> WorkQueue<D> {
    /// Creates an empty queue that hands out at most `concurrency` items at a time.
    pub(crate) fn new(concurrency: usize) -> Self {
        let (entries, ready, timers) = (BTreeMap::new(), VecDeque::new(), BTreeSet::new());
        Self { concurrency, entries, ready, timers, busy: 0 }
    }

    /// Queues a resource; one that is being reconciled is queued again when its pass is over.
    pub(crate) fn enqueue(&mut self, id: &str, delivery: Option<D>, trigger: Trigger) {
        let entry = self.entries.entry(id.to_owned()).or_insert_with(|| Entry {
            deliveries: Vec::new(),
            trigger: Trigger::default(),
            is_busy: false,
            is_queued: false,
            timer: None,
        });
        entry.deliveries.extend(delivery);
        if names_an_event(&trigger) {
            entry.trigger = trigger;
        }
        if let Some(timer) = entry.timer.take() {
            self.timers.remove(&(timer, id.to_owned()));
        }
        if !std::mem::replace(&mut entry.is_queued, true) && !entry.is_busy {
            self.ready.push_back(id.to_owned());
        }
    }

    /// Returns the next item; `None` if none is queued or the maximum number is being reconciled.
    pub(crate) fn next(&mut self) -> Option<WorkItem<D>> {
        if self.busy >= self.concurrency {
            return None;
        }
        let id = self.ready.pop_front()?;
        let entry = self.entries.get_mut(&id)?;
        entry.is_queued = false;
        entry.is_busy = true;
        self.busy += 1;
        let deliveries = std::mem::take(&mut entry.deliveries);
        Some(WorkItem { deliveries, trigger: std::mem::take(&mut entry.trigger), id })
    }

    /// Attaches deliveries that are held to the next pass of a resource whose pass ends, and the event that it was attributed
    /// to, unless another one has arrived meanwhile.
    pub(crate) fn hold(&mut self, id: &str, deliveries: Vec<D>, trigger: Trigger) {
        let Some(entry) = self.entries.get_mut(id).filter(|_| !deliveries.is_empty()) else { return };
        entry.deliveries.extend(deliveries);
        if !names_an_event(&entry.trigger) {
            entry.trigger = trigger;
        }
    }

    /// Ends the pass of a resource, and starts a timer for the next one if `requeue_after` is given.
    pub(crate) fn finish(&mut self, id: &str, requeue_after: Option<Duration>, now: Instant) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.is_busy) else { return };
        entry.is_busy = false;
        self.busy = self.busy.saturating_sub(1);
        if entry.is_queued {
            self.ready.push_back(id.to_owned());
            return;
        }
        match requeue_after {
            Some(wait) => {
                let at = now + wait;
                entry.timer = Some(at);
                self.timers.insert((at, id.to_owned()));
            }
            None => drop(self.entries.remove(id)),
        }
    }

    /// Returns the time of the next timer.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Queues the resources whose timers are due.
    pub(crate) fn enqueue_due(&mut self, now: Instant) {
        while let Some((at, id)) = self.timers.first().cloned()
            && at <= now
        {
            self.timers.pop_first();
            self.enqueue(&id, None, Trigger::default());
        }
    }

    /// Ends every wait, and returns the deliveries that no pass has received.
    pub(crate) fn clear(&mut self) -> Vec<D> {
        self.ready.clear();
        self.timers.clear();
        std::mem::take(&mut self.entries).into_values().flat_map(|entry| entry.deliveries).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(queue: &mut WorkQueue<u32>) -> Vec<(String, Vec<u32>)> {
        std::iter::from_fn(|| queue.next().map(|item| (item.id, item.deliveries))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_is_reconciled_once_at_a_time_and_the_rest_is_merged() {
        let (mut queue, now) = (WorkQueue::new(2), Instant::now());
        for delivery in [1, 2] {
            queue.enqueue("a", Some(delivery), Trigger::default());
        }
        assert_eq!(ids(&mut queue), [("a".to_owned(), vec![1, 2])]);
        queue.enqueue("a", Some(3), Trigger::default());
        queue.enqueue("a", None, Trigger::default());
        for id in ["b", "c"] {
            queue.enqueue(id, None, Trigger::default());
        }
        assert_eq!(ids(&mut queue), [("b".to_owned(), vec![])], "two at a time");
        queue.finish("a", None, now);
        assert_eq!(ids(&mut queue), [("c".to_owned(), vec![])], "first in, first out");
        queue.finish("c", None, now);
        assert_eq!(ids(&mut queue), [("a".to_owned(), vec![3])]);
        queue.finish("a", None, now);
        queue.finish("b", None, now);
        assert!(queue.entries.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn held_deliveries_belong_to_the_next_pass() {
        let (mut queue, now) = (WorkQueue::new(2), Instant::now());
        let of_event = |event: &str| Trigger { event: Some(event.to_owned()), trace: None };
        queue.enqueue("a", Some(1), of_event("first"));
        let WorkItem { deliveries, trigger, .. } = queue.next().unwrap();
        queue.hold("a", deliveries, trigger);
        queue.finish("a", Some(Duration::from_secs(1)), now);
        assert_eq!(ids(&mut queue), []);
        queue.enqueue_due(now + Duration::from_secs(1));
        let WorkItem { deliveries, trigger, .. } = queue.next().unwrap();
        assert_eq!((&deliveries[..], trigger.event.as_deref()), (&[1][..], Some("first")));
        queue.hold("a", deliveries, trigger);
        queue.finish("a", Some(Duration::from_secs(1)), now);
        // A newer event does not wait.
        queue.enqueue("a", Some(2), of_event("second"));
        let WorkItem { deliveries, trigger, .. } = queue.next().unwrap();
        assert_eq!((&deliveries[..], trigger.event.as_deref()), (&[1, 2][..], Some("second")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cleared_queue_returns_the_deliveries_that_wait() {
        let (mut queue, now) = (WorkQueue::new(1), Instant::now());
        for (id, delivery) in [("a", 1), ("b", 2)] {
            queue.enqueue(id, Some(delivery), Trigger::default());
        }
        assert_eq!(queue.next().unwrap().deliveries, [1]);
        queue.enqueue("a", Some(3), Trigger::default());
        let mut waiting = queue.clear();
        waiting.sort_unstable();
        assert_eq!((waiting, queue.next_timer()), (vec![2, 3], None));
        queue.finish("a", Some(Duration::ZERO), now);
        assert!(queue.next().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_ends_by_time_or_by_an_event() {
        let (mut queue, now) = (WorkQueue::<u32>::new(2), Instant::now());
        for id in ["a", "b"] {
            queue.enqueue(id, None, Trigger::default());
        }
        assert_eq!(ids(&mut queue).len(), 2);
        for (id, wait) in [("a", 5), ("b", 10)] {
            queue.finish(id, Some(Duration::from_secs(wait)), now);
        }
        queue.enqueue("b", Some(1), Trigger::default());
        assert_eq!(ids(&mut queue), [("b".to_owned(), vec![1])]);
        queue.finish("b", None, now);
        assert_eq!(queue.next_timer(), Some(now + Duration::from_secs(5)));
        queue.enqueue_due(now + Duration::from_secs(5));
        assert_eq!(ids(&mut queue), [("a".to_owned(), vec![])]);
    }

    /// Its trace would have no end.
    #[tokio::test(start_paused = true)]
    async fn a_pass_that_a_timer_causes_is_not_of_the_last_event() {
        let (mut queue, now) = (WorkQueue::<u32>::new(1), Instant::now());
        let event = Trigger { event: Some("e".to_owned()), trace: None };
        queue.enqueue("a", Some(1), event);
        // A request without a trigger keeps the event's trigger.
        queue.enqueue("a", None, Trigger::default());
        assert_eq!(queue.next().unwrap().trigger.event.as_deref(), Some("e"));
        queue.finish("a", Some(Duration::from_secs(1)), now);
        queue.enqueue_due(now + Duration::from_secs(1));
        assert_eq!(queue.next().unwrap().trigger.event, None);
    }
}
