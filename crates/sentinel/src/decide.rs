//! Decides whether a resource needs an event, from its observed state, its last published state, and the time.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use daemon::backoff::Backoff;
use fleet_model::Generation;

use crate::moment::Moment;
use crate::reason::Reason;
use crate::resync_slot;

/// The state that adapters act on: each change of it is published at once. Sets of adapters are bit sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The generation of the desired state.
    pub generation: Generation,
    /// True if the resource is being deleted.
    pub is_deleting: bool,
    /// The adapters that are available at this generation.
    pub available: u64,
    /// The adapters whose `publish_when` is true.
    pub met: u64,
}

/// The observed state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The state that adapters act on.
    pub state: State,
    /// The API's `Reconciled` condition; `None` if the API has no such condition.
    pub reconciled: Option<bool>,
    /// Time of the last change or report, by the API's clock.
    pub changed: Option<Moment>,
    /// True if the resource existed when this process began to read the fleet, so that a predecessor may have published it.
    pub is_inherited: bool,
}

/// The last published state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The state.
    pub state: State,
    /// Time of its publication.
    pub at: Moment,
    /// True if this process has published it; false if it is assumed that a predecessor has, as the resource is reconciled.
    pub is_own: bool,
    /// Number of repeated publications since the last change.
    pub repeats: u8,
    /// Fingerprints of the last published states of this generation.
    recent: [u32; 4],
}

/// The intervals between events of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Time until a resource that is not reconciled is published again; it doubles with each repetition.
    pub min_interval: Duration,
    /// Maximum of that time.
    pub max_interval: Duration,
    /// Interval between events of a reconciled resource.
    pub resync: Duration,
    /// True if the settings have a `publish_when`.
    pub is_conditional: bool,
}

/// The decision about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The reason for an event, or for none.
    pub reason: Reason,
    /// Time of the next decision if the resource does not change; `None` if only a change causes one.
    pub next: Option<Moment>,
}

/// Decides about a resource. `number` is the hash of its id ([`resync_slot::number`]).
pub fn decide(facts: &Facts, last: Option<&Published>, number: u64, policy: &Policy, now: Moment) -> Decision {
    let state = &facts.state;
    if policy.is_conditional && state.met == 0 && !state.is_deleting {
        return Decision { reason: Reason::PublishWhenNotMet, next: None };
    }
    let Some(last) = last else { return decide_unpublished(facts, number, policy, now) };
    if let Some(change) = change(state, last) {
        // Changes are published at once. A state that alternates is a change only the first time; then the back-off applies.
        let is_of_owner = matches!(change, Reason::New | Reason::GenerationChanged | Reason::DeletionRequested);
        if is_of_owner || !last.recent.contains(&fingerprint(state)) {
            return publish(change);
        }
        return at(last.at.after(backoff(last.repeats, number, policy)), change, Reason::BackOff, now);
    }
    if facts.reconciled == Some(false) {
        let due = if last.is_own { last.at.after(backoff(last.repeats, number, policy)) } else { now };
        return at(due, Reason::RepublishDue, Reason::BackOff, now);
    }
    at(next_resync(last, number, policy), Reason::ResyncDue, Reason::UpToDate, now)
}

/// Decides about a resource that this process has not published yet. On startup, reconciled resources are not re-published. A
/// resource without a `Reconciled` condition counts as reconciled if it was there on startup and its last change is longer ago than
/// a resync interval. One that appears later is new whatever the API's clock says.
fn decide_unpublished(facts: &Facts, number: u64, policy: &Policy, now: Moment) -> Decision {
    let is_reconciled = facts.reconciled.unwrap_or_else(|| {
        let is_old = facts.changed.is_some_and(|changed| now.since(changed) > policy.resync);
        facts.is_inherited && is_old && !facts.state.is_deleting
    });
    match (is_reconciled, facts.state.is_deleting) {
        (true, _) => {
            Decision { reason: Reason::UpToDate, next: Some(resync_slot::next_slot_after(now, number, policy.resync)) }
        }
        (false, true) => publish(Reason::DeletionRequested),
        (false, false) => publish(Reason::New),
    }
}

