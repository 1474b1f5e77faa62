//! The condition `Reconciled`: the current generation is reconciled, or the deletion complete.

use std::collections::BTreeSet;

use fleet_model::names::condition::{AVAILABLE, FINALIZED, RECONCILED};
use fleet_model::{Condition, Status};

use super::evidence::{Evidence, oldest};
use super::reason::Reason;
use crate::decide::draft::ConditionDraft;

/// Returns the condition `Reconciled`.
pub(super) fn conclude(evidence: &Evidence<'_>) -> Condition {
    let resource = evidence.resource;
    let (status, reason, message) = evaluate(evidence);
    let draft = ConditionDraft {
        kind: RECONCILED.to_owned(),
        status,
        reason: Some(reason.as_str().to_owned()),
        message: Some(message),
        observed_generation: resource.generation,
        last_updated_time: oldest(evidence.at(resource.generation)).unwrap_or(evidence.reference_time()),
    };
    let condition = draft.after(&resource.state.conditions, evidence.reference_time());
    // The condition became false with the new generation, not with a report of it.
    let outdated = resource.condition(RECONCILED).is_some_and(|previous| {
        previous.status == Status::True
            && status == Status::False
            && previous.observed_generation != resource.generation
    });
    if !outdated {
        return condition;
    }
    let since = evidence.reference_time();
    Condition { last_transition_time: since, reason_since_time: since, ..condition }
}

fn evaluate(evidence: &Evidence<'_>) -> (Status, Reason, String) {
    let expected = if evidence.resource.is_terminating() { FINALIZED } else { AVAILABLE };
    let done: BTreeSet<&str> = evidence
        .at(evidence.resource.generation)
        .filter(|report| report.status(expected) == Status::True)
        .map(|report| report.adapter.as_str())
        .collect();
    let reporting: BTreeSet<&str> = evidence.counted.iter().map(|report| report.adapter.as_str()).collect();
    let missing: BTreeSet<&str> =
        evidence.required.iter().map(String::as_str).filter(|adapter| !done.contains(adapter)).collect();

    if evidence.required.is_empty() || !missing.is_empty() {
        let message = format!(
            "Required adapters not reporting {expected}=True: [{}]. Currently reporting: [{}]",
            join(missing),
            join(reporting)
        );
        (Status::False, Reason::ReconciledMissingAdapters, message)
    } else if evidence.resource.is_terminating() && evidence.has_active_children {
        let message = "Deletion in progress. All required adapters reported Finalized=True \
                       but child resources still exist";
        (Status::False, Reason::ReconciledWaitingForChildren, message.to_owned())
    } else {
        let message = "All required adapters reported Available=True or Finalized=True at the current generation";
        (Status::True, Reason::ReconciledAll, message.to_owned())
    }
}

fn join(names: BTreeSet<&str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}
