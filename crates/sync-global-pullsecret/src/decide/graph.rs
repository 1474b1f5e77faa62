//! The graph of the state machine, found by walking through it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use super::delays::Delays;
use super::journal::{Change, Journal, Stage};
use super::state::{Comparison, DiskResult, Event, FileVersion, Next, Phase, Rules, SourceState, State, UnitResult};
use super::{start, step};
use crate::content::ContentId;

/// The contents that the walk uses; more would reach no other phases.
pub(super) const CONTENTS: [ContentId; 2] = [ContentId([1; 32]), ContentId([2; 32])];

/// Returns the states in which a process can begin.
pub(super) fn initial_states(restart: bool) -> Vec<State> {
    let rules = Rules { restart, delays: Delays { failed_content: Duration::from_mins(10) } };
    let [first, second] = CONTENTS;
    let change = |stage| Some(Change { to: second, stage });
    let journals = [None, change(Stage::Apply), change(Stage::RollBack)];
    let journals = journals.map(|change| Journal { applied: Some(first), change, failed: None });
    let all = std::iter::once(Journal::default()).chain(journals);
    all.map(|journal| start(rules, journal, Timestamp::UNIX_EPOCH).0).collect()
}

/// Returns the events that can occur in a phase: the answers to the effect under way, and those that occur at any time.
pub(super) fn possible_events(phase: Phase) -> Vec<Event> {
    let [first, second] = CONTENTS.map(|content| Event::Source(SourceState::Content(content)));
    let mut events = vec![first, second, Event::Source(SourceState::Missing), Event::FileChanged];
    let units = [UnitResult::Succeeded, UnitResult::Failed, UnitResult::Unreachable];
    match phase {
        Phase::Idle | Phase::Synced | Phase::Stopped => {}
        Phase::Resuming => {
            events.extend(
                [FileVersion::Before, FileVersion::After, FileVersion::Other, FileVersion::Unreadable]
                    .map(Event::Examined),
            );
        }
        Phase::Comparing { .. } => {
            events.extend([Comparison::Equal, Comparison::Different, Comparison::Unreadable].map(Event::Compared));
        }
        Phase::Preparing { .. } | Phase::Writing => {
            events.extend([DiskResult::Succeeded, DiskResult::Failed, DiskResult::FileChanged].map(Event::DiskDone));
        }
        Phase::Committing { .. } | Phase::MarkingForRollback | Phase::RollingBack | Phase::FinishingRollback { .. } => {
            events.extend([DiskResult::Succeeded, DiskResult::Failed].map(Event::DiskDone));
        }
        Phase::Restarting { .. } | Phase::RestartingRolledBack { .. } => events.extend(units.map(Event::Restarted)),
        Phase::Verifying { .. } | Phase::VerifyingRolledBack { .. } => events.extend(units.map(Event::Verified)),
        Phase::Waiting { .. } | Phase::BackingOff => events.push(Event::TimerFired),
    }
    events
}

/// Visits every step between the states that can be reached without a counter above `max_count`; returns those states.
pub(super) fn walk(restart: bool, max_count: u8, mut visit: impl FnMut(&State, Event, &State)) -> BTreeSet<State> {
    let mut open = initial_states(restart);
    let mut reached: BTreeSet<State> = open.iter().copied().collect();
    while let Some(state) = open.pop() {
        for event in possible_events(state.phase) {
            let (next, _effects) = step(state, event, Timestamp::UNIX_EPOCH);
            visit(&state, event, &next);
            if next.highest_counter() <= max_count && reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// Returns the graph as a Mermaid state diagram. Attempts of the same kind are one state. `Stop`, which ends every state,
/// and steps within a phase are left out.
pub fn graph() -> String {
    let mut edges: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    walk(true, 4, |from, event, to| {
        let (from, to) = (name(from.phase), name(to.phase));
        if from != to {
            edges.entry((from, to)).or_default().insert(label(event));
        }
    });
    let mut text = "stateDiagram-v2\n    [*] --> Idle\n    [*] --> Resuming: change unfinished\n    [*] --> \
                    RollingBack: roll-back unfinished\n"
        .to_owned();
    for ((from, to), labels) in edges {
        let labels: Vec<&str> = labels.into_iter().collect();
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "    {from} --> {to}: {}", labels.join(", "));
    }
    text
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Idle => "Idle",
        Phase::Resuming => "Resuming",
        Phase::Comparing { .. } => "Comparing",
        Phase::Preparing { .. } => "Preparing",
        Phase::Writing => "Writing",
        Phase::Restarting { .. } => "Restarting",
        Phase::Verifying { .. } => "Verifying",
        Phase::Committing { .. } => "Committing",
        Phase::MarkingForRollback => "MarkingForRollback",
        Phase::RollingBack => "RollingBack",
        Phase::RestartingRolledBack { .. } => "RestartingRolledBack",
        Phase::VerifyingRolledBack { .. } => "VerifyingRolledBack",
        Phase::FinishingRollback { .. } => "FinishingRollback",
        Phase::Synced => "Synced",
        Phase::BackingOff => "BackingOff",
        Phase::Stopped => "Stopped",
        Phase::Waiting { next } => match next {
            Next::Examine => "WaitToExamine",
            Next::Compare => "WaitToCompare",
            Next::Repair => "WaitToRepair",
            Next::Restart(_) => "WaitToRestart",
            Next::Verify(_) => "WaitToVerify",
            Next::Commit(_) => "WaitToCommit",
            Next::RollBack => "WaitToRollBack",
            Next::RestartRolledBack(_) => "WaitToRestartRolledBack",
            Next::VerifyRolledBack(_) => "WaitToVerifyRolledBack",
        },
    }
}

fn label(event: Event) -> &'static str {
    match event {
        Event::Source(_) => "new content",
        Event::FileChanged => "file changed",
        Event::Examined(FileVersion::Before) => "file from before",
        Event::Examined(FileVersion::After) => "file from after",
        Event::Examined(FileVersion::Other) => "another file",
        Event::Compared(Comparison::Equal) => "equal",
        Event::Compared(Comparison::Different) => "different",
        Event::Examined(FileVersion::Unreadable) | Event::Compared(Comparison::Unreadable) => "unreadable",
        Event::DiskDone(DiskResult::Succeeded) => "done",
        Event::DiskDone(DiskResult::Failed) => "disk failed",
        Event::DiskDone(DiskResult::FileChanged) => "file changed meanwhile",
        Event::Restarted(UnitResult::Succeeded) => "restarted",
        Event::Verified(UnitResult::Succeeded) => "stays up",
        Event::Restarted(UnitResult::Failed) | Event::Verified(UnitResult::Failed) => "failed",
        Event::Restarted(UnitResult::Unreachable) | Event::Verified(UnitResult::Unreachable) => "systemd unreachable",
        Event::TimerFired => "timer fired",
        Event::Stop => "stop",
    }
}

impl State {
    fn highest_counter(&self) -> u8 {
        let in_phase = match self.phase {
            Phase::RestartingRolledBack { attempt }
            | Phase::VerifyingRolledBack { attempt }
            | Phase::Waiting { next: Next::RestartRolledBack(attempt) | Next::VerifyRolledBack(attempt) } => attempt,
            _ => 0,
        };
        let failed = self.journal.failed.map_or(0, |failed| failed.times);
        self.repairs.max(self.faults).max(in_phase).max(failed)
    }
}
