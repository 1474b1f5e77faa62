//! Builds the events for adapters.

use daemon::log::SPANS;
use daemon::traces;
use fleet_model::Generation;
use fleet_model::names::trace::{GENERATION, MESSAGE, OPERATION, PUBLISH, REASON, RESOURCE_ID, RESOURCE_TYPE, TOPIC};
use jiff::Timestamp;
use message_broker::Event;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{Span, info_span};

use crate::decide::State;
use crate::fleet::Due;
use crate::observation::Projector;

/// The source of the events, as HyperFleet's Sentinel has it.
pub const SOURCE: &str = "hyperfleet-sentinel";
/// The extension attribute that names the adapters whose `publish_when` is true; absent without `publish_when`.
pub const ADDRESSEES: &str = "adapters";

/// The naming of event types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventType {
    /// `com.redhat.hyperfleet.cluster.reconcile`: HyperFleet's.
    #[default]
    Reconcile,
    /// `cluster.create`, `cluster.update`, `cluster.delete`: the specification's.
    Specification,
}

/// The extension attribute with the trace of an event, as HyperFleet's Sentinel has it.
pub const TRACEPARENT: &str = "traceparent";

/// Returns the span of a publication, and puts the event into its trace. The event of a change continues the trace of the
/// change. A repetition begins a trace of its own, which links to that one: it may follow hours later.
pub fn traced(event: &mut Event, due: &Due, resource_type: &str, topic: &str) -> Span {
    let span = info_span!(
        target: SPANS,
        PUBLISH,
        otel.name = format!("{topic} {PUBLISH}"),
        otel.kind = "producer",
        { OPERATION } = "send",
        { TOPIC } = topic,
        { MESSAGE } = event.id,
        { RESOURCE_TYPE } = resource_type,
        { RESOURCE_ID } = &*due.id,
        { GENERATION } = i64::from(due.state.generation),
        { REASON } = due.reason.as_str(),
    );
    let change = due.content.trace.as_ref();
    let is_change = due.reason.is_change();
    let span = if is_change { traces::continuing(change, span) } else { traces::linked(change, span) };
    // A Sentinel that exports nothing hands the trace of the change on.
    let trace = traces::context(&span).or_else(|| change.filter(|_| is_change).cloned());
    event.extensions.extend(trace.map(|trace| (TRACEPARENT.to_owned(), trace.to_string())));
    span
}

/// Builds the event that is due.
pub fn event(due: &Due, form: EventType, projector: &Projector, now: Timestamp) -> Event {
    let mut data: Value = serde_json::from_str(&due.content.data).unwrap_or_else(|_cannot_be| json!({}));
    projector.template().complete(&mut data, due.reason.as_str());
    let mut event = Event::new(SOURCE, &form.name(&due.content.kind, &due.state), now, data);
    event.subject = Some(due.id.to_string());
    if let Some(addressees) = projector.addressees(due.state.met) {
        event.extensions.insert(ADDRESSEES.to_owned(), addressees);
    }
    event
}

// === impl EventType ===

impl EventType {
    /// Returns the type of an event about a resource in this state.
    pub fn name(self, kind: &str, state: &State) -> String {
        let kind = kind.to_lowercase();
        match self {
            Self::Reconcile => format!("com.redhat.hyperfleet.{kind}.reconcile"),
            Self::Specification if state.is_deleting => format!("{kind}.delete"),
            Self::Specification if state.generation <= Generation::FIRST => format!("{kind}.create"),
            Self::Specification => format!("{kind}.update"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use message_broker::Format;
    use precondition::Precondition;
    use rstest::rstest;

    use super::*;
    use crate::message_data::Template;
    use crate::observation::EventContent;
    use crate::reason::Reason;

    fn due(state: State) -> Due {
        let content =
            EventContent { kind: "Cluster".into(), data: r#"{"id":"cls-1","generation":1}"#.into(), trace: None };
        Due { id: "cls-1".into(), reason: Reason::New, state, content, changed: None }
    }

    #[rstest]
    #[case(EventType::Reconcile, 1, false, "com.redhat.hyperfleet.nodepool.reconcile")]
    #[case(EventType::Reconcile, 4, true, "com.redhat.hyperfleet.nodepool.reconcile")]
    #[case(EventType::Specification, 1, false, "nodepool.create")]
    #[case(EventType::Specification, 2, false, "nodepool.update")]
    #[case(EventType::Specification, 3, true, "nodepool.delete")]
    fn types_are_named(
        #[case] form: EventType,
        #[case] generation: u32,
        #[case] is_deleting: bool,
        #[case] name: &str,
    ) {
        let state = State { generation: generation.into(), is_deleting, ..State::default() };
        assert_eq!(form.name("NodePool", &state), name);
    }

    #[test]
    fn an_event_has_hyperfleets_form() {
        let projector = Projector::new(&BTreeMap::new(), Template::default());
        let now = "2026-02-03T04:05:06Z".parse().unwrap();
        let mut event = event(
            &due(State { generation: Generation::FIRST, ..State::default() }),
            EventType::Reconcile,
            &projector,
            now,
        );
        event.id = "0197".to_owned();
        let body = String::from_utf8(event.encode(Format::Structured).body).unwrap();
        assert_eq!(
            body,
            r#"{"specversion":"1.0","id":"0197","source":"hyperfleet-sentinel","type":"com.redhat.hyperfleet.cluster.reconcile","subject":"cls-1","datacontenttype":"application/json","time":"2026-02-03T04:05:06Z","data":{"generation":1,"id":"cls-1"}}"#
        );
    }

    #[rstest]
    #[case::new(Reason::New, true)]
    #[case::generation(Reason::GenerationChanged, true)]
    #[case::deletion(Reason::DeletionRequested, true)]
    #[case::dependency(Reason::DependencyAvailable, true)]
    #[case::condition(Reason::PublishWhenMet, true)]
    #[case::repetition_also_of_a_predecessors(Reason::RepublishDue, false)]
    #[case::resync(Reason::ResyncDue, false)]
    fn the_trace_of_a_change_is_handed_on_without_an_export(#[case] reason: Reason, #[case] is_handed_on: bool) {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut due = Due { reason, ..due(State::default()) };
        due.content.trace = trace.parse().ok();
        let mut event = Event::new(SOURCE, "t", Timestamp::UNIX_EPOCH, json!({}));
        assert!(traced(&mut event, &due, "clusters", "topic").is_disabled());
        assert_eq!(event.extensions.get(TRACEPARENT).map(String::as_str), is_handed_on.then_some(trace));
    }

    #[test]
    fn adapters_with_a_true_condition_are_named() {
        let rules = [("dns", "true"), ("pullsecret", "true")];
        let rules = rules.map(|(name, rule)| (name.to_owned(), Precondition::parse(rule).unwrap())).into();
        let projector = Projector::new(&rules, Template::default());
        let due = due(State { generation: Generation::FIRST, met: 2, ..State::default() });
        let event = event(&due, EventType::Reconcile, &projector, Timestamp::UNIX_EPOCH);
        assert_eq!(event.extensions.get(ADDRESSEES).map(String::as_str), Some("pullsecret"));
    }
}
