//! Selections of fields: parsing, refusals and results.

use rstest::rstest;

use super::*;

fn spec() -> Json {
    let lists = json!([0, {"d": 1}, [{"d": 2, "e": 3}], "d"]);
    json!({"platform": {"type": "gcp", "zone": "z"}, "b": [1], "c": lists, "\"quoted\"": "\\"})
}

#[rstest]
#[case(&["name"], json!({"id": "1", "name": "n"}))]
#[case(&["id"], json!({"id": "1"}))]
#[case(&["name, generation", "", "deleted_by"], json!({"id": "1", "name": "n", "generation": 2}))]
#[case(&["spec.platform"], json!({"id": "1", "spec": {"platform": {"type": "gcp", "zone": "z"}}}))]
#[case(&["spec.platform.type,spec.b"], json!({"id": "1", "spec": {"platform": {"type": "gcp"}, "b": [1]}}))]
#[case(&["spec,spec.b"], json!({"id": "1", "spec": spec()}))]
#[case(&["spec.b,spec"], json!({"id": "1", "spec": spec()}))]
#[case(&["spec.b.c"], json!({"id": "1", "spec": {"b": []}}))]
#[case(&["spec.c.d"], json!({"id": "1", "spec": {"c": [{"d": 1}, [{"d": 2}]]}}))]
#[case(&["spec.\"quoted\""], json!({"id": "1", "spec": {"\"quoted\"": "\\"}}))]
#[case(&["spec.nowhere"], json!({"id": "1", "spec": {}}))]
#[case(&["labels.a.io/b"], json!({"id": "1", "labels": {"a.io/b": "x"}}))]
#[case(&["status.conditions.type"], json!({"id": "1", "status": {"conditions": [{"type": "Reconciled"}]}}))]
fn a_selection_is_applied(#[case] items: &[&str], #[case] expected: Json) {
    let resource = json!({
        "id": "1", "name": "n", "generation": 2, "labels": {"a.io/b": "x", "c": "y"},
        "spec": spec(),
        "status": {"conditions": [{"type": "Reconciled", "status": "True"}]},
    });
    let fields = Fields::parse(&texts(items)).unwrap().unwrap();
    assert_eq!(fields.apply(&resource.to_string()).unwrap(), expected.to_string());
}

#[test]
fn damaged_objects_are_errors() {
    let fields = Fields::parse(&texts(&["name", "spec.b"])).unwrap().unwrap();
    for object in ["", "[]", "{", "{\"name\": 1, \"spec\": {\"b\": }}", "{} {}"] {
        assert!(fields.apply(object).is_err(), "{object}");
    }
}

#[test]
fn an_empty_selection_selects_everything() {
    assert_eq!(Fields::parse(&texts(&["", " , "])), Ok(None));
}

#[rstest]
#[case("nom")]
#[case("name.x")]
#[case("status.adaptors")]
#[case("owner_references.name")]
#[case("spec.")]
#[case("spec..a")]
#[case(".id")]
#[case("Spec")]
fn a_selection_is_refused(#[case] name: &str) {
    let error = Fields::parse(&texts(&["id", name])).unwrap_err();
    let expected = format!(
        "fields: '{name}' is unknown: choose from id, kind, name, href, spec, labels, tenancy, generation, status, \
         created_time, updated_time, created_by, updated_by, deleted_time, deleted_by, owner_references, references, \
         traceparent, or a path such as spec.platform"
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.code(), "VAL-000");
}

#[test]
fn paths_are_limited() {
    let path = |steps: usize| texts(&[&format!("spec{}", ".a".repeat(steps))]);
    assert!(Fields::parse(&path(31)).is_ok());
    assert!(Fields::parse(&path(32)).is_err());
}
