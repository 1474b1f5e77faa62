//! Evaluates the preconditions and dependencies of a run.

use fleet_model::names;
use hyperfleet_client::View;
use precondition::{AdapterFacts, Context, Outcome};
use serde_json::Value;

use crate::config::Plan as Config;

/// A precondition or dependency that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// A summary in one line: `waiting for dns: not reported yet at generation 3`.
    pub line: String,
    /// Every part of the expression with its value.
    pub detail: Option<String>,
}

/// Returns the preconditions and dependencies that a resource does not meet; empty if it is ready for a run.
pub fn unmet(config: &Config, view: &View) -> Vec<Unmet> {
    let generation = view.metadata.get("generation").and_then(Value::as_u64).unwrap_or_default();
    let reported = view.reported_generations();
    let adapters = reported.map(|(name, reported_generation)| (name, AdapterFacts { reported_generation }));
    let context = Context::of(&view.document)
        .with_status(&view.status)
        .with_metadata(&view.metadata)
        .at_generation(generation)
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
        let why = unavailable(view.adapter(adapter), generation)?;
        Some(Unmet { line: format!("waiting for {adapter}: {why}"), detail: None })
    });
    store.into_iter().chain(conditions).chain(dependencies).collect()
}

/// Returns the reason why an adapter is not available. A report about an older generation that says `True` still counts.
fn unavailable(report: Option<&Value>, generation: u64) -> Option<String> {
    let Some(report) = report else { return Some(format!("not reported yet at generation {generation}")) };
    let available = report.get("available").and_then(Value::as_str).unwrap_or("Unknown");
    if available == "True" {
        return None;
    }
    let reported = report.get("observed_generation").and_then(Value::as_u64);
    if let Some(reported) = reported.filter(|reported| *reported < generation) {
        return Some(format!("not reported yet at generation {generation}, and {available} at generation {reported}"));
    }
    Some(match reason(report) {
        Some(reason) => format!("it is not available ({reason})"),
        None => format!("it is not available (status {available})"),
    })
}

fn reason(report: &Value) -> Option<&str> {
    let conditions = report.get("conditions")?.as_array()?;
    let available = conditions
        .iter()
        .find(|condition| condition.get("type").is_some_and(|kind| kind == names::condition::AVAILABLE))?;
    available.get("reason")?.as_str().filter(|reason| !reason.is_empty())
}
