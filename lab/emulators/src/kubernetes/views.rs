//! Views of objects: whole, as list items, metadata only, and Events in the form of either of their groups.

use serde_json::{Map, Value, json};

use super::resources::Resource;
use super::value::set;

/// The members of an Event in the core group, and what they are called in `events.k8s.io`.
const EVENT: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

fn is_event_view(resource: &Resource) -> bool {
    resource.group == "events.k8s.io" && resource.plural == "events"
}

fn renamed(object: &Value, name_of: impl Fn(&str) -> Option<&'static str>) -> Value {
    let members = object.as_object().into_iter().flatten();
    let renamed =
        members.map(|(name, value)| (name_of(name).map_or_else(|| name.clone(), str::to_owned), value.clone()));
    Value::Object(renamed.collect::<Map<_, _>>())
}

/// The whole object.
pub(crate) fn present(view: &Resource, object: &Value) -> Value {
    let mut shown = if is_event_view(view) {
        renamed(object, |name| EVENT.iter().find(|row| row.0 == name).map(|row| row.1))
    } else {
        object.clone()
    };
    set(&mut shown, &["apiVersion"], view.api_version());
    shown
}

/// The stored form of a caller's object.
pub(crate) fn absorb(view: &Resource, mut object: Value) -> Value {
    if is_event_view(view) && object.is_object() {
        object = renamed(&object, |name| EVENT.iter().find(|row| row.1 == name).map(|row| row.0));
        if super::value::text(&object, "/apiVersion") == "events.k8s.io/v1" {
            set(&mut object, &["apiVersion"], "v1");
        }
    }
    object
}

/// An item of a list: typed ones do not repeat their kind.
pub(crate) fn item(view: &Resource, object: &Value) -> Value {
    let mut item = present(view, object);
    if let (None, Some(members)) = (&view.custom, item.as_object_mut()) {
        members.remove("apiVersion");
        members.remove("kind");
    }
    item
}

pub(crate) fn metadata_only(object: &Value) -> Value {
    let metadata = object.get("metadata");
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}
