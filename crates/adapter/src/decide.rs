//! Decides the actions and the conditions for one resource.
//!
//! Every decision considers the whole state, whatever has caused the pass: the resource, its runs, the last report. One run
//! succeeds per generation and per revision of a referenced pull secret. A pull secret that is stored stays stored when a
//! precondition fails later.

mod apply;
mod attempts;
mod copies;
mod criteria;
mod deletion;
mod destination;
mod facts;
mod plan;
mod retry;
mod stored;
#[cfg(test)]
mod tests;

use crate::config::Checked;

pub use apply::REPAIRS;
pub use criteria::{Unmet, unmet};
pub use destination::{mirror_copy, stored_copy};
pub use facts::{Facts, InputState, OutputState, PullSecretSource, Purpose, Run, SOURCE, StoredDrift};
pub use plan::{Action, Plan, PlannedCondition, StartRun};
pub use stored::{FindingKind, Reported, StoreFinding};

/// Decides the actions and the conditions for a resource.
pub fn decide(config: &Checked, facts: &Facts<'_>) -> Plan {
    let (purpose, mut plan) = if facts.resource.is_deleting() {
        (Purpose::Delete, deletion::decide(config, facts))
    } else {
        (Purpose::Apply, copies::track(config, facts, apply::decide(config, facts)))
    };
    destination::note_folder(config, facts, &mut plan);
    let is_starting = plan.starts_run().is_some_and(|run| run.purpose == purpose);
    attempts::record(facts, purpose, is_starting, &mut plan.data);
    plan
}
