//! Evaluates mapped conditions before a transaction.

use fleet_model::Report;

use super::mapped::{MappedFacts, input};
use super::{Address, Failure, Service};
use crate::decide::change::RequestInfo;
use crate::decide::report::{self, Decision, NewReport};
use crate::resource::Resource;

/// Returns the resource with a report in place of the adapter's previous one, which is returned as well.
pub(super) fn with_report(before: &Resource, report: &Report) -> (Resource, Option<Report>) {
    let mut after = before.clone();
    let replaced = after.state.reports.insert(report.adapter.clone(), report.clone());
    (after, replaced)
}

impl Service {
    /// Evaluates the mappings on these resources.
    pub(super) async fn evaluate(&self, resources: Vec<Resource>) -> MappedFacts {
        let mut facts = MappedFacts::default();
        for input in resources {
            let result = self.parts.evaluator.evaluate(input.clone()).await;
            facts.add(input, result);
        }
        facts
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
        let stored = self.store().get(address.id, &request.reach).await?.filter(|stored| maps(&stored.resource.kind));
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
