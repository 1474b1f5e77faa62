//! Bodies of the wrong JSON types: refused as a validation error that names the member, and nothing is stored.

use serde_json::{Value, json};

use crate::rig::{DONE, FINALIZED, Rig, cluster, merged, path_of, report, unique};

rules! {
    shared: bodies_that_are_no_objects a_null_body_has_no_members creations patches reports forced_deletions
        times_are_malformed flat_paths_check_the_body_first unknown_kinds nul_is_a_rule_of_the_member;
    own: ;
}

/// JSON texts of each type.
const SAMPLES: &[(&str, &str)] =
    &[("an object", "{\"a\":1}"), ("an array", "[1]"), ("a string", "\"x\""), ("a number", "7"), ("a boolean", "true")];

/// Every value that is neither of the expected type nor null.
fn wrong(expected: &str) -> impl Iterator<Item = Value> + '_ {
    let others = SAMPLES.iter().filter(move |(kind, _)| *kind != expected);
    others.map(|(_, text)| serde_json::from_str(text).unwrap())
}

/// Checks that a body is refused because a member has the wrong type.
async fn refused(rig: &Rig, line: &str, body: &Value, (field, expected): (&str, &str)) {
    let answer = rig.ask(line, body.clone()).await;
    let answer = answer.refuses("400 VAL-000", &format!("field '{field}' must be {expected}"));
    let errors = answer.body()["errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 1, "{answer}");
    assert_eq!((&errors[0]["field"], &errors[0]["constraint"]), (&json!(field), &json!("format")), "{answer}");
    assert_eq!(errors[0].get("value"), None, "a value of an unexpected type is not repeated: {answer}");
}

/// Sets the member at a JSON pointer.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    *body.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    body
}

/// A cluster that is being deleted, and its path.
async fn going(rig: &Rig) -> String {
    let path = path_of(&rig.cluster(json!({})).await);
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    path
}

async fn bodies_that_are_no_objects(rig: &Rig) {
    let (path, going) = (path_of(&rig.cluster(json!({})).await), going(rig).await);
    let lines = [
        "POST /clusters".to_owned(),
        "POST /resources".to_owned(),
        "POST /nodepools".to_owned(),
        format!("POST {path}/nodepools"),
        format!("PATCH {path}"),
        format!("PUT {path}/statuses"),
        format!("POST {path}/statuses"),
        format!("POST {going}/force-delete"),
    ];
    for line in lines {
        for body in wrong("an object") {
            rig.ask(&line, body).await.refuses("400 VAL-000", "field '' must be an object");
        }
        for body in ["", " ", "{", "nonsense", "{\"kind\":}", "{'kind':1}"] {
            rig.send(&line, &[], body).await.problem("400 VAL-006");
        }
    }
}

async fn a_null_body_has_no_members(rig: &Rig) {
    let (path, going) = (path_of(&rig.cluster(json!({})).await), going(rig).await);
    for (line, problem, detail) in [
        ("POST /clusters".to_owned(), "400 VAL-000", "kind is required"),
        (format!("PATCH {path}"), "400 VAL-005", "at least one field must be provided for update"),
        (format!("PUT {path}/statuses"), "400 VAL-000", "adapter is required"),
        (format!("POST {going}/force-delete"), "400 VAL-000", "reason is required"),
    ] {
        rig.ask(&line, Value::Null).await.refuses(problem, detail);
    }
}

/// The members of a resource's body, each with the place of a sample and the type that it must have.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("/spec", "spec", "an object"),
    ("/labels", "labels", "an object"),
    ("/labels/l", "labels", "a string"),
    ("/references", "references", "an object"),
    ("/references/wif_config", "references", "an array"),
    ("/references/wif_config/0", "references", "an object"),
    ("/references/wif_config/0/id", "references.id", "a string"),
    ("/references/wif_config/0/kind", "references.kind", "a string"),
    ("/references/wif_config/0/href", "references.href", "a string"),
];

fn members() -> Value {
    let target = json!({ "id": "w", "kind": "WifConfig", "href": "/w" });
    json!({ "spec": {}, "labels": { "l": "v" }, "references": { "wif_config": [target] } })
}

