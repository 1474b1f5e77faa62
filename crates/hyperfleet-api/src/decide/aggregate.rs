//! Aggregates the reports of all required adapters to conditions: `Reconciled` and its companions.

mod last_known;
mod reconciled;
#[cfg(test)]
mod tests;

use fleet_model::names::condition::{AVAILABLE, SUCCESSFUL_SUFFIX};
use fleet_model::{Condition, Generation, Report, Status};
use jiff::Timestamp;

use super::draft::ConditionDraft;
use super::mapped::{self, MappedCondition};
use crate::resource::Resource;

fleet_model::reasons! {
    /// Reason of an aggregated condition, as HyperFleet's API names it.
    pub enum Reason {
        /// `Reconciled`: every required adapter has reconciled the current generation.
        ReconciledAll,
        /// `Reconciled`: every required adapter has finalized, but active children remain.
        ReconciledWaitingForChildren,
        /// `Reconciled`: some required adapter has not reconciled the current generation.
        ReconciledMissingAdapters,
        /// `LastKnownReconciled`: no required adapter denies the tracked generation.
        AllAdaptersReconciled,
        /// `LastKnownReconciled`: some required adapter has never reported.
        AdaptersMissingReports,
        /// `LastKnownReconciled`: some required adapter reports `Available=False`.
        AdapterReportedNotAvailable,
        /// `LastKnownReconciled`: all required adapters are available, but not at the same generation.
        AdaptersNotAtSameGeneration,
    }
}

/// Returns the conditions of a resource in the order of HyperFleet's API: aggregated, one for each adapter, mapped.
///
/// A kind without required adapters has only mapped conditions.
pub fn aggregate(
    required_adapters: &[String],
    resource: &Resource,
    has_active_children: bool,
    mapped: &[MappedCondition],
) -> Vec<Condition> {
    let evidence = Evidence::of(required_adapters, resource, has_active_children);
    let mut conditions = Vec::new();
    if !required_adapters.is_empty() {
        conditions.push(reconciled::conclude(&evidence));
        conditions.push(last_known::conclude(&evidence));
        add_new(&mut conditions, evidence.counted.iter().filter_map(|report| of_adapter(report, resource)));
    }
    add_new(&mut conditions, mapped::conditions(mapped, resource, &resource.state.conditions));
    conditions
}

/// Returns the type of an adapter's own condition: `my-adapter` becomes `MyAdapterSuccessful`.
pub fn condition_type(adapter: &str) -> String {
    let capitalised = adapter.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    });
    capitalised.chain([SUCCESSFUL_SUFFIX.to_owned()]).collect()
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
    Some(draft.after(&resource.state.conditions, report.last_report_time))
}

/// The facts that are aggregated.
struct Evidence<'a> {
    resource: &'a Resource,
    required: &'a [String],
    /// The considered reports, in the order of the required adapters.
    counted: Vec<&'a Report>,
    has_active_children: bool,
}

impl<'a> Evidence<'a> {
    fn of(required: &'a [String], resource: &'a Resource, has_active_children: bool) -> Self {
        let reports = required.iter().filter_map(|adapter| resource.state.reports.get(adapter));
        // A report of `Unknown`, or of a generation that does not exist yet, counts as none, as in HyperFleet's API.
        let counted = reports
            .filter(|report| report.observed_generation <= resource.generation)
            .filter(|report| report.status(AVAILABLE) != Status::Unknown)
            .collect();
        Self { resource, required, counted, has_active_children }
    }

    /// Returns the considered reports of that generation.
    fn at(&self, generation: Generation) -> impl Iterator<Item = &'a Report> + '_ {
        self.counted.iter().copied().filter(move |report| report.observed_generation == generation)
    }

    /// Returns the time of the last change, which is the time of everything that no report has a time for.
    fn reference_time(&self) -> Timestamp {
        self.resource.updated_time
    }
}

/// Returns the time of the oldest report.
fn oldest<'a>(reports: impl Iterator<Item = &'a Report>) -> Option<Timestamp> {
    reports.map(|report| report.last_report_time).min()
}
