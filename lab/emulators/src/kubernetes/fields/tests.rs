//! Field sets, differences and applications on plain documents.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::apply::Application;
use super::compare::{compare, owned};
use super::managed::{Writer, note};
use super::schema::Schema;
use super::set::Set;

const TYPED: Schema<'_> = Schema::Named { parent: "", name: "" };

fn writer(name: &str, apply: bool) -> Writer {
    Writer { name: name.to_owned(), apply, api_version: "v1".to_owned(), subresource: "" }
}

fn apply(schema: Schema<'_>, live: &Value, manager: &str, configuration: &Value) -> Value {
    let writer = writer(manager, true);
    let application = Application { schema, writer: &writer, force: false, now: Timestamp::UNIX_EPOCH };
    application.apply(live, configuration).unwrap()
}

#[test]
fn sets_are_written_as_they_are_read() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}}}, "f:finalizers": {"v:\"x\"": {}}},
    });
    let set = Set::read(&fields);
    assert_eq!(set.json(), fields);
    let paths = [
        ".metadata.labels",
        ".metadata.labels.a",
        ".spec.containers[name=\"main\"]",
        ".spec.containers[name=\"main\"].image",
        ".spec.finalizers[=\"x\"]",
    ];
    assert_eq!(set.paths(), paths);
}

#[test]
fn sets_are_combined_field_by_field() {
    let one = Set::read(&json!({"f:a": {}, "f:b": {".": {}, "f:c": {}}}));
    let other = Set::read(&json!({"f:b": {"f:c": {}, "f:d": {}}}));
    assert_eq!(one.minus(&other).json(), json!({"f:a": {}, "f:b": {}}));
    assert_eq!(one.and(&other).json(), json!({"f:b": {"f:c": {}}}));
    assert_eq!(one.clone().union(&other).json(), json!({"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}}));
    assert!(one.minus(&one).is_empty());
}

#[test]
fn differences_know_added_modified_and_removed() {
    let old =
        json!({"data": {"a": "1", "b": "1"}, "spec": {"containers": [{"name": "m", "image": "1"}, {"name": "n"}]}});
    let new = json!({"data": {"a": "2", "c": "1"}, "spec": {"containers": [{"name": "m", "image": "2"}]}});
    let difference = compare(TYPED, &old, &new);
    assert_eq!(difference.added.paths(), [".data.c"]);
    assert_eq!(difference.modified.paths(), [".data.a", ".spec.containers[name=\"m\"].image"]);
    assert_eq!(
        difference.removed.paths(),
        [".data.b", ".spec.containers[name=\"n\"]", ".spec.containers[name=\"n\"].name"]
    );
}

#[test]
fn ports_are_distinguished_by_number_and_protocol() {
    let port = |number: u16| json!({"containerPort": number});
    let document = json!({"spec": {"containers": [{"name": "m", "ports": [port(80), port(81)]}]}});
    let paths = owned(TYPED, &document).paths();
    let wanted = ".spec.containers[name=\"m\"].ports[containerPort=81,protocol=\"TCP\"]".to_owned();
    assert!(paths.contains(&wanted), "{paths:?}");
}

#[test]
fn custom_lists_are_what_their_schema_says() {
    let schema = json!({"properties": {"spec": {"properties": {
        "hosts": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "tags": {"x-kubernetes-list-type": "set"},
        "lines": {},
    }}}});
    let schema = Schema::CustomRoot(Some(&schema));
    let document = |host: &str, tag: &str, line: &str| json!({"spec": {"hosts": [{"name": host}], "tags": [tag], "lines": [line]}});
    let live = apply(schema, &json!({}), "one", &document("a", "x", "1"));
    let both = json!({"spec": {"hosts": [{"name": "b"}], "tags": ["y"]}});
    let live = apply(schema, &live, "two", &both);
    assert_eq!(live["spec"], json!({"hosts": [{"name": "a"}, {"name": "b"}], "tags": ["x", "y"], "lines": ["1"]}));
    let live = apply(schema, &live, "one", &json!({"spec": {"lines": ["2"]}}));
    assert_eq!(live["spec"], json!({"hosts": [{"name": "b"}], "tags": ["y"], "lines": ["2"]}));
}

#[test]
fn an_item_stays_while_a_manager_owns_a_part_of_it() {
    let container = |member: &str, value: &str| json!({"spec": {"containers": [{"name": "m", member: value}]}});
    let live = apply(TYPED, &json!({}), "one", &container("image", "1"));
    let live = apply(TYPED, &live, "two", &container("workingDir", "/"));
    let live = apply(TYPED, &live, "one", &json!({}));
    assert_eq!(live["spec"], json!({"containers": [{"name": "m", "workingDir": "/"}]}));
    let live = apply(TYPED, &live, "two", &json!({}));
    assert_eq!(live.get("spec"), None);
}

#[test]
fn a_reset_of_the_bookkeeping_begins_anew() {
    let now = Timestamp::UNIX_EPOCH;
    let mut live = json!({"metadata": {"uid": "u"}, "data": {"a": "1"}});
    note(TYPED, &json!({}), &mut live, &writer("one", false), now);
    let mut reset = live.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    note(TYPED, &live, &mut reset, &writer("one", false), now);
    assert_eq!(reset["metadata"].get("managedFields"), None);
    let adopted = apply(TYPED, &reset, "two", &json!({"data": {"a": "1"}}));
    let managers: Vec<_> = super::managed::entries(&adopted).into_iter().map(|entry| entry.manager).collect();
    assert_eq!(managers, ["two", "before-first-apply"]);
}