async fn creations(rig: &Rig) {
    let name = unique("typed");
    let whole = merged(json!({ "kind": "Cluster", "name": name, "id": name }), members());
    let own = [("/kind", "kind", "a string"), ("/name", "name", "a string"), ("/id", "id", "a string")];
    for (pointer, field, expected) in own.iter().chain(MEMBERS) {
        for value in wrong(expected) {
            for line in ["POST /clusters", "POST /resources"] {
                refused(rig, line, &with(whole.clone(), pointer, value.clone()), (field, expected)).await;
            }
        }
    }
    let search = format!("name = '{name}'");
    assert_eq!(rig.list("/clusters", &[("search", &search)]).await.is(200).body()["total"], 0, "nothing is stored");
}

async fn patches(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let path = path_of(&created);
    for (pointer, field, expected) in MEMBERS {
        for value in wrong(expected) {
            refused(rig, &format!("PATCH {path}"), &with(members(), pointer, value), (field, expected)).await;
        }
    }
    let empty = "at least one field must be provided for update";
    for body in [json!({ "spec": null }), json!({ "labels": null }), json!({ "references": null }), json!({})] {
        rig.ask(&format!("PATCH {path}"), body).await.refuses("400 VAL-005", empty);
    }
    assert_eq!(rig.get(&path).await.is(200).body(), created, "nothing is stored");
}

async fn reports(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let metadata = json!({ "job_name": "j", "job_namespace": "n", "attempt": 1, "duration": "1s" });
    let mut whole = merged(report("dns", 1, DONE), json!({ "data": {}, "metadata": metadata }));
    whole["conditions"][0] = json!({ "type": "Available", "status": "True", "reason": "r", "message": "m" });
    let rows = [
        ("/adapter", "adapter", "a string"),
        ("/observed_generation", "observed_generation", "a number"),
        ("/conditions", "conditions", "an array"),
        ("/conditions/0", "conditions", "an object"),
        ("/conditions/0/type", "conditions.type", "a string"),
        ("/conditions/0/status", "conditions.status", "a string"),
        ("/conditions/0/reason", "conditions.reason", "a string"),
        ("/conditions/0/message", "conditions.message", "a string"),
        ("/data", "data", "an object"),
        ("/metadata", "metadata", "an object"),
        ("/metadata/job_name", "metadata.job_name", "a string"),
        ("/metadata/job_namespace", "metadata.job_namespace", "a string"),
        ("/metadata/attempt", "metadata.attempt", "a number"),
        ("/metadata/duration", "metadata.duration", "a string"),
    ];
    for (pointer, field, expected) in rows {
        for value in wrong(expected) {
            for method in ["PUT", "POST"] {
                let line = format!("{method} {path}/statuses");
                refused(rig, &line, &with(whole.clone(), pointer, value.clone()), (field, expected)).await;
            }
        }
    }
    // Whole numbers of 32 bits.
    for number in ["1.5", "1.0", "1e0", "2147483648", "-2147483649", "9223372036854775807", "18446744073709551615"] {
        let number: Value = serde_json::from_str(number).unwrap();
        for (pointer, field) in
            [("/observed_generation", "observed_generation"), ("/metadata/attempt", "metadata.attempt")]
        {
            let body = with(whole.clone(), pointer, number.clone());
            refused(rig, &format!("PUT {path}/statuses"), &body, (field, "a number")).await;
        }
    }
    for number in [json!(0), json!(-1), json!(i32::MIN), Value::Null] {
        let body = with(whole.clone(), "/observed_generation", number);
        let answer = rig.ask(&format!("PUT {path}/statuses"), body).await;
        answer.refuses("400 VAL-000", "observed_generation must be >= 1").at("observed_generation", "min");
    }
    assert_eq!(rig.get(&format!("{path}/statuses")).await.is(200).body()["total"], 0, "nothing is stored");
    rig.ask(&format!("PUT {path}/statuses"), whole).await.is(201);
}

async fn times_are_malformed(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for member in ["observed_time", "started_time", "completed_time"] {
        for value in SAMPLES.iter().map(|(_, text)| serde_json::from_str::<Value>(text).unwrap()) {
            let more = if member == "observed_time" {
                json!({ member: value })
            } else {
                json!({ "metadata": { member: value } })
            };
            rig.report(&path, merged(report("dns", 1, DONE), more)).await.problem("400 VAL-006");
        }
    }
}

