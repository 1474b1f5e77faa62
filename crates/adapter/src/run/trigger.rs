//! Reads the resource that an event is about, from any of the forms that events have.

use hyperfleet_client::TraceContext;
use message_broker::Event;
use serde_json::Value;

use crate::manifest::Trigger;

/// JSON pointers to the resource's id in an event's data: HyperFleet's form first, then those of older documents.
const IDS: [&str; 5] = ["/id", "/resource_id", "/resourceId", "/cluster_id", "/clusterId"];
/// Maximum length of an id, which is a DNS label.
const MAX_ID_LENGTH: usize = 63;

/// Returns the id of the resource that an event is about, and the event as a trigger; `None` if it is about another kind.
pub(crate) fn of(event: &Event, resource_type: &str) -> Result<Option<(String, Trigger)>, &'static str> {
    let data = event.json();
    let kind = data.and_then(|data| data.get("kind")).and_then(Value::as_str);
    if kind.is_some_and(|kind| !is_of(kind, resource_type)) {
        return Ok(None);
    }
    let named = IDS.iter().find_map(|pointer| data?.pointer(pointer)?.as_str());
    let last = event.subject.as_deref().and_then(|subject| subject.rsplit('/').next());
    let id = named.or(last).filter(|id| !id.is_empty()).ok_or("it names no resource: neither data.id nor a subject")?;
    if id.len() > MAX_ID_LENGTH || !fleet_model::id::is_dns_label(id) {
        return Err("its data.id is no resource's id");
    }
    let trace = event.extensions.get("traceparent").and_then(|trace| trace.parse::<TraceContext>().ok());
    Ok(Some((id.to_owned(), Trigger { event: Some(event.id.clone()), trace })))
}

/// Returns true if the kind is that of the resource type, as `NodePool` is of `nodepools`.
fn is_of(kind: &str, resource_type: &str) -> bool {
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let (kind, plural) = (plain(kind), plain(resource_type));
    plural == kind || plural.strip_suffix('s') == Some(&kind)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::hyperfleet(json!({"id": "cls-1", "kind": "Cluster", "generation": 1}), None, Ok(Some("cls-1")))]
    #[case::of_older_documents(json!({"resource_id": "cls-1", "resource_type": "cluster"}), None, Ok(Some("cls-1")))]
    #[case::subject_alone(json!(null), Some("clusters/cls-1"), Ok(Some("cls-1")))]
    #[case::another_kind(json!({"id": "np-1", "kind": "NodePool"}), None, Ok(None))]
    #[case::empty(json!({}), None, Err("it names no resource: neither data.id nor a subject"))]
    #[case::hostile(json!({"id": "../../secrets"}), None, Err("its data.id is no resource's id"))]
    fn events_name_a_resource(
        #[case] data: Value,
        #[case] subject: Option<&str>,
        #[case] expect: Result<Option<&str>, &str>,
    ) {
        let mut event = Event::new("s", "t", Timestamp::UNIX_EPOCH, data);
        event.subject = subject.map(str::to_owned);
        let found = of(&event, "clusters");
        assert_eq!(
            found.as_ref().map(|found| found.as_ref().map(|(id, _)| id.as_str())).map_err(|problem| *problem),
            expect
        );
    }
}
