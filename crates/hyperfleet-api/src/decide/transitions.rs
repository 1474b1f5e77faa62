//! Finds the conditions whose status or reason changed.

use fleet_model::names::client::HYPERFLEET_API;
use fleet_model::{Report, Transition};

use crate::resource::Resource;

/// Returns the transitions of an adapter's own conditions. Where only the reason changed, `from` is `to`.
pub fn of_report(before: Option<&Report>, after: &Report) -> Vec<Transition> {
    let changed = after.conditions.iter().filter_map(|condition| {
        let before = before.and_then(|before| before.condition(&condition.kind));
        let from = before.map(|before| before.status);
        let is_new_status = from != Some(condition.status);
        let is_new_reason = before.is_some_and(|before| before.reason != condition.reason);
        (is_new_status || is_new_reason).then(|| Transition {
            adapter: after.adapter.clone(),
            kind: condition.kind.clone(),
            from,
            to: condition.status,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            observed_generation: after.observed_generation,
            time: if is_new_status { condition.last_transition_time } else { after.last_report_time },
        })
    });
    changed.collect()
}

/// Returns the transitions of the conditions that the API computes. Where only the reason changed, `from` is `to`.
pub fn of_conditions(before: Option<&Resource>, after: &Resource) -> Vec<Transition> {
    let changed = after.state.conditions.iter().filter_map(|condition| {
        let before = before.and_then(|before| before.condition(&condition.kind));
        let from = before.map(|before| before.status);
        let is_new_status = from != Some(condition.status);
        let is_new_reason = before.is_some_and(|before| before.reason != condition.reason);
        (is_new_status || is_new_reason).then(|| Transition {
            adapter: HYPERFLEET_API.to_owned(),
            kind: condition.kind.clone(),
            from,
            to: condition.status,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            observed_generation: condition.observed_generation,
            time: if is_new_status { condition.last_transition_time } else { condition.reason_since_time },
        })
    });
    changed.collect()
}
