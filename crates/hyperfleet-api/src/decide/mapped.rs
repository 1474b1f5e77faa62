//! Conditions that the configuration maps from the reports: from the evaluated facts to conditions with a history.

use fleet_model::{Condition, Report, Status};
use jiff::Timestamp;

use super::draft::ConditionDraft;
use crate::resource::Resource;

/// A condition as the configuration's expressions compute it, without times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedCondition {
    /// The condition's type.
    pub kind: String,
    /// The computed status.
    pub status: Status,
    /// The computed reason.
    pub reason: Option<String>,
    /// The computed message.
    pub message: Option<String>,
}

/// Returns the reports that mappings consider: those of adapters none of whose conditions is `Unknown`.
pub fn considered(resource: &Resource) -> Vec<&Report> {
    let is_known = |report: &&Report| report.conditions.iter().all(|condition| condition.status != Status::Unknown);
    resource.state.reports.values().filter(is_known).collect()
}

/// Returns the mapped conditions of a resource as evaluated at that time; `previous` gives them their history.
pub fn conditions(
    mapped: &[MappedCondition],
    resource: &Resource,
    previous: &[Condition],
    at: Timestamp,
) -> Vec<Condition> {
    let condition = |mapped: &MappedCondition| {
        let draft = ConditionDraft {
            kind: mapped.kind.clone(),
            status: mapped.status,
            reason: mapped.reason.clone(),
            message: mapped.message.clone(),
            observed_generation: resource.generation,
            last_updated_time: at,
        };
        draft.after(previous, at)
    };
    mapped.iter().map(condition).collect()
}
