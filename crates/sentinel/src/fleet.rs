//! Holds the observed and published state of every resource, and the order in which events are published.
//!
//! Time is an argument, so that a day of a fleet is simulated in seconds.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use daemon::backoff::Backoff;

use crate::decide::{Decision, Facts, Policy, Published, State, decide};
use crate::moment::Moment;
use crate::observation::{EventContent, Observation};
use crate::reason::Reason;
use crate::resync_slot;

/// Back-off of a resource whose event could not be published. Short, as the circuit breaker limits the load on the broker.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(5));

/// The state of all resources.
#[derive(Debug)]
pub struct Fleet {
    policy: Policy,
    known: BTreeMap<Arc<str>, Known>,
    /// Resources with unpublished changes, by the time of the change or of the next attempt. They are published first.
    urgent: BTreeSet<(Moment, Arc<str>)>,
    /// The other resources, by the time of their next decision.
    scheduled: BTreeSet<(Moment, Arc<str>)>,
    in_flight: usize,
    /// Number of times that the whole fleet was read.
    round: u32,
    /// True while a page may show a change before the stream does.
    inherits: bool,
    /// True until the whole fleet was read once.
    is_first: bool,
    /// True while the whole fleet is being read.
    is_reading: bool,
    /// Resources that were deleted since the round began; a page may still contain them.
    deleted: BTreeSet<Arc<str>>,
}

/// The way in which a resource was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedBy {
    /// By the change stream, which delivers changes in order.
    Stream,
    /// From a page of a list, which may be older than what the stream has delivered.
    Page,
    /// As [`Page`](Self::Page), and the predecessor has published it unless the stream delivers a change of it.
    Inherited,
}

/// The state of one resource.
#[derive(Debug)]
struct Known {
    number: u64,
    facts: Facts,
    content: EventContent,
    published: Option<Published>,
    /// True if it is assumed that the predecessor has published it.
    is_assumed: bool,
    position: QueuePosition,
    /// The last round in which it was observed.
    round: u32,
    /// Number of consecutive failures to publish its event.
    failures: u8,
}

/// The queue that a resource is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueuePosition {
    /// None.
    Idle,
    /// The queue of resources with unpublished changes.
    Urgent(Moment),
    /// The queue of the other resources.
    Scheduled(Moment),
    /// None, as its event is being published.
    InFlight,
}

/// An event that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The id of the resource.
    pub id: Arc<str>,
    /// The reason.
    pub reason: Reason,
    /// The state that it publishes.
    pub state: State,
    /// Its content.
    pub content: EventContent,
    /// Time of the change, if the event publishes a change.
    pub changed: Option<Moment>,
}

impl Fleet {
    /// Creates an empty fleet.
    pub fn new(policy: Policy) -> Self {
        let (known, urgent, scheduled) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self {
            policy,
            known,
            urgent,
            scheduled,
            in_flight: 0,
            round: 1,
            inherits: false,
            is_first: true,
            is_reading: false,
            deleted: BTreeSet::new(),
        }
    }

    /// Records an observation of a resource. Returns `None` if it is older than the known state; then it changes nothing.
    pub fn observe(&mut self, id: &str, observation: Observation, source: ObservedBy, now: Moment) -> Option<Decision> {
        let Observation { mut facts, content } = observation;
        // What the stream delivers to a successor has changed since its predecessor.
        let may_be_published = self.is_first && !(self.inherits && source == ObservedBy::Stream);
        facts.is_inherited = self.known.get(id).map_or(may_be_published, |known| known.facts.is_inherited);
        if source == ObservedBy::Stream {
            self.deleted.remove(id);
        } else if self.deleted.contains(id) {
            return None;
        }
        let round = self.round;
        let Some(key) = self.known.get_key_value(id).map(|(key, _)| Arc::clone(key)) else {
            let (key, number) = (Arc::<str>::from(id), resync_slot::number(id));
            let is_assumed = source == ObservedBy::Inherited;
            let published = is_assumed.then(|| Published::after(None, facts.state, now));
            let position = QueuePosition::Idle;
            let known = Known { number, facts, content, published, is_assumed, position, round, failures: 0 };
            self.known.insert(Arc::clone(&key), known);
            return Some(self.requeue(&key, now));
        };
        if let Some(known) = self.known.get_mut(&key) {
            known.round = round;
            // Only pages are compared by time: the clocks of two API servers may differ, and the stream is in order.
            let is_old = facts.changed < known.facts.changed && facts.state.generation <= known.facts.state.generation;
            if source != ObservedBy::Stream && is_old {
                return None;
            }
            if source == ObservedBy::Stream && std::mem::take(&mut known.is_assumed) && self.inherits {
                // The page may have been read after the change that the stream delivers now, which is not published.
                known.published = None;
            }
            known.facts = facts;
            known.content = content;
        }
        Some(self.requeue(&key, now))
    }