/// Returns the most important change since the last publication.
fn change(state: &State, last: &Published) -> Option<Reason> {
    let before = &last.state;
    let joined = |now: u64, before: u64| now & !before != 0;
    if state.is_deleting && !before.is_deleting {
        Some(Reason::DeletionRequested)
    } else if state.is_deleting != before.is_deleting || state.generation < before.generation {
        // Another resource with the same id.
        Some(Reason::New)
    } else if state.generation > before.generation {
        Some(Reason::GenerationChanged)
    } else if joined(state.met, before.met) {
        Some(Reason::PublishWhenMet)
    } else if joined(state.available, before.available) {
        Some(Reason::DependencyAvailable)
    } else if joined(before.available, state.available) {
        Some(Reason::DependencyUnavailable)
    } else {
        None
    }
}

fn publish(reason: Reason) -> Decision {
    Decision { reason, next: None }
}

fn at(due: Moment, then: Reason, until: Reason, now: Moment) -> Decision {
    if due <= now { publish(then) } else { Decision { reason: until, next: Some(due) } }
}

/// Returns the time until a resource that is not reconciled is published again.
fn backoff(repeats: u8, number: u64, policy: &Policy) -> Duration {
    let backoff = Backoff::doubling(policy.min_interval, policy.max_interval.max(policy.min_interval));
    resync_slot::with_jitter(backoff.nominal(u32::from(repeats) + 1), number)
}

/// Returns the time of the next resync of a reconciled resource.
fn next_resync(last: &Published, number: u64, policy: &Policy) -> Moment {
    let not_before = if last.is_own { last.at.after(policy.min_interval) } else { last.at };
    resync_slot::next_slot_after(not_before, number, policy.resync)
}

/// Returns a number that distinguishes states of one generation; never 0, which is an empty entry.
fn fingerprint(state: &State) -> u32 {
    let mixed = (state.available ^ state.met.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    u32::try_from(mixed).unwrap_or(u32::MAX) | 0x8000_0000
}

// === impl Published ===

impl Published {
    /// Creates the state that a predecessor is assumed to have published.
    pub fn assumed(state: State, at: Moment) -> Self {
        Self { state, at, is_own: false, repeats: 0, recent: [fingerprint(&state), 0, 0, 0] }
    }

    /// Creates the state after another publication.
    pub fn after(before: Option<&Self>, state: State, at: Moment) -> Self {
        let same_generation = before.filter(|before| {
            before.state.generation == state.generation && before.state.is_deleting == state.is_deleting
        });
        let Some(before) = same_generation else {
            return Self { state, at, is_own: true, repeats: 0, recent: [fingerprint(&state), 0, 0, 0] };
        };
        let fingerprint = fingerprint(&state);
        let is_known = before.recent.contains(&fingerprint);
        let [first, second, third, _] = before.recent;
        Self {
            state,
            at,
            is_own: true,
            // A state that alternates counts as a repetition.
            repeats: if is_known { before.repeats.saturating_add(1) } else { 0 },
            recent: if is_known { before.recent } else { [fingerprint, first, second, third] },
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Returns true if an event is to be published.
    pub fn publishes(&self) -> bool {
        self.reason.publishes()
    }

    /// Describes the decision in a sentence. `names` are the adapters of the bits.
    pub fn explain(&self, facts: &Facts, last: Option<&Published>, names: &[Box<str>], now: Moment) -> String {
        let state = &facts.state;
        let mut text = format!("{}: generation {}", self.reason, state.generation);
        let list = |bits: u64| {
            let on = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
            let on: Vec<&str> = on.map(|(_, name)| &**name).collect();
            if on.is_empty() { "none".to_owned() } else { on.join(", ") }
        };
        if state.is_deleting {
            text.push_str(", terminating");
        }
        text.push_str(match facts.reconciled {
            Some(true) => ", reconciled",
            Some(false) => ", not reconciled",
            None => ", without a Reconciled condition",
        });
        // Writing to a String cannot fail, here and below.
        let _infallible = write!(text, "; available at this generation: {}", list(state.available));
        let _infallible = match last {
            None => write!(text, "; not published yet"),
            Some(last) if !last.is_own => write!(text, "; assumed to be published before this process started"),
            Some(last) => {
                let ago = now.since(last.at).as_secs();
                let (generation, available) = (last.state.generation, list(last.state.available));
                write!(text, "; last published {ago} s ago: generation {generation}, available {available}")
            }
        };
        if let Some(next) = self.next {
            let _infallible = write!(text, "; next decision in {} s", next.since(now).as_secs_f64().ceil());
        }
        text
    }
}
