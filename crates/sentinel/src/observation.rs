//! Projects a resource to the parts that decisions and events need.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_model::names;
use hyperfleet_client::{Resource, Status, TraceContext, View, known_time};
use precondition::{AdapterFacts, Context, Evaluation, Outcome, Precondition};

use crate::decide::{Facts, State};
use crate::message_data::Template;
use crate::moment::Moment;

/// Maximum number of adapters with a bit of their own.
const MAX_ADAPTERS: usize = u64::BITS as usize;

/// Projects resources to observations.
#[derive(Debug)]
pub struct Projector {
    /// The `publish_when` condition of each adapter; without any, every change is published.
    rules: Vec<(Box<str>, Precondition)>,
    template: Template,
    /// The observed adapters, by their bits.
    adapters: Vec<Box<str>>,
    /// The last observed kind, which is shared by the observations.
    kind: Arc<str>,
}

/// The parts of a resource that decisions and events need.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The facts for decisions.
    pub facts: Facts,
    /// The content of an event.
    pub content: EventContent,
}

/// The content of an event about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventContent {
    /// Such as `Cluster`.
    pub kind: Arc<str>,
    /// The event's data, but for the reason.
    pub data: Box<str>,
    /// The trace of the change that has made the generation.
    pub trace: Option<TraceContext>,
}

impl Projector {
    /// Creates a projector for these conditions, of which there are at most 64, and this template of an event's data.
    pub fn new(publish_when: &BTreeMap<String, Precondition>, template: Template) -> Self {
        let rules = publish_when.iter().map(|(adapter, rule)| (adapter.as_str().into(), rule.clone()));
        Self { rules: rules.collect(), template, adapters: Vec::new(), kind: "".into() }
    }

    /// Projects a resource.
    pub fn project(&mut self, resource: &Resource) -> Observation {
        let evaluations = if self.rules.is_empty() { Vec::new() } else { self.evaluations(resource) };
        let met = evaluations.iter().enumerate().filter(|(_, (_, evaluation))| evaluation.outcome == Outcome::Met);
        let met = met.fold(0, |met, (bit, _)| met | 1 << bit);
        let state = State {
            generation: resource.generation,
            is_deleting: resource.is_deleting(),
            available: self.available(resource),
            met,
        };
        if *self.kind != *resource.kind {
            self.kind = resource.kind.as_str().into();
        }
        let content = EventContent {
            kind: Arc::clone(&self.kind),
            data: self.template.render(resource).to_string().into(),
            trace: resource.traceparent.clone(),
        };
        let facts = Facts { state, reconciled: reconciled(resource), changed: changed(resource), is_inherited: false };
        Observation { facts, content }
    }

    /// Evaluates each adapter's `publish_when` for a resource.
    pub fn evaluations(&self, resource: &Resource) -> Vec<(&str, Evaluation)> {
        let view = View::of(resource);
        let adapters =
            view.reported_generations().map(|(name, reported_generation)| (name, AdapterFacts { reported_generation }));
        let context = Context::of(&view.document)
            .with_status(&view.status)
            .with_metadata(&view.metadata)
            .at_generation(resource.generation.get())
            .with_adapters(adapters);
        self.rules.iter().map(|(adapter, rule)| (&**adapter, rule.evaluate(&context))).collect()
    }

    /// Returns the names of the adapters, by their bits.
    pub fn adapters(&self) -> &[Box<str>] {
        &self.adapters
    }

    /// Returns the names of the adapters whose conditions are met by these bits; `None` if there are none.
    pub fn addressees(&self, met: u64) -> Option<String> {
        let named = self.rules.iter().enumerate().filter(|(bit, _)| met >> bit & 1 == 1);
        let named: Vec<&str> = named.map(|(_, (adapter, _))| &**adapter).collect();
        (!named.is_empty()).then(|| named.join(","))
    }

    /// Returns the template of an event's data.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Returns the adapters that are available at the current generation. Reports about older generations do not count.
    fn available(&mut self, resource: &Resource) -> u64 {
        let mut bits = 0;
        for (name, report) in resource.status.reports() {
            let is_current = report.generation().is_none_or(|generation| generation >= resource.generation);
            if report.is_available() && is_current {
                bits |= self.bit(name);
            }
        }
        if resource.status.adapters.is_none() {
            // HyperFleet's own server has no view of adapters, but one condition per adapter.
            for condition in &resource.status.conditions {
                if let Some(name) = condition.kind.strip_suffix(names::condition::SUCCESSFUL_SUFFIX)
                    && condition.status == Status::True
                    && condition.observed_generation.known().is_none_or(|generation| generation >= resource.generation)
                {
                    bits |= self.bit(name);
                }
            }
        }
        bits
    }

