//! Evaluates the preconditions and dependencies of a run.

use fleet_model::names;
use hyperfleet_client::{Generation, ReportView, Status, View};
use precondition::{AdapterFacts, Context, Outcome};

use crate::config::Checked;

/// A precondition or dependency that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// A summary in one line: `waiting for dns: not reported yet at generation 3`.
    pub line: String,
    /// Every part of the expression with its value.
    pub detail: Option<String>,
}

/// Returns the preconditions and dependencies that a resource does not meet; empty if it is ready for a run.
pub fn unmet(config: &Checked, view: &View) -> Vec<Unmet> {
    let reported = view.reported_generations();
    let adapters = reported.map(|(name, reported_generation)| (name, AdapterFacts { reported_generation }));
    let context = Context::of(&view.document)
        .with_status(&view.status)
        .with_metadata(&view.metadata)
        .at_generation(view.generation.get())
        .with_adapters(adapters);
    let conditions = config.preconditions.iter().filter_map(|precondition| {
        let evaluation = precondition.evaluate(&context);
        if evaluation.outcome == Outcome::Met {
            return None;
        }
        let line = evaluation.explanation.lines().join("; ");
        Some(Unmet { line, detail: Some(evaluation.explanation.tree().to_string()) })
    });
    let store = config.stores.of(view).err().map(|line| Unmet { line, detail: None });
    let dependencies = config.dependencies.iter().filter_map(|adapter| {
        let why = unavailable(view.report(adapter), view.generation)?;
        Some(Unmet { line: format!("waiting for {adapter}: {why}"), detail: None })
    });
    store.into_iter().chain(conditions).chain(dependencies).collect()
}

/// Returns the reason why an adapter is not available. A report about an older generation that says `True` still counts.
fn unavailable(report: Option<ReportView<'_>>, generation: Generation) -> Option<String> {
    let Some(report) = report else { return Some(format!("not reported yet at generation {generation}")) };
    if report.is_available() {
        return None;
    }
    let available = report.available().unwrap_or(Status::Unknown.as_str());
    if let Some(reported) = report.generation().filter(|reported| *reported < generation) {
        return Some(format!("not reported yet at generation {generation}, and {available} at generation {reported}"));
    }
    Some(match reason(report) {
        Some(reason) => format!("it is not available ({reason})"),
        None => format!("it is not available (status {available})"),
    })
}

fn reason(report: ReportView<'_>) -> Option<&str> {
    let available = report.condition(names::condition::AVAILABLE)?;
    available.get("reason")?.as_str().filter(|reason| !reason.is_empty())
}
