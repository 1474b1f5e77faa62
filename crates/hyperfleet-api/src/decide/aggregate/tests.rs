//! Tests of the aggregation rules as a table: one line of facts, one line for the condition that follows.

mod invariants;
mod table;

use std::collections::BTreeMap;

use fleet_model::names::condition::{FINALIZED, LAST_KNOWN_RECONCILED, RECONCILED};
use fleet_model::{ReportedCondition, Status};
use jiff::Timestamp;

use super::*;
use crate::resource::State;

/// A situation, parsed from text such as `a b | gen 3 | a@3 True 50 | b@2 False 60 Finalized | Reconciled True@2 1 2 3`:
///
/// - the required adapters first;
/// - `gen 3`, `deleting`, `children` (active ones remain); the resource was updated at second 100;
/// - a report: adapter, generation, `Available`, its time; `Finalized` if it says so; `: Why` is the reason;
/// - a previous condition: type, status, generation, and when it was created, updated and changed.
#[derive(Clone, Debug)]
struct Situation {
    required: Vec<String>,
    resource: Resource,
    children: bool,
}

impl Situation {
    fn conditions(&self) -> Vec<Condition> {
        aggregate(&self.required, &self.resource, self.children, &[], at(0))
    }

    /// Returns the situation after its conditions were stored.
    fn stored(mut self) -> Self {
        self.resource.state.conditions = self.conditions();
        self
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn status(word: &str) -> Status {
    [Status::True, Status::False, Status::Unknown].into_iter().find(|status| status.as_str() == word).unwrap()
}

fn resource(generation: u32) -> Resource {
    Resource {
        id: "c1".to_owned(),
        kind: "Cluster".to_owned(),
        name: "one".to_owned(),
        owner: None,
        spec: serde_json::Map::new(),
        href: "/api/hyperfleet/v1/clusters/0197".to_owned(),
        generation: generation.into(),
        created_time: at(0),
        created_by: "someone".to_owned(),
        updated_time: at(100),
        updated_by: "someone".to_owned(),
        deleted_time: None,
        deleted_by: None,
        state: State::default(),
    }
}

fn report(adapter: &str, generation: u32, available: Status, second: i64) -> Report {
    Report {
        adapter: adapter.to_owned(),
        observed_generation: generation.into(),
        conditions: vec![reported(AVAILABLE, available)],
        data: serde_json::Map::new(),
        metadata: None,
        created_time: at(second),
        last_report_time: at(second),
    }
}

fn reported(kind: &str, status: Status) -> ReportedCondition {
    ReportedCondition { kind: kind.to_owned(), status, reason: None, message: None, last_transition_time: at(0) }
}

fn given(text: &str) -> Situation {
    let mut parts = text.split('|').map(str::trim);
    let required = parts.next().unwrap().split_whitespace().map(str::to_owned).collect();
    let mut situation = Situation { required, resource: resource(1), children: false };
    for part in parts {
        let tokens: Vec<&str> = part.split_whitespace().collect();
        let resource = &mut situation.resource;
        match tokens[..] {
            ["gen", generation] => resource.generation = generation.parse().unwrap(),
            ["deleting"] => resource.deleted_time = Some(at(100)),
            ["children"] => situation.children = true,
            [kind, holds, created, updated, changed] if holds.contains('@') => {
                let (holds, generation) = holds.split_once('@').unwrap();
                resource.state.conditions.push(Condition {
                    kind: kind.to_owned(),
                    status: status(holds),
                    reason: None,
                    message: None,
                    observed_generation: generation.parse().unwrap(),
                    created_time: at(created.parse().unwrap()),
                    last_updated_time: at(updated.parse().unwrap()),
                    last_transition_time: at(changed.parse().unwrap()),
                    reason_since_time: at(changed.parse().unwrap()),
                });
            }
            [who, available, second, ref rest @ ..] => {
                let (adapter, generation) = who.split_once('@').unwrap();
                let mut report =
                    report(adapter, generation.parse().unwrap(), status(available), second.parse().unwrap());
                match rest {
                    ["Finalized"] => report.conditions.push(reported(FINALIZED, Status::True)),
                    [":", reason] => report.conditions[0].reason = Some((*reason).to_owned()),
                    _ => assert!(rest.is_empty(), "{part}"),
                }
                resource.state.reports.insert(adapter.to_owned(), report);
            }
            _ => panic!("{part}"),
        }
    }
    situation
}

/// Formats a condition: type, status, generation, reason, and the seconds of its creation, update and transition.
fn line_of(condition: &Condition) -> String {
    let times = [condition.created_time, condition.last_updated_time, condition.last_transition_time];
    let times = times.map(|time| time.as_second().to_string()).join(" ");
    let reason = condition.reason.as_deref().unwrap_or("-");
    format!("{} {}@{} {reason} {times}", condition.kind, condition.status.as_str(), condition.observed_generation)
}

#[track_caller]
fn check(situation: &str, kind: &str, expected: &str) {
    let conditions = given(situation).conditions();
    let condition = conditions.iter().find(|condition| condition.kind == kind);
    assert_eq!(condition.map(line_of).unwrap_or_default(), format!("{kind} {expected}"), "{situation}");
}

#[track_caller]
fn check_message(situation: &str, kind: &str, expected: &str) {
    let conditions = given(situation).conditions();
    let condition = conditions.iter().find(|condition| condition.kind == kind).unwrap();
    assert_eq!(condition.message.as_deref(), Some(expected), "{situation}");
}

fn reports(situation: &Situation) -> &BTreeMap<String, Report> {
    &situation.resource.state.reports
}
