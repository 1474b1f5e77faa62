//! Whether a resource needs an event now, and why: from what was read of it, what it was last told, and the time.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use daemon::backoff::Backoff;

use crate::moment::Moment;
use crate::reason::Reason;
use crate::spread;

/// What adapters look at: when it changes, they need to know at once. Members of sets are bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Counts what is wanted.
    pub generation: i64,
    /// Whether its deletion was asked for.
    pub is_deleting: bool,
    /// The adapters that are available at this generation.
    pub available: u64,
    /// The adapters whose `publish_when` is true.
    pub met: u64,
}

/// What was read of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What adapters look at.
    pub state: State,
    /// Whether the API says that it is reconciled; `None` where the API says nothing about that.
    pub reconciled: Option<bool>,
    /// When it last changed, or was last reported on.
    pub changed: Option<Moment>,
}

/// What adapters were last told of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The state that they know.
    pub state: State,
    /// Since when.
    pub at: Moment,
    /// Whether we have told them; else a predecessor must have, as they are done with it.
    pub by_us: bool,
    /// How often they were told the same again since it last changed.
    pub repeats: u8,
    /// The last states of this generation that they were told, by their marks.
    seen: [u32; 4],
}

/// How often a resource may get an event, and must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What is not reconciled gets the same event again after this time, and each time after twice the time.
    pub gap: Duration,
    /// But never later than this.
    pub longest_gap: Duration,
    /// What is reconciled gets an event this often.
    pub resync: Duration,
    /// Whether there is a `publish_when`.
    pub is_conditional: bool,
}

/// Whether a resource needs an event now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Why, or why not.
    pub reason: Reason,
    /// When to look again if nothing happens; `None`: not before something happens.
    pub next: Option<Moment>,
}

/// Decides. `number` is that of the resource's id ([`spread::number`]).
pub fn decide(facts: &Facts, told: Option<&Told>, number: u64, policy: &Policy, now: Moment) -> Decision {
    let state = &facts.state;
    if policy.is_conditional && state.met == 0 && !state.is_deleting {
        return Decision { reason: Reason::PublishWhenNotMet, next: None };
    }
    let Some(told) = told else { return first_sight(facts, number, policy, now) };
    if let Some(news) = news(state, told) {
        // News are told at once. What goes to and fro is news only the first time; after that it keeps to the gap.
        let is_the_owners = matches!(news, Reason::New | Reason::GenerationChanged | Reason::DeletionRequested);
        if is_the_owners || !told.seen.contains(&mark(state)) {
            return publish(news);
        }
        return at(told.at.after(wait(told.repeats, number, policy)), news, Reason::SuppressedByGap, now);
    }
    if facts.reconciled == Some(false) {
        let due = if told.by_us { told.at.after(wait(told.repeats, number, policy)) } else { now };
        return at(due, Reason::NotReconciledGapPassed, Reason::SuppressedByGap, now);
    }
    at(turn(told, number, policy), Reason::ResyncDue, Reason::UpToDate, now)
}

/// What is done with is not told again because we have just begun; what nobody says anything about counts as done with
/// if its last change is long ago.
fn first_sight(facts: &Facts, number: u64, policy: &Policy, now: Moment) -> Decision {
    let is_settled = facts.reconciled.unwrap_or_else(|| {
        facts.changed.is_some_and(|changed| now.since(changed) > policy.resync) && !facts.state.is_deleting
    });
    match (is_settled, facts.state.is_deleting) {
        (true, _) => Decision { reason: Reason::UpToDate, next: Some(spread::turn_after(now, number, policy.resync)) },
        (false, true) => publish(Reason::DeletionRequested),
        (false, false) => publish(Reason::New),
    }
}

/// What has changed since adapters were told, in the order of its weight.
fn news(state: &State, told: &Told) -> Option<Reason> {
    let before = &told.state;
    let joined = |now: u64, before: u64| now & !before != 0;
    if state.is_deleting && !before.is_deleting {
        Some(Reason::DeletionRequested)
    } else if state.is_deleting != before.is_deleting || state.generation < before.generation {
        // Another resource under the same id.
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

/// The time until what is not reconciled is told again.
fn wait(repeats: u8, number: u64, policy: &Policy) -> Duration {
    let backoff = Backoff::doubling(policy.gap, policy.longest_gap.max(policy.gap));
    spread::stretch(backoff.nominal(u32::from(repeats) + 1), number)
}

/// The next turn of a resource that is done with.
fn turn(told: &Told, number: u64, policy: &Policy) -> Moment {
    let not_before = if told.by_us { told.at.after(policy.gap) } else { told.at };
    spread::turn_after(not_before, number, policy.resync)
}

/// A number that tells states of one generation apart; never 0, which stands for none.
fn mark(state: &State) -> u32 {
    let mixed = (state.available ^ state.met.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    u32::try_from(mixed).unwrap_or(u32::MAX) | 0x8000_0000
}

// === impl Told ===

impl Told {
    /// A predecessor has told this.
    pub fn by_predecessor(state: State, at: Moment) -> Self {
        Self { state, at, by_us: false, repeats: 0, seen: [mark(&state), 0, 0, 0] }
    }

    /// What stands after an event of this state.
    pub fn after(before: Option<&Self>, state: State, at: Moment) -> Self {
        let same_generation = before.filter(|before| {
            before.state.generation == state.generation && before.state.is_deleting == state.is_deleting
        });
        let Some(before) = same_generation else {
            return Self { state, at, by_us: true, repeats: 0, seen: [mark(&state), 0, 0, 0] };
        };
        let mark = mark(&state);
        let is_known = before.seen.contains(&mark);
        let [first, second, third, _] = before.seen;
        Self {
            state,
            at,
            by_us: true,
            // To and fro is a repetition too.
            repeats: if is_known { before.repeats.saturating_add(1) } else { 0 },
            seen: if is_known { before.seen } else { [mark, first, second, third] },
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Whether to publish.
    pub fn publishes(&self) -> bool {
        self.reason.publishes()
    }

    /// The decision in a sentence. `names` are those of the adapters' bits.
    pub fn explain(&self, facts: &Facts, told: Option<&Told>, names: &[Box<str>], now: Moment) -> String {
        let state = &facts.state;
        let mut text = format!("{}: generation {}", self.reason, state.generation);
        let list = |bits: u64| {
            let on = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
            let on: Vec<&str> = on.map(|(_, name)| &**name).collect();
            if on.is_empty() { "none".to_owned() } else { on.join(", ") }
        };
        if state.is_deleting {
            text.push_str(", being deleted");
        }
        text.push_str(match facts.reconciled {
            Some(true) => ", reconciled",
            Some(false) => ", not reconciled",
            None => ", without a word about being reconciled",
        });
        // Writing to a String cannot fail, here and below.
        let _infallible = write!(text, "; available at it: {}", list(state.available));
        let _infallible = match told {
            None => write!(text, "; not told yet"),
            Some(told) if !told.by_us => write!(text, "; taken to be told before we began"),
            Some(told) => {
                let ago = now.since(told.at).as_secs();
                let (generation, available) = (told.state.generation, list(told.state.available));
                write!(text, "; last told {ago} s ago: generation {generation}, available {available}")
            }
        };
        if let Some(next) = self.next {
            let _infallible = write!(text, "; next look in {} s", next.since(now).as_secs_f64().ceil());
        }
        text
    }
}
