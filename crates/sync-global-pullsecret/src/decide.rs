//! Decides the syncer's next step: from a state and an event to a state and effects.
//!
//! A change of the kubelet's file runs through these phases: compare, prepare (backup and journal), write, restart, verify,
//! commit. If the kubelet does not come up, the change is undone: mark for rollback, roll back, restart, verify, finish
//! the rollback. The journal on disk records at any instruction how far a change has come, so that the next start finishes
//! or undoes it.

mod delays;
mod graph;
mod journal;
mod reasons;
mod state;
mod transitions;

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use crate::reason::Reason;

pub use delays::Delays;
pub use graph::graph;
pub use journal::{Change, Failed, Journal, Stage};
pub use state::{
    Comparison, DiskResult, Effect, Event, FileVersion, MAX_ATTEMPTS, Next, Phase, Rules, SourceState, State,
    UnitResult,
};

/// Returns the first state of a process, given the journal of its predecessor, and the first effects.
pub fn start(rules: Rules, journal: Journal, now: Timestamp) -> (State, Vec<Effect>) {
    let state = State {
        phase: Phase::Idle,
        source: SourceState::Unknown,
        desired: None,
        journal,
        compare_again: false,
        repair_due: false,
        repairs: 0,
        faults: 0,
        unrecorded: false,
        systemd: match journal.change {
            // The content was found to be the cause before.
            Some(Change { stage: Stage::RollBack, .. }) => state::Systemd::Answered,
            _ => state::Systemd::Unknown,
        },
        reason: Reason::Starting,
        since: now,
        rules,
    };
    let mut effects = vec![Effect::Report(Reason::Starting)];
    let (mut state, first) = match journal.change.map(|change| change.stage) {
        None => state.stay(),
        Some(Stage::Apply) => state.enter(Phase::Resuming, Effect::Examine),
        Some(Stage::RollBack) => state.enter(Phase::RollingBack, Effect::RollBack),
    };
    effects.extend(first);
    state.reason = state.reason_now();
    if state.reason != Reason::Starting {
        effects.push(Effect::Report(state.reason));
    }
    (state, effects)
}

/// Returns the state after an event, and the effects to perform. An event that has no meaning in a state changes nothing.
pub fn step(state: State, event: Event, now: Timestamp) -> (State, Vec<Effect>) {
    let before = state.reason;
    let (mut state, mut effects) = state.next(event);
    state.reason = state.reason_now();
    if state.reason != before {
        state.since = now;
        effects.push(Effect::Report(state.reason));
    }
    (state, effects)
}
