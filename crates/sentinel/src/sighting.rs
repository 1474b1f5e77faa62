//! A resource as it was read, brought to what decisions and events need of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperfleet_client::{Resource, Status, View, known_time};
use precondition::{AdapterFacts, Context, Outcome, Precondition, Verdict};
use serde_json::Value;

use crate::decide::{Facts, State};
use crate::message_data::Template;
use crate::moment::Moment;

/// Sets of adapters are sets of bits.
const MOST_ADAPTERS: usize = u64::BITS as usize;

/// What is looked at when a resource is read.
#[derive(Debug)]
pub struct Lens {
    /// When to publish for which adapter; always if empty.
    rules: Vec<(Box<str>, Precondition)>,
    template: Template,
    /// The adapters that were seen, by their bits.
    adapters: Vec<Box<str>>,
    /// The kind last seen: most often there is but one.
    kind: Arc<str>,
}

/// What was seen of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// What decisions look at.
    pub facts: Facts,
    /// What an event about it would say.
    pub content: Content,
}

/// What an event about a resource says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Such as `Cluster`.
    pub kind: Arc<str>,
    /// The event's data, but for the reason.
    pub data: Box<str>,
}

impl Lens {
    /// A lens for these conditions, at most 64, and this form of an event's data.
    pub fn new(publish_when: &BTreeMap<String, Precondition>, template: Template) -> Self {
        let rules = publish_when.iter().map(|(adapter, rule)| (adapter.as_str().into(), rule.clone()));
        Self { rules: rules.collect(), template, adapters: Vec::new(), kind: "".into() }
    }

    /// Looks at a resource.
    pub fn see(&mut self, resource: &Resource) -> Sighting {
        let verdicts = if self.rules.is_empty() { Vec::new() } else { self.verdicts(resource) };
        let met = verdicts.iter().enumerate().filter(|(_, (_, verdict))| verdict.outcome == Outcome::Met);
        let met = met.fold(0, |met, (bit, _)| met | 1 << bit);
        let state = State {
            generation: resource.generation.into(),
            is_deleting: resource.is_deleting(),
            available: self.available(resource),
            met,
        };
        if *self.kind != *resource.kind {
            self.kind = resource.kind.as_str().into();
        }
        let content = Content { kind: Arc::clone(&self.kind), data: self.template.render(resource).to_string().into() };
        Sighting { facts: Facts { state, reconciled: reconciled(resource), changed: changed(resource) }, content }
    }

