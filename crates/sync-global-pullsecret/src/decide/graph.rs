//! The machine's graph, found by walking through it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use super::{
    Change, Delays, Disk, Event, Found, Journal, Look, Next, Phase, Rules, Source, Stage, State, Unit, start, step,
};
use crate::content::ContentId;

/// The contents that the walk knows; more would show nothing new.
pub(super) const CONTENTS: [ContentId; 2] = [ContentId([1; 32]), ContentId([2; 32])];

/// Where a process can begin.
pub(super) fn beginnings(restart: bool) -> Vec<State> {
    let rules = Rules { restart, delays: Delays { held: Duration::from_mins(10) } };
    let [first, second] = CONTENTS;
    let change = |stage| Some(Change { to: second, stage });
    let journals = [None, change(Stage::Apply), change(Stage::RollBack)];
    let journals = journals.map(|change| Journal { applied: Some(first), change, failed: None });
    let all = std::iter::once(Journal::default()).chain(journals);
    all.map(|journal| start(rules, journal, Timestamp::UNIX_EPOCH).0).collect()
}

/// What can happen in a phase: the answers to the effect that is under way, and what happens at any time.
pub(super) fn possible(phase: Phase) -> Vec<Event> {
    let [first, second] = CONTENTS.map(|content| Event::Source(Source::Content(content)));
    let mut events = vec![first, second, Event::Source(Source::Missing), Event::FileTouched];
    let units = [Unit::Good, Unit::Bad, Unit::Unreachable];
    match phase {
        Phase::Idle | Phase::Synced | Phase::Stopped => {}
        Phase::Resuming => {
            events.extend([Found::Before, Found::After, Found::Other, Found::Unusable].map(Event::Examined));
        }
        Phase::Looking { .. } => events.extend([Look::AsWanted, Look::Differs, Look::Unusable].map(Event::Looked)),
        Phase::Preparing { .. } | Phase::Writing => {
            events.extend([Disk::Good, Disk::Fault, Disk::Moved].map(Event::Done));
        }
        Phase::Committing { .. } | Phase::Condemning | Phase::RollingBack | Phase::Closing { .. } => {
            events.extend([Disk::Good, Disk::Fault].map(Event::Done));
        }
        Phase::Restarting { .. } | Phase::RestartingBack { .. } => events.extend(units.map(Event::Restarted)),
        Phase::Proving { .. } | Phase::ProvingBack { .. } => events.extend(units.map(Event::Proved)),
        Phase::Waiting { .. } | Phase::Held => events.push(Event::TimeUp),
    }
    events
}

/// Every state that can be reached without a counter going beyond `most`, and every step between them.
pub(super) fn walk(restart: bool, most: u8, mut visit: impl FnMut(&State, Event, &State)) -> BTreeSet<State> {
    let mut open = beginnings(restart);
    let mut seen: BTreeSet<State> = open.iter().copied().collect();
    while let Some(state) = open.pop() {
        for event in possible(state.phase) {
            let (next, _effects) = step(state, event, Timestamp::UNIX_EPOCH);
            visit(&state, event, &next);
            if next.highest_counter() <= most && seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

/// The graph as a Mermaid state diagram. Attempts of the same kind are one state; `Stop`, which ends every state, is left
/// out, and so is what changes nothing.
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
        Phase::Looking { .. } => "Looking",
        Phase::Preparing { .. } => "Preparing",
        Phase::Writing => "Writing",
        Phase::Restarting { .. } => "Restarting",
        Phase::Proving { .. } => "Proving",
        Phase::Committing { .. } => "Committing",
        Phase::Condemning => "Condemning",
        Phase::RollingBack => "RollingBack",
        Phase::RestartingBack { .. } => "RestartingBack",
        Phase::ProvingBack { .. } => "ProvingBack",
        Phase::Closing { .. } => "Closing",
        Phase::Synced => "Synced",
        Phase::Held => "Held",
        Phase::Stopped => "Stopped",
        Phase::Waiting { next } => match next {
            Next::Examine => "WaitToExamine",
            Next::Look => "WaitToLook",
            Next::Repair => "WaitToRepair",
            Next::Restart(_) => "WaitToRestart",
            Next::Prove(_) => "WaitToProve",
            Next::Commit => "WaitToCommit",
            Next::RollBack => "WaitToRollBack",
            Next::RestartBack(_) => "WaitToRestartBack",
            Next::ProveBack(_) => "WaitToProveBack",
        },
    }
}

fn label(event: Event) -> &'static str {
    match event {
        Event::Source(_) => "new content",
        Event::FileTouched => "file touched",
        Event::Examined(Found::Before) => "as before",
        Event::Examined(Found::After) => "as after",
        Event::Examined(Found::Other) => "neither",
        Event::Looked(Look::AsWanted) => "as wanted",
        Event::Looked(Look::Differs) => "differs",
        Event::Examined(Found::Unusable) | Event::Looked(Look::Unusable) => "unreadable",
        Event::Done(Disk::Good) => "done",
        Event::Done(Disk::Fault) => "disk fault",
        Event::Done(Disk::Moved) => "file changed meanwhile",
        Event::Restarted(Unit::Good) => "restarted",
        Event::Proved(Unit::Good) => "stays up",
        Event::Restarted(Unit::Bad) | Event::Proved(Unit::Bad) => "failed",
        Event::Restarted(Unit::Unreachable) | Event::Proved(Unit::Unreachable) => "systemd unreachable",
        Event::TimeUp => "time is up",
        Event::Stop => "stop",
    }
}

impl State {
    fn highest_counter(&self) -> u8 {
        let in_phase = match self.phase {
            Phase::RestartingBack { attempt }
            | Phase::ProvingBack { attempt }
            | Phase::Waiting { next: Next::RestartBack(attempt) | Next::ProveBack(attempt) } => attempt,
            _ => 0,
        };
        let failed = self.journal.failed.map_or(0, |failed| failed.times);
        self.repairs.max(self.faults).max(in_phase).max(failed)
    }
}
