//! Evaluates mapped conditions before a transaction, and gives them to it only for the state that they were evaluated on.

use fleet_model::Report;

use super::{Address, Failure, Service};
use crate::decide::change::RequestInfo;
use crate::decide::mapped::MappedCondition;
use crate::decide::report::{self, Decision, NewReport};
use crate::mapping::MappingError;
use crate::resource::{Resource, State};

/// Mapped conditions, each with the state of the resource that they were evaluated on.
#[derive(Debug, Default)]
pub(super) struct MappedFacts(Vec<Evaluated>);

#[derive(Debug)]
struct Evaluated {
    /// The resource without conditions, which expressions do not read.
    input: Resource,
    result: Result<Vec<MappedCondition>, MappingError>,
}

// === impl MappedFacts ===

impl MappedFacts {
    /// Returns the mapped conditions of a resource; fails if they were evaluated on another state of it, or not at all.
    pub(super) fn of(&self, resource: &Resource) -> Result<&Result<Vec<MappedCondition>, MappingError>, Failure> {
        let input = input(resource);
        let found = self.0.iter().find(|evaluated| evaluated.input == input);
        found.map(|evaluated| &evaluated.result).ok_or_else(|| Failure::Unevaluated(vec![input]))
    }

    /// Replaces the facts of the resources that `newer` has, and keeps those of all others.
    pub(super) fn update(&mut self, newer: Self) {
        self.0.retain(|old| newer.0.iter().all(|new| new.input.id != old.input.id));
        self.0.extend(newer.0);
    }
}

/// Returns all of a resource that expressions can read.
fn input(resource: &Resource) -> Resource {
    let state = State {
        conditions: Vec::new(),
        labels: resource.state.labels.clone(),
        references: resource.state.references.clone(),
        tenancy: resource.state.tenancy.clone(),
        reports: resource.state.reports.clone(),
    };
    Resource { state, ..resource.clone() }
}

/// Returns the resource with a report in place of the adapter's previous one, which is returned as well.
pub(super) fn with_report(before: &Resource, report: &Report) -> (Resource, Option<Report>) {
    let mut after = before.clone();
    let replaced = after.state.reports.insert(report.adapter.clone(), report.clone());
    (after, replaced)
}

impl Service {
    /// Evaluates the mappings on these resources.
    pub(super) async fn evaluate(&self, resources: Vec<Resource>) -> MappedFacts {
        let mut facts = Vec::with_capacity(resources.len());
        for input in resources {
            let result = self.parts.evaluator.evaluate(input.clone()).await;
            facts.push(Evaluated { input, result });
        }
        MappedFacts(facts)
    }

    /// Evaluates the mappings on the state that a report will lead to, unless another write comes first.
    pub(super) async fn evaluate_report(
        &self,
        address: &Address<'_>,
        new: &NewReport,
        request: &RequestInfo,
    ) -> Result<MappedFacts, Failure> {
        let maps = |kind: &str| self.parts.evaluator.maps(kind);
        if !address.descriptor.map_or_else(|| self.parts.evaluator.maps_any(), |descriptor| maps(&descriptor.kind)) {
            return Ok(MappedFacts::default());
        }
        let stored = self.store().get(address.id).await?.filter(|stored| maps(&stored.resource.kind));
        let Some(before) = stored.map(|stored| stored.resource) else { return Ok(MappedFacts::default()) };
        match report::decide(new, &before, request.time) {
            Ok(Decision::Store(report)) => {
                let (after, _replaced) = with_report(&before, &report);
                Ok(self.evaluate(vec![input(&after)]).await)
            }
            // The decision under the lock needs no mapped conditions, or answers with the error.
            Ok(Decision::Discard(_) | Decision::Unchanged(_)) | Err(_) => Ok(MappedFacts::default()),
        }
    }
}
