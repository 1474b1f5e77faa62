//! All resources that are known, what each was last told, and whose turn is next: the loop without its wires.
//!
//! Time is an argument here, so a day of a fleet is simulated in seconds.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use daemon::backoff::Backoff;

use crate::decide::{Decision, Facts, Policy, State, Told, decide};
use crate::moment::Moment;
use crate::reason::Reason;
use crate::sighting::{Content, Sighting};
use crate::spread;

/// Back-off of a resource whose event the broker refused. Short, as the circuit breaker limits the load on the broker.
const REFUSED: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(5));

/// All resources that are known.
#[derive(Debug)]
pub struct Fleet {
    policy: Policy,
    known: BTreeMap<Arc<str>, Known>,
    /// Those that have news, by since when, or by when they are tried again: they come first.
    urgent: BTreeSet<(Moment, Arc<str>)>,
    /// When to look again at the others.
    turns: BTreeSet<(Moment, Arc<str>)>,
    in_flight: usize,
    /// Counts the times that the whole fleet was read.
    round: u32,
    /// Whether it is being read now.
    is_reading: bool,
    /// What has gone since the round began: a page may still show it.
    gone: BTreeSet<Arc<str>>,
}

/// By which way a resource was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// By the change stream, which tells things in the order in which they happen.
    Stream,
    /// From a page of a list, which may be older than what the stream has told meanwhile.
    Page,
}

/// What is known of one resource.
#[derive(Debug)]
struct Known {
    number: u64,
    facts: Facts,
    content: Content,
    told: Option<Told>,
    place: Place,
    /// The last round in which it was seen.
    round: u32,
    /// How often in a row the broker did not take its event.
    refusals: u8,
}

/// Where a resource waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no queue.
    Nowhere,
    /// Among those with news.
    Urgent(Moment),
    /// Among the others.
    Turn(Moment),
    /// Its event is on the way.
    Flight,
}

/// An event that is to be published now.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// Whose.
    pub id: Arc<str>,
    /// Why.
    pub reason: Reason,
    /// The state that it tells.
    pub state: State,
    /// What it says.
    pub content: Content,
    /// When that state came to be, if that is news.
    pub changed: Option<Moment>,
}

impl Fleet {
    /// Knows nothing yet.
    pub fn new(policy: Policy) -> Self {
        let (known, urgent, turns) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { policy, known, urgent, turns, in_flight: 0, round: 1, is_reading: false, gone: BTreeSet::new() }
    }

    /// Takes note of a resource as it was read. `None` if it is older than what is known already, and changes nothing.
    pub fn observe(&mut self, id: &str, sighting: Sighting, source: Source, now: Moment) -> Option<Decision> {
        let Sighting { facts, content } = sighting;
        if source == Source::Stream {
            self.gone.remove(id);
        } else if self.gone.contains(id) {
            return None;
        }
        let round = self.round;
        let Some(key) = self.known.get_key_value(id).map(|(key, _)| Arc::clone(key)) else {
            let (key, number) = (Arc::<str>::from(id), spread::number(id));
            let known = Known { number, facts, content, told: None, place: Place::Nowhere, round, refusals: 0 };
            self.known.insert(Arc::clone(&key), known);
            return Some(self.place(&key, now));
        };
        if let Some(known) = self.known.get_mut(&key) {
            known.round = round;
            // By the stream's order, not by the times: the clocks of two API servers may differ.
            let is_old = facts.changed < known.facts.changed && facts.state.generation <= known.facts.state.generation;
            if source == Source::Page && is_old {
                return None;
            }
            known.facts = facts;
            known.content = content;
        }
        Some(self.place(&key, now))
    }

    /// Forgets a resource that is gone.
    pub fn gone(&mut self, id: &str) {
        if let Some((key, known)) = self.known.remove_entry(id) {
            self.leave(&key, known.place);
            if self.is_reading {
                self.gone.insert(key);
            }
        }
    }