async fn forced_deletions(rig: &Rig) {
    let path = going(rig).await;
    for value in wrong("a string") {
        refused(rig, &format!("POST {path}/force-delete"), &json!({ "reason": value }), ("reason", "a string")).await;
    }
    for (body, detail) in [
        (json!({}), "reason is required"),
        (json!({ "reason": null }), "reason is required"),
        (json!({ "reason": "" }), "reason is required"),
        (json!({ "reason": "x".repeat(1025) }), "reason must be at most 1024 characters"),
    ] {
        rig.ask(&format!("POST {path}/force-delete"), body).await.refuses("400 VAL-000", detail);
    }
    rig.report(&path, report("dns", 2, FINALIZED)).await.is(201);
    rig.get(&path).await.is(200);
}

async fn flat_paths_check_the_body_first(rig: &Rig) {
    let pool = json!({ "kind": "NodePool", "name": "pool", "spec": {} });
    for (more, detail) in [
        (json!({ "kind": null }), "kind is required"),
        (json!({ "kind": "Cluster" }), "kind must be 'NodePool'"),
        (json!({ "name": "" }), "name is required"),
        (json!({ "name": "p" }), "name must be at least 3 characters"),
        (json!({ "spec": null }), "spec is required"),
        (json!({ "labels": { "-a": "v" } }), "label validation failed"),
        (json!({ "name": 5 }), "field 'name' must be a string"),
    ] {
        rig.ask("POST /nodepools", merged(pool.clone(), more)).await.refuses("400 VAL-000", detail);
    }
    rig.ask("POST /nodepools", pool.clone()).await.problem("422 VAL-000");
    // Where the body names the kind, its name is checked by that kind's rules, and so after the path.
    for (more, problem, detail) in [
        (json!({ "spec": null }), "400 VAL-000", Some("spec is required")),
        (json!({ "labels": { "-a": "v" } }), "400 VAL-000", Some("label validation failed")),
        (json!({ "spec": null, "kind": "Planet" }), "400 VAL-000", Some("spec is required")),
        (json!({ "name": "p" }), "422 VAL-000", None),
        (json!({}), "422 VAL-000", None),
    ] {
        let answer = rig.ask("POST /resources", merged(pool.clone(), more)).await;
        assert!(detail.is_none_or(|detail| answer.problem(problem)["detail"] == detail), "{answer}");
        answer.problem(problem);
    }
}

async fn unknown_kinds(rig: &Rig) {
    for kind in ["Planet", "cluster", "", "Clu'ster"] {
        let answer = rig.ask("POST /resources", merged(cluster("abc"), json!({ "kind": kind }))).await;
        let answer = answer.refuses("400 VAL-000", &format!("Unknown entity kind: {kind}")).at("kind", "enum");
        assert_eq!(answer.body()["errors"][0]["value"], kind);
        if !kind.is_empty() {
            let answer = rig.list("/resources", &[("kind", kind)]).await;
            answer.refuses("400 VAL-000", &format!("Unknown entity kind: {kind}")).at("kind", "enum");
        }
    }
}

async fn nul_is_a_rule_of_the_member(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    for (more, detail) in [
        (json!({ "labels": { "a": "v\0" } }), "label validation failed"),
        (json!({ "labels": { "a\0b": "v" } }), "label validation failed"),
        (json!({ "kind": "Cluster\0" }), "kind must be 'Cluster'"),
    ] {
        rig.ask("POST /clusters", merged(cluster(&unique("nul")), more)).await.refuses("400 VAL-000", detail);
    }
    let value = "\0\u{1}\n\"'\\ä".repeat(64);
    let labels = json!({ "labels": { "key": value, value.clone(): "v" } });
    let answer = rig.ask(&format!("PATCH {}", path_of(&created)), labels).await;
    let answer = answer.refuses("400 VAL-000", "label validation failed").at("labels", "pattern");
    let errors = answer.at("labels[key]", "pattern").body()["errors"].clone();
    let values: Vec<&Value> = errors.as_array().unwrap().iter().map(|error| &error["value"]).collect();
    assert_eq!(values, [&json!(value), &json!(value)], "as it was sent");
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body(), created, "nothing is stored");
}
