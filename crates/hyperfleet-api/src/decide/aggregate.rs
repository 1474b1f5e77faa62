//! Aggregates the reports of all required adapters to conditions: `Reconciled` and its companions.

mod evidence;
mod last_known;
mod reason;
mod reconciled;
#[cfg(test)]
mod tests;

use fleet_model::names::condition::AVAILABLE;
use fleet_model::{Condition, Report};
use jiff::Timestamp;

use super::draft::ConditionDraft;
use super::mapped::{self, MappedCondition};
use crate::resource::Resource;
use evidence::Evidence;

pub use fleet_model::condition::condition_type;
pub use reason::Reason;

/// Returns the conditions of a resource in the order of HyperFleet's API: aggregated, one for each adapter, mapped. `at` is the
/// time of the evaluation, which only mapped conditions have.
///
/// A kind without required adapters has only mapped conditions.
pub fn aggregate(
    required_adapters: &[String],
    resource: &Resource,
    has_active_children: bool,
    mapped: &[MappedCondition],
    at: Timestamp,
) -> Vec<Condition> {
    let evidence = Evidence::of(required_adapters, resource, has_active_children);
    let mut conditions = Vec::new();
    if !required_adapters.is_empty() {
        conditions.push(reconciled::conclude(&evidence));
        conditions.push(last_known::conclude(&evidence));
        add_new(&mut conditions, evidence.counted.iter().filter_map(|report| of_adapter(report, resource)));
    }
    add_new(&mut conditions, mapped::conditions(mapped, resource, &resource.state.conditions, at));
    conditions
}

/// Adds conditions of types that are not present: a resource has one condition of each type.
fn add_new(conditions: &mut Vec<Condition>, more: impl IntoIterator<Item = Condition>) {
    for condition in more {
        if !conditions.iter().any(|present| present.kind == condition.kind) {
            conditions.push(condition);
        }
    }
}

/// Returns the condition that repeats what one required adapter reports.
fn of_adapter(report: &Report, resource: &Resource) -> Option<Condition> {
    let available = report.condition(AVAILABLE)?;
    let draft = ConditionDraft {
        kind: condition_type(&report.adapter),
        status: available.status,
        reason: available.reason.clone(),
        message: available.message.clone(),
        observed_generation: report.observed_generation,
        last_updated_time: report.last_report_time,
    };
    // It exists, as in HyperFleet's API, since the last change of the resource, whenever the report came.
    Some(draft.after(&resource.state.conditions, resource.updated_time))
}
