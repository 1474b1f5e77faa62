//! The facts that are aggregated: the resource and the considered reports of its required adapters.

use fleet_model::names::condition::AVAILABLE;
use fleet_model::{Generation, Report, Status};
use jiff::Timestamp;

use crate::resource::Resource;

/// The facts that are aggregated.
pub(super) struct Evidence<'a> {
    pub(super) resource: &'a Resource,
    pub(super) required: &'a [String],
    /// The considered reports, in the order of the required adapters.
    pub(super) counted: Vec<&'a Report>,
    pub(super) has_active_children: bool,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(required: &'a [String], resource: &'a Resource, has_active_children: bool) -> Self {
        let reports = required.iter().filter_map(|adapter| resource.state.reports.get(adapter));
        // A report of `Unknown`, or of a generation that does not exist yet, counts as none, as in HyperFleet's API.
        let counted = reports
            .filter(|report| report.observed_generation <= resource.generation)
            .filter(|report| report.status(AVAILABLE) != Status::Unknown)
            .collect();
        Self { resource, required, counted, has_active_children }
    }

    /// Returns the considered reports of that generation.
    pub(super) fn at(&self, generation: Generation) -> impl Iterator<Item = &'a Report> + '_ {
        self.counted.iter().copied().filter(move |report| report.observed_generation == generation)
    }

    /// Returns the time of the last change, which is the time of everything that no report has a time for.
    pub(super) fn reference_time(&self) -> Timestamp {
        self.resource.updated_time
    }
}

/// Returns the time of the oldest report.
pub(super) fn oldest<'a>(reports: impl Iterator<Item = &'a Report>) -> Option<Timestamp> {
    reports.map(|report| report.last_report_time).min()
}