    /// Removes a resource that was deleted.
    pub fn remove(&mut self, id: &str) {
        if let Some((key, known)) = self.known.remove_entry(id) {
            self.dequeue(&key, known.position);
            if self.is_reading || self.is_first {
                self.deleted.insert(key);
            }
        }
    }

    /// Begins a term with what a predecessor has published.
    pub fn begin_inheritance(&mut self) {
        self.inherits = true;
    }

    /// Ends the time in which a page may show a change before the stream does: the stream has delivered every change from before
    /// the last page.
    pub fn end_inheritance(&mut self) {
        self.inherits = false;
    }

    /// Forgets what a predecessor was assumed to have published, as its position cannot be used.
    pub fn disown(&mut self) {
        self.inherits = false;
        for known in self.known.values_mut().filter(|known| known.is_assumed) {
            (known.is_assumed, known.published) = (false, None);
        }
    }

    /// Returns true if a resource has a change that is not published, or an event of it is not confirmed.
    pub fn is_unpublished(&self, id: &str) -> bool {
        let position = self.known.get(id).map(|known| known.position);
        matches!(position, Some(QueuePosition::Urgent(_) | QueuePosition::InFlight))
    }

    /// Begins to read the whole fleet.
    pub fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
        self.is_reading = true;
        self.deleted.clear();
    }

    /// Abandons a round that could not be completed: resources that were not observed in it do not count as missing.
    pub fn abandon_round(&mut self) {
        if std::mem::take(&mut self.is_reading) {
            self.round = self.round.wrapping_sub(1);
            self.deleted.clear();
        }
    }

    /// Ends the round and removes the resources that were not observed in it; with `may_have_slipped`, those that were not
    /// observed in two consecutive rounds. Returns the number of removed resources.
    pub fn end_round(&mut self, may_have_slipped: bool) -> usize {
        let oldest = self.round.wrapping_sub(u32::from(may_have_slipped));
        let is_missing = |known: &Known| oldest.wrapping_sub(known.round).cast_signed() > 0;
        let missing: Vec<Arc<str>> =
            self.known.iter().filter(|(_, known)| is_missing(known)).map(|(id, _)| Arc::clone(id)).collect();
        for id in &missing {
            self.remove(id);
        }
        (self.is_first, self.is_reading) = (false, false);
        self.deleted.clear();
        missing.len()
    }

    /// Returns the next event that is due, changes first. It is in flight until [`published`](Self::published) or
    /// [`publish_failed`](Self::publish_failed).
    pub fn take(&mut self, now: Moment) -> Option<Due> {
        loop {
            let first = |queue: &BTreeSet<(Moment, Arc<str>)>| {
                queue.first().filter(|(due, _)| *due <= now).map(|(_, key)| Arc::clone(key))
            };
            let key = first(&self.urgent).or_else(|| first(&self.scheduled))?;
            let known = self.known.get_mut(&key)?;
            let decision = decide(&known.facts, known.published.as_ref(), known.number, &self.policy, now);
            if !decision.publishes() {
                self.requeue(&key, now);
                continue;
            }
            let due = Due {
                id: Arc::clone(&key),
                reason: decision.reason,
                state: known.facts.state,
                content: known.content.clone(),
                changed: known.facts.changed.filter(|_| decision.reason.is_change()),
            };
            let position = std::mem::replace(&mut known.position, QueuePosition::InFlight);
            self.dequeue(&key, position);
            self.in_flight += 1;
            return Some(due);
        }
    }

    /// Records that the broker has confirmed an event.
    pub fn published(&mut self, id: &str, state: State, now: Moment) {
        if let Some((key, known)) = self.take_in_flight(id) {
            known.published = Some(Published::after(known.published.as_ref(), state, now));
            known.failures = 0;
            self.requeue(&key, now);
        }
    }

    /// Records that an event could not be published. It is published again after a back-off.
    pub fn publish_failed(&mut self, id: &str, now: Moment) {
        let policy = self.policy;
        if let Some((key, known)) = self.take_in_flight(id) {
            known.failures = known.failures.saturating_add(1);
            let due = now.after(resync_slot::with_jitter(RETRY.nominal(known.failures.into()), known.number));
            let decision = decide(&known.facts, known.published.as_ref(), known.number, &policy, now);
            // A change stays urgent: it does not wait behind the scheduled events of the meantime.
            if decision.reason.is_change() {
                known.position = QueuePosition::Urgent(due);
                self.urgent.insert((due, key));
            } else {
                known.position = QueuePosition::Scheduled(due);
                self.scheduled.insert((due, key));
            }
        }
    }

    /// Returns the time at which [`take`](Self::take) returns the next event if nothing changes.
    pub fn next_due(&self) -> Option<Moment> {
        [&self.urgent, &self.scheduled].into_iter().filter_map(|queue| queue.first().map(|(due, _)| *due)).min()
    }

    /// Returns the number of resources.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns true if there is no resource.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the number of resources with unpublished changes.
    pub fn pending(&self) -> usize {
        self.urgent.len() + self.in_flight
    }

    /// Returns the decision about a resource at this time, with the states that it is based on.
    pub fn inspect(&self, id: &str, now: Moment) -> Option<(Decision, Facts, Option<Published>)> {
        let known = self.known.get(id)?;
        let decision = decide(&known.facts, known.published.as_ref(), known.number, &self.policy, now);
        Some((decision, known.facts, known.published))
    }

    /// Decides about a resource and moves it to the queue of the decision.
    fn requeue(&mut self, key: &Arc<str>, now: Moment) -> Decision {
        let no_event = |reason| Decision { reason, next: None };
        let Some(known) = self.known.get_mut(key) else { return no_event(Reason::UpToDate) };
        if known.position == QueuePosition::InFlight {
            return no_event(Reason::AwaitingConfirmation);
        }
        if let Some(published) = &mut known.published {
            // A condition that is not met any more is a change when it is met again.
            published.state.met &= known.facts.state.met;
        }
        let decision = decide(&known.facts, known.published.as_ref(), known.number, &self.policy, now);
        if decision.reason == Reason::UpToDate && known.published.is_none() {
            // A reconciled resource must have been published before.
            known.published = Some(Published::assumed(known.facts.state, now));
        }
        if known.failures > 0
            && decision.publishes()
            && let QueuePosition::Scheduled(next) | QueuePosition::Urgent(next) = known.position
        {
            // The back-off of its last failure is not over.
            if next > now {
                return Decision { reason: Reason::AwaitingBroker, next: Some(next) };
            }
        }
        let before = known.position;
        known.position = match (decision.reason, before) {
            // The order of the first changes is kept.
            (reason, QueuePosition::Urgent(since)) if reason.is_change() => QueuePosition::Urgent(since),
            (reason, _) if reason.is_change() => QueuePosition::Urgent(now),
            (reason, QueuePosition::Scheduled(due)) if reason.publishes() && due <= now => {
                QueuePosition::Scheduled(due)
            }
            (reason, _) if reason.publishes() => QueuePosition::Scheduled(now),
            (_, _) => decision.next.map_or(QueuePosition::Idle, QueuePosition::Scheduled),
        };
        let after = known.position;
        if before != after {
            self.dequeue(key, before);
            match after {
                QueuePosition::Urgent(since) => drop(self.urgent.insert((since, Arc::clone(key)))),
                QueuePosition::Scheduled(due) => drop(self.scheduled.insert((due, Arc::clone(key)))),
                QueuePosition::Idle | QueuePosition::InFlight => {}
            }
        }
        decision
    }

    /// Removes a resource from the queue that it is in.
    fn dequeue(&mut self, key: &Arc<str>, position: QueuePosition) {
        match position {
            QueuePosition::Urgent(since) => drop(self.urgent.remove(&(since, Arc::clone(key)))),
            QueuePosition::Scheduled(due) => drop(self.scheduled.remove(&(due, Arc::clone(key)))),
            QueuePosition::InFlight => self.in_flight = self.in_flight.saturating_sub(1),
            QueuePosition::Idle => {}
        }
    }

    /// Takes a resource out of flight; `None` if it was removed meanwhile.
    fn take_in_flight(&mut self, id: &str) -> Option<(Arc<str>, &mut Known)> {
        let key = self.known.get_key_value(id).map(|(key, _)| Arc::clone(key))?;
        let known = self.known.get_mut(&key).filter(|known| known.position == QueuePosition::InFlight)?;
        known.position = QueuePosition::Idle;
        self.in_flight = self.in_flight.saturating_sub(1);
        Some((key, known))
    }
}
