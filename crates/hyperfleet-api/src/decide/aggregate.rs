//! What the reports of all required adapters say together: `Reconciled` and its companions.

mod last_known;
mod reconciled;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::mapping::{Mapper, MappingError};
use crate::resource::{Condition, Report, Resource, Status};

/// The condition that says whether the newest wish is fulfilled.
pub const RECONCILED: &str = "Reconciled";
/// The condition that says whether the last wish that was fulfilled still is.
pub const LAST_KNOWN_RECONCILED: &str = "LastKnownReconciled";

/// What adapters report about a living resource.
const AVAILABLE: &str = "Available";
/// What adapters report about a resource that is being deleted.
const FINALIZED: &str = "Finalized";

/// Why an aggregated condition is as it is (`api.md` §5.1, §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `Reconciled`: every required adapter is done with the current generation.
    ReconciledAll,
    /// `Reconciled`: all is cleaned up, but children live.
    ReconciledWaitingForChildren,
    /// `Reconciled`: some required adapter is not done with the current generation.
    ReconciledMissingAdapters,
    /// `LastKnownReconciled`: nothing speaks against the tracked generation.
    AllAdaptersReconciled,
    /// `LastKnownReconciled`: some required adapter has never reported.
    AdaptersMissingReports,
    /// `LastKnownReconciled`: some required adapter says no.
    AdapterReportedNotAvailable,
    /// `LastKnownReconciled`: all say yes, but not about the same generation.
    AdaptersNotAtSameGeneration,
}

/// The conditions of a resource as they follow from its reports, in the order in which they are shown (`api.md` §3, §5).
///
/// A kind without required adapters has no conclusions of its own, only mapped conditions.
pub fn aggregate(
    required_adapters: &[String],
    resource: &Resource,
    has_active_children: bool,
    mapper: Option<&Mapper>,
) -> Result<Vec<Condition>, MappingError> {
    let evidence = Evidence::of(required_adapters, resource, has_active_children);
    let mut conditions = Vec::new();
    if !required_adapters.is_empty() {
        conditions.push(reconciled::conclude(&evidence));
        conditions.push(last_known::conclude(&evidence));
        add_new(&mut conditions, evidence.counted.iter().filter_map(|report| of_adapter(report, resource)));
    }
    if let Some(mapper) = mapper {
        add_new(&mut conditions, mapper.map(resource, &resource.state.conditions)?);
    }
    Ok(conditions)
}

/// The type of an adapter's own condition: `my-adapter` becomes `MyAdapterSuccessful` (`api.md` §5.3).
pub fn condition_type(adapter: &str) -> String {
    let capitalised = adapter.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    });
    capitalised.chain(["Successful".to_owned()]).collect()
}

/// A resource holds one condition a type: the first one stands.
fn add_new(conditions: &mut Vec<Condition>, more: impl IntoIterator<Item = Condition>) {
    for condition in more {
        if !conditions.iter().any(|present| present.kind == condition.kind) {
            conditions.push(condition);
        }
    }
}

/// What one required adapter says of the resource (`api.md` §5.3).
fn of_adapter(report: &Report, resource: &Resource) -> Option<Condition> {
    let available = report.condition(AVAILABLE)?;
    let finding = Finding {
        kind: condition_type(&report.adapter),
        status: available.status,
        reason: available.reason.clone(),
        message: available.message.clone(),
        observed_generation: report.observed_generation,
        last_updated_time: report.last_report_time,
    };
    Some(finding.after(&resource.state.conditions, report.last_report_time))
}

/// What the conclusions rest on.
struct Evidence<'a> {
    resource: &'a Resource,
    required: &'a [String],
    /// The reports that count, in the order of the required adapters.
    counted: Vec<&'a Report>,
    has_active_children: bool,
}

impl<'a> Evidence<'a> {
    fn of(required: &'a [String], resource: &'a Resource, has_active_children: bool) -> Self {
        let reports = required.iter().filter_map(|adapter| resource.state.reports.get(adapter));
        // Saying `Unknown`, or speaking of a generation that is still to come, is the same as not having reported (§5).
        let counted = reports
            .filter(|report| report.observed_generation <= resource.generation)
            .filter(|report| report.status(AVAILABLE) != Status::Unknown)
            .collect();
        Self { resource, required, counted, has_active_children }
    }

    /// The counted reports about that generation.
    fn at(&self, generation: i64) -> impl Iterator<Item = &'a Report> + '_ {
        self.counted.iter().copied().filter(move |report| report.observed_generation == generation)
    }

    /// When the resource last changed: the time of all that no report tells the time of. There is no wall clock here.
    fn reference_time(&self) -> Timestamp {
        self.resource.updated_time
    }
}

/// The oldest observation among reports.
fn oldest<'a>(reports: impl Iterator<Item = &'a Report>) -> Option<Timestamp> {
    reports.map(|report| report.last_report_time).min()
}

/// A condition before its history is known.
pub(super) struct Finding {
    pub(super) kind: String,
    pub(super) status: Status,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) observed_generation: i64,
    pub(super) last_updated_time: Timestamp,
}

impl Finding {
    /// The condition that succeeds the one of its type among `previous`; a new one is as old as `born`.
    pub(super) fn after(self, previous: &[Condition], born: Timestamp) -> Condition {
        let previous = previous.iter().find(|condition| condition.kind == self.kind);
        let unchanged = previous.filter(|previous| previous.status == self.status);
        Condition {
            created_time: previous.map_or(born, |previous| previous.created_time),
            last_transition_time: unchanged.map_or(self.last_updated_time, |previous| previous.last_transition_time),
            last_updated_time: self.last_updated_time,
            observed_generation: self.observed_generation,
            kind: self.kind,
            status: self.status,
            reason: self.reason,
            message: self.message,
        }
    }
}

// === impl Reason ===

impl Reason {
    /// The reason as the contract writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReconciledAll => "ReconciledAll",
            Self::ReconciledWaitingForChildren => "ReconciledWaitingForChildren",
            Self::ReconciledMissingAdapters => "ReconciledMissingAdapters",
            Self::AllAdaptersReconciled => "AllAdaptersReconciled",
            Self::AdaptersMissingReports => "AdaptersMissingReports",
            Self::AdapterReportedNotAvailable => "AdapterReportedNotAvailable",
            Self::AdaptersNotAtSameGeneration => "AdaptersNotAtSameGeneration",
        }
    }
}