    /// The whole fleet is about to be read.
    pub fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
        self.is_reading = true;
        self.gone.clear();
    }

    /// The whole fleet was not read after all: the round does not count, and what was not seen in it is not missing.
    pub fn abandon_round(&mut self) {
        if std::mem::take(&mut self.is_reading) {
            self.round = self.round.wrapping_sub(1);
            self.gone.clear();
        }
    }

    /// The whole fleet was read. What was not seen is gone; unless it `may_have_slipped`, then it is gone if it was not
    /// seen in the round before either.
    pub fn end_round(&mut self, may_have_slipped: bool) -> usize {
        let oldest = self.round.wrapping_sub(u32::from(may_have_slipped));
        let is_gone = |known: &Known| oldest.wrapping_sub(known.round).cast_signed() > 0;
        let gone: Vec<Arc<str>> =
            self.known.iter().filter(|(_, known)| is_gone(known)).map(|(id, _)| Arc::clone(id)).collect();
        for id in &gone {
            self.gone(id);
        }
        self.is_reading = false;
        self.gone.clear();
        gone.len()
    }

    /// The next event that is to be published, news first. It counts as on the way until [`told`](Self::told) or
    /// [`refused`](Self::refused).
    pub fn take(&mut self, now: Moment) -> Option<Due> {
        loop {
            let first = |queue: &BTreeSet<(Moment, Arc<str>)>| {
                queue.first().filter(|(due, _)| *due <= now).map(|(_, key)| Arc::clone(key))
            };
            let key = first(&self.urgent).or_else(|| first(&self.turns))?;
            let known = self.known.get_mut(&key)?;
            let decision = decide(&known.facts, known.told.as_ref(), known.number, &self.policy, now);
            if !decision.publishes() {
                self.place(&key, now);
                continue;
            }
            let due = Due {
                id: Arc::clone(&key),
                reason: decision.reason,
                state: known.facts.state,
                content: known.content.clone(),
                changed: known.facts.changed.filter(|_| decision.reason.is_news()),
            };
            let place = std::mem::replace(&mut known.place, Place::Flight);
            self.leave(&key, place);
            self.in_flight += 1;
            return Some(due);
        }
    }

    /// The broker has an event: its state is told.
    pub fn told(&mut self, id: &str, state: State, now: Moment) {
        if let Some((key, known)) = self.landed(id) {
            known.told = Some(Told::after(known.told.as_ref(), state, now));
            known.refusals = 0;
            self.place(&key, now);
        }
    }

    /// The broker did not take an event. The resource stays as untold as it was, and comes again.
    pub fn refused(&mut self, id: &str, now: Moment) {
        let policy = self.policy;
        if let Some((key, known)) = self.landed(id) {
            known.refusals = known.refusals.saturating_add(1);
            let due = now.after(spread::stretch(REFUSED.nominal(known.refusals.into()), known.number));
            let decision = decide(&known.facts, known.told.as_ref(), known.number, &policy, now);
            // What is news stays so: it does not queue behind all turns that have come meanwhile.
            if decision.reason.is_news() {
                known.place = Place::Urgent(due);
                self.urgent.insert((due, key));
            } else {
                known.place = Place::Turn(due);
                self.turns.insert((due, key));
            }
        }
    }

    /// When [`take`](Self::take) has something next, if nothing happens.
    pub fn next_turn(&self) -> Option<Moment> {
        [&self.urgent, &self.turns].into_iter().filter_map(|queue| queue.first().map(|(due, _)| *due)).min()
    }

    /// How many resources are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// How many have news that adapters were not told of yet.
    pub fn pending(&self) -> usize {
        self.urgent.len() + self.in_flight
    }

    /// What would be decided about a resource, and on what.
    pub fn look(&self, id: &str, now: Moment) -> Option<(Decision, Facts, Option<Told>)> {
        let known = self.known.get(id)?;
        let decision = decide(&known.facts, known.told.as_ref(), known.number, &self.policy, now);
        Some((decision, known.facts, known.told))
    }

    /// Decides anew, and puts a resource where it belongs.
    fn place(&mut self, key: &Arc<str>, now: Moment) -> Decision {
        let quiet = |reason| Decision { reason, next: None };
        let Some(known) = self.known.get_mut(key) else { return quiet(Reason::UpToDate) };
        if known.place == Place::Flight {
            return quiet(Reason::AwaitingConfirmation);
        }
        if let Some(told) = &mut known.told {
            // What is not met any more is news when it is met again.
            told.state.met &= known.facts.state.met;
        }
        let decision = decide(&known.facts, known.told.as_ref(), known.number, &self.policy, now);
        if decision.reason == Reason::UpToDate && known.told.is_none() {
            // Who is done with it must have been told.
            known.told = Some(Told::by_predecessor(known.facts.state, now));
        }
        if known.refusals > 0
            && decision.publishes()
            && let Place::Turn(next) | Place::Urgent(next) = known.place
        {
            // It waits for the broker.
            if next > now {
                return Decision { reason: Reason::AwaitingBroker, next: Some(next) };
            }
        }
        let before = known.place;
        known.place = match (decision.reason, before) {
            // Whoever has waited longest stays first.
            (reason, Place::Urgent(since)) if reason.is_news() => Place::Urgent(since),
            (reason, _) if reason.is_news() => Place::Urgent(now),
            (reason, Place::Turn(due)) if reason.publishes() && due <= now => Place::Turn(due),
            (reason, _) if reason.publishes() => Place::Turn(now),
            (_, _) => decision.next.map_or(Place::Nowhere, Place::Turn),
        };
        let after = known.place;
        if before != after {
            self.leave(key, before);
            match after {
                Place::Urgent(since) => drop(self.urgent.insert((since, Arc::clone(key)))),
                Place::Turn(due) => drop(self.turns.insert((due, Arc::clone(key)))),
                Place::Nowhere | Place::Flight => {}
            }
        }
        decision
    }

    /// Takes a resource off the queue that it is in.
    fn leave(&mut self, key: &Arc<str>, place: Place) {
        match place {
            Place::Urgent(since) => drop(self.urgent.remove(&(since, Arc::clone(key)))),
            Place::Turn(due) => drop(self.turns.remove(&(due, Arc::clone(key)))),
            Place::Flight => self.in_flight = self.in_flight.saturating_sub(1),
            Place::Nowhere => {}
        }
    }

    /// A resource whose event is not on the way any more; `None` if it has gone meanwhile.
    fn landed(&mut self, id: &str) -> Option<(Arc<str>, &mut Known)> {
        let key = self.known.get_key_value(id).map(|(key, _)| Arc::clone(key))?;
        let known = self.known.get_mut(&key).filter(|known| known.place == Place::Flight)?;
        known.place = Place::Nowhere;
        self.in_flight = self.in_flight.saturating_sub(1);
        Some((key, known))
    }
}