    /// What each adapter's `publish_when` says of a resource.
    pub fn verdicts(&self, resource: &Resource) -> Vec<(&str, Verdict)> {
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

    /// The names of the adapters' bits.
    pub fn adapters(&self) -> &[Box<str>] {
        &self.adapters
    }

    /// The adapters with a condition of their own that these bits stand for; `None` if there are no conditions.
    pub fn addressees(&self, met: u64) -> Option<String> {
        let named = self.rules.iter().enumerate().filter(|(bit, _)| met >> bit & 1 == 1);
        let named: Vec<&str> = named.map(|(_, (adapter, _))| &**adapter).collect();
        (!named.is_empty()).then(|| named.join(","))
    }

    /// The form of an event's data.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The adapters that are available at the present generation. What they said of an older one is about what is not
    /// wanted any more.
    fn available(&mut self, resource: &Resource) -> u64 {
        let mut bits = 0;
        for (name, report) in &resource.status.adapters {
            let generation = report.get("observed_generation").and_then(Value::as_i64);
            if report.get("available").and_then(Value::as_str) == Some("True")
                && generation.is_none_or(|generation| generation >= i64::from(resource.generation))
            {
                bits |= self.bit(name);
            }
        }
        if resource.status.adapters.is_empty() {
            // HyperFleet's own server has no view of adapters, but a condition for each.
            for condition in &resource.status.conditions {
                if let Some(name) = condition.kind.strip_suffix(SUCCESSFUL)
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
        let place = self.adapters.iter().position(|known| **known == *name).unwrap_or_else(|| {
            self.adapters.push(name.into());
            self.adapters.len() - 1
        });
        // More adapters than bits share the last one: their comings are news all the same, if not each of them.
        1 << place.min(MOST_ADAPTERS - 1)
    }
}

/// What the type of an adapter's own condition ends with.
const SUCCESSFUL: &str = "Successful";

fn reconciled(resource: &Resource) -> Option<bool> {
    let condition = resource.condition("Reconciled")?;
    let is_present = condition.observed_generation.known().is_none_or(|generation| generation >= resource.generation);
    Some(condition.status == Status::True && is_present)
}

/// When it was last changed or reported on.
fn changed(resource: &Resource) -> Option<Moment> {
    let own = [resource.created_time, resource.updated_time, resource.deleted_time].into_iter().flatten();
    let reported =
        resource.status.adapters.values().filter_map(|report| {
            report.get("last_report_time").and_then(Value::as_str).and_then(|time| time.parse().ok())
        });
    let concluded = resource.status.conditions.iter().filter_map(|condition| known_time(condition.last_updated_time));
    own.chain(reported).chain(concluded).max().map(Moment::at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(status: &Value) -> Resource {
        serde_json::from_value(json!({
            "id": "cls-1", "kind": "Cluster", "name": "one", "href": "/clusters/cls-1", "generation": 3,
            "spec": {"provider": "gcp", "pullSecret": {"data": "hunter2"}},
            "created_time": "2026-01-01T00:00:00Z", "updated_time": "2026-01-02T00:00:00Z", "status": status,
        }))
        .unwrap()
    }

    fn lens(rules: &[(&str, &str)]) -> Lens {
        let rules = rules.iter().map(|(name, rule)| ((*name).to_owned(), Precondition::parse(rule).unwrap())).collect();
        Lens::new(&rules, Template::default())
    }

    #[test]
    fn only_reports_about_the_present_generation_make_an_adapter_available() {
        let mut lens = lens(&[]);
        let report =
            |available: &str, generation: i64| json!({"available": available, "observed_generation": generation});
        let adapters =
            json!({"dns": report("True", 3), "validation": report("True", 2), "hypershift": report("False", 3)});
        let seen = lens.see(&resource(&json!({"adapters": adapters})));
        assert_eq!((seen.facts.state.available, lens.adapters()), (1, &["dns".into()][..]));
        let conditions = json!([
            {"type": "Reconciled", "status": "True", "observed_generation": 2},
            {"type": "DnsSuccessful", "status": "True", "observed_generation": 3},
            {"type": "MyOwnSuccessful", "status": "True", "observed_generation": 3,
             "last_updated_time": "2026-01-03T00:00:00Z"},
        ]);
        let today = lens.see(&resource(&json!({"conditions": conditions})));
        assert_eq!(today.facts.state.available.count_ones(), 2);
        assert_eq!(today.facts.reconciled, Some(false), "what was concluded about another generation is no conclusion");
        assert_eq!(today.facts.changed, Some(Moment::at("2026-01-03T00:00:00Z".parse().unwrap())));
    }

    #[test]
    fn conditions_are_met_by_what_adapters_report() {
        let rule = r#"status.adapters[validation].available == "True" && status.adapters[my-dns].available == "True""#;
        let mut lens = lens(&[("pullsecret", rule), ("validation", "spec.provider == 'gcp'")]);
        let met = json!({"validation": {"available": "True"}, "my-dns": {"available": "True"}});
        let seen = lens.see(&resource(&json!({"adapters": met})));
        assert_eq!(lens.addressees(seen.facts.state.met).as_deref(), Some("pullsecret,validation"));
        let conditions = json!([{"type": "ValidationSuccessful", "status": "True", "observed_generation": 2},
                                {"type": "MyDnsSuccessful", "status": "Unknown", "observed_generation": 3}]);
        let today = resource(&json!({"conditions": conditions}));
        let seen = lens.see(&today);
        assert_eq!(lens.addressees(seen.facts.state.met).as_deref(), Some("validation"));
        let why = lens.verdicts(&today)[0].1.explanation.to_string();
        assert!(why.contains("Unknown"), "{why}");
    }
}