    fn bit(&mut self, name: &str) -> u64 {
        let bit = self.adapters.iter().position(|known| **known == *name).unwrap_or_else(|| {
            self.adapters.push(name.into());
            self.adapters.len() - 1
        });
        // Adapters beyond the last bit share it: the first of them to become available is a change, the others are not.
        1 << bit.min(MAX_ADAPTERS - 1)
    }
}

fn reconciled(resource: &Resource) -> Option<bool> {
    let condition = resource.condition(names::condition::RECONCILED)?;
    let is_present = condition.observed_generation.known().is_none_or(|generation| generation >= resource.generation);
    Some(condition.status == Status::True && is_present)
}

/// Returns the time of the last change or report.
fn changed(resource: &Resource) -> Option<Moment> {
    let own = [resource.created_time, resource.updated_time, resource.deleted_time].into_iter().flatten();
    let reported = resource.status.reports().filter_map(|(_, report)| report.time());
    let concluded = resource.status.conditions.iter().filter_map(|condition| known_time(condition.last_updated_time));
    own.chain(reported).chain(concluded).max().map(Moment::at)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn resource(status: &Value) -> Resource {
        serde_json::from_value(json!({
            "id": "cls-1", "kind": "Cluster", "name": "one", "href": "/clusters/cls-1", "generation": 3,
            "spec": {"provider": "gcp", "pullSecret": {"data": "hunter2"}},
            "created_time": "2026-01-01T00:00:00Z", "updated_time": "2026-01-02T00:00:00Z", "status": status,
        }))
        .unwrap()
    }

    fn projector(rules: &[(&str, &str)]) -> Projector {
        let rules = rules.iter().map(|(name, rule)| ((*name).to_owned(), Precondition::parse(rule).unwrap())).collect();
        Projector::new(&rules, Template::default())
    }

    #[test]
    fn only_reports_about_the_present_generation_make_an_adapter_available() {
        let mut projector = projector(&[]);
        let report =
            |available: &str, generation: i64| json!({"available": available, "observed_generation": generation});
        let adapters =
            json!({"dns": report("True", 3), "validation": report("True", 2), "hypershift": report("False", 3)});
        let observed = projector.project(&resource(&json!({"adapters": adapters})));
        assert_eq!((observed.facts.state.available, projector.adapters()), (1, &["dns".into()][..]));
        let conditions = json!([
            {"type": "Reconciled", "status": "True", "observed_generation": 2},
            {"type": "DnsSuccessful", "status": "True", "observed_generation": 3},
            {"type": "MyOwnSuccessful", "status": "True", "observed_generation": 3,
             "last_updated_time": "2026-01-03T00:00:00Z"},
        ]);
        let today = projector.project(&resource(&json!({"conditions": conditions})));
        assert_eq!(today.facts.state.available.count_ones(), 2);
        assert_eq!(today.facts.reconciled, Some(false), "a condition of another generation does not count");
        assert_eq!(today.facts.changed, Some(Moment::at("2026-01-03T00:00:00Z".parse().unwrap())));
    }

    #[rstest]
    #[case::absent(json!({}), 1)]
    #[case::a_text(json!({"observed_generation": "3"}), 1)]
    #[case::negative(json!({"observed_generation": -1}), 1)]
    #[case::older(json!({"observed_generation": 0}), 0)]
    fn a_report_without_a_generation_counts_for_the_present_one(#[case] mut report: Value, #[case] available: u64) {
        report["available"] = json!("True");
        let observed = projector(&[]).project(&resource(&json!({"adapters": {"dns": report}})));
        assert_eq!(observed.facts.state.available, available);
    }

    #[test]
    fn conditions_are_met_by_what_adapters_report() {
        let rule = r#"status.adapters[validation].available == "True" && status.adapters[my-dns].available == "True""#;
        let mut projector = projector(&[("pullsecret", rule), ("validation", "spec.provider == 'gcp'")]);
        let met = json!({"validation": {"available": "True"}, "my-dns": {"available": "True"}});
        let observed = projector.project(&resource(&json!({"adapters": met})));
        assert_eq!(projector.addressees(observed.facts.state.met).as_deref(), Some("pullsecret,validation"));
        let conditions = json!([{"type": "ValidationSuccessful", "status": "True", "observed_generation": 2},
                                {"type": "MyDnsSuccessful", "status": "Unknown", "observed_generation": 3}]);
        let today = resource(&json!({"conditions": conditions}));
        let observed = projector.project(&today);
        assert_eq!(projector.addressees(observed.facts.state.met).as_deref(), Some("validation"));
        let why = projector.evaluations(&today)[0].1.explanation.to_string();
        assert!(why.contains("Unknown"), "{why}");
    }
}
