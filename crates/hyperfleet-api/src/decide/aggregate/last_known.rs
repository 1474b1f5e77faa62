//! The condition `LastKnownReconciled`: the last reconciled generation still is, while a newer one is being reconciled.

use fleet_model::names::condition::{AVAILABLE, LAST_KNOWN_RECONCILED};
use fleet_model::{Condition, Generation, Report, Status};
use jiff::Timestamp;

use super::evidence::{Evidence, oldest};
use super::reason::Reason;
use crate::decide::draft::ConditionDraft;

/// The considered reports, taken together.
#[derive(Clone, Copy)]
enum Reports {
    /// No adapter is required.
    NoneRequired,
    /// Some required adapter has not reported.
    Incomplete,
    /// All are available at this one generation.
    Uniform(Generation),
    /// All are available, at different generations.
    Mixed,
    /// All have reported, and some are not available.
    SomeFalse,
}

/// Returns the condition `LastKnownReconciled`.
pub(super) fn conclude(evidence: &Evidence<'_>) -> Condition {
    let previous = evidence.resource.condition(LAST_KNOWN_RECONCILED);
    let reports = Reports::of(evidence);
    let status = status(reports, evidence, previous);
    let observed_generation = observed_generation(reports, status, evidence, previous);
    let reason = reason(reports, status);
    let draft = ConditionDraft {
        kind: LAST_KNOWN_RECONCILED.to_owned(),
        status,
        reason: Some(reason.as_str().to_owned()),
        message: Some(message(reason).to_owned()),
        observed_generation,
        last_updated_time: last_updated(reports, observed_generation, evidence, previous),
    };
    draft.after(&evidence.resource.state.conditions, evidence.reference_time())
}

impl Reports {
    fn of(evidence: &Evidence<'_>) -> Self {
        let Some(first) = evidence.counted.first() else {
            return if evidence.required.is_empty() { Self::NoneRequired } else { Self::Incomplete };
        };
        if evidence.counted.len() < evidence.required.len() {
            Self::Incomplete
        } else if evidence.counted.iter().any(|report| is_denial(report)) {
            Self::SomeFalse
        } else if evidence.at(first.observed_generation).count() == evidence.counted.len() {
            Self::Uniform(first.observed_generation)
        } else {
            Self::Mixed
        }
    }
}

/// Once true, the condition becomes false only if an adapter denies its generation: adapters that still reconcile a newer
/// generation, or have failed to, say nothing about the old one.
fn status(reports: Reports, evidence: &Evidence<'_>, previous: Option<&Condition>) -> Status {
    let held = previous.filter(|previous| previous.status == Status::True);
    let holds = match reports {
        Reports::NoneRequired | Reports::Incomplete => false,
        Reports::Uniform(_) => true,
        Reports::Mixed => held.is_some(),
        Reports::SomeFalse => held.is_some_and(|held| !denied(held.observed_generation, evidence)),
    };
    if holds { Status::True } else { Status::False }
}

fn observed_generation(
    reports: Reports,
    status: Status,
    evidence: &Evidence<'_>,
    previous: Option<&Condition>,
) -> Generation {
    let tracked = previous.map_or(Generation::FIRST, |previous| previous.observed_generation);
    let newest = || evidence.counted.iter().map(|report| report.observed_generation).max();
    match (reports, status) {
        (Reports::NoneRequired, _) => Generation::FIRST,
        (Reports::Uniform(generation), _) => generation,
        (_, Status::True) => tracked,
        (_, Status::False | Status::Unknown) => newest().unwrap_or(tracked),
    }
}

fn last_updated(
    reports: Reports,
    generation: Generation,
    evidence: &Evidence<'_>,
    previous: Option<&Condition>,
) -> Timestamp {
    let observed = match reports {
        Reports::NoneRequired => return evidence.reference_time(),
        Reports::Uniform(_) => oldest(evidence.at(generation)),
        // Only a false condition is denied at its own generation.
        _ if denied(generation, evidence) => oldest(evidence.at(generation)),
        Reports::Incomplete | Reports::Mixed | Reports::SomeFalse => None,
    };
    observed.or(previous.map(|previous| previous.last_updated_time)).unwrap_or(evidence.reference_time())
}

fn reason(reports: Reports, status: Status) -> Reason {
    match (reports, status) {
        (_, Status::True) => Reason::AllAdaptersReconciled,
        (Reports::NoneRequired | Reports::Incomplete, _) => Reason::AdaptersMissingReports,
        (Reports::SomeFalse, _) => Reason::AdapterReportedNotAvailable,
        (Reports::Uniform(_) | Reports::Mixed, _) => Reason::AdaptersNotAtSameGeneration,
    }
}

fn message(reason: Reason) -> &'static str {
    match reason {
        Reason::AdaptersMissingReports => "Required adapters have not yet reported status",
        Reason::AdapterReportedNotAvailable => "One or more required adapters report Available=False",
        Reason::AdaptersNotAtSameGeneration => "Required adapters do not report a consistent Available state",
        _ => "All required adapters report Available=True for the tracked generation",
    }
}

/// Returns true if a report of that generation is not available.
fn denied(generation: Generation, evidence: &Evidence<'_>) -> bool {
    evidence.at(generation).any(is_denial)
}

fn is_denial(report: &Report) -> bool {
    report.status(AVAILABLE) == Status::False
}
