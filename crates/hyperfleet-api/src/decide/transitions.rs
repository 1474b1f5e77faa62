//! Finds the conditions whose status changed.

use fleet_model::names::client::HYPERFLEET_API;
use fleet_model::{Report, Status, Transition};

use crate::resource::Resource;

/// Returns the transitions of an adapter's own conditions.
pub fn of_report(before: Option<&Report>, after: &Report) -> Vec<Transition> {
    let changed = after.conditions.iter().filter_map(|condition| {
        let from: Option<Status> = before.and_then(|before| before.condition(&condition.kind)).map(|one| one.status);
        (from != Some(condition.status)).then(|| Transition {
            adapter: after.adapter.clone(),
            kind: condition.kind.clone(),
            from,
            to: condition.status,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            observed_generation: after.observed_generation,
            time: condition.last_transition_time,
        })
    });
    changed.collect()
}

/// Returns the transitions of the conditions that the API computes.
pub fn of_conditions(before: Option<&Resource>, after: &Resource) -> Vec<Transition> {
    let changed = after.state.conditions.iter().filter_map(|condition| {
        let from = before.and_then(|before| before.condition(&condition.kind)).map(|one| one.status);
        (from != Some(condition.status)).then(|| Transition {
            adapter: HYPERFLEET_API.to_owned(),
            kind: condition.kind.clone(),
            from,
            to: condition.status,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            observed_generation: condition.observed_generation,
            time: condition.last_transition_time,
        })
    });
    changed.collect()
}
