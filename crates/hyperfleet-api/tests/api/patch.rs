//! Changing the desired state, and optimistic concurrency with `If-Match`.

use serde_json::{Value, json};

use crate::rig::{DONE, Rig, path_of, report, unique};

rules! {
    shared: spec_and_labels_are_replaced_as_a_whole a_patch_without_a_difference_has_no_effect invalid_bodies
        conditions_are_derived_again soft_deleted_resources_are_not_changed if_match absent;
    own: ;
}

async fn spec_and_labels_are_replaced_as_a_whole(rig: &Rig) {
    let spec = json!({ "a": { "b": 1, "c": 2 }, "d": 3 });
    let created = rig.cluster(json!({ "spec": spec, "labels": { "one": "1", "two": "2" } })).await;
    let line = format!("PATCH {}", path_of(&created));
    let patched = rig.ask(&line, json!({ "spec": { "a": { "b": 9 } } })).await.is(200).body();
    assert_eq!(patched["spec"], json!({ "a": { "b": 9 } }));
    assert_eq!(patched["labels"], created["labels"], "what is absent stays");
    assert_eq!(patched["generation"], 2);
    assert_eq!(patched["created_time"], created["created_time"]);
    assert!(patched["updated_time"].as_str() > created["updated_time"].as_str());
    let patched = rig.ask(&line, json!({ "labels": { "two": "x" } })).await.is(200).body();
    assert_eq!((&patched["labels"], &patched["generation"]), (&json!({ "two": "x" }), &json!(3)));
    assert_eq!(patched["spec"], json!({ "a": { "b": 9 } }));
    let patched = rig.ask(&line, json!({ "labels": {}, "spec": {} })).await.is(200).body();
    assert_eq!((patched.get("labels"), &patched["generation"], &patched["spec"]), (None, &json!(4), &json!({})));
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body(), patched);
}

async fn a_patch_without_a_difference_has_no_effect(rig: &Rig) {
    let created = rig.cluster(json!({ "spec": { "a": 1, "b": [1, { "c": null }] }, "labels": { "l": "v" } })).await;
    let line = format!("PATCH {}", path_of(&created));
    for same in [
        json!({ "spec": { "b": [1, { "c": null }], "a": 1 } }),
        json!({ "labels": { "l": "v" } }),
        json!({ "spec": { "a": 1, "b": [1, { "c": null }] }, "labels": { "l": "v" } }),
    ] {
        assert_eq!(rig.ask(&line, same).await.is(200).body(), created);
    }
    // References that are given always count as a change.
    let patched = rig.ask(&line, json!({ "references": {} })).await.is(200).body();
    assert_eq!(patched["generation"], 2);
}

async fn invalid_bodies(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let line = format!("PATCH {}", path_of(&created));
    let empty = "at least one field must be provided for update";
    for body in [json!({}), json!({ "spec": null }), json!({ "labels": null, "references": null, "spec": null })] {
        rig.ask(&line, body).await.refuses("400 VAL-005", empty);
    }
    for unknown in ["name", "kind", "generation", "status", "nonsense", "Spec", "tenancy", "id"] {
        let body = json!({ "spec": {}, unknown: "x" });
        let problem = rig.ask(&line, body).await.problem("400 VAL-006");
        assert!(problem["detail"].as_str().unwrap().contains(unknown), "{problem}");
    }
    for body in ["", "{\"spec\":", "spec"] {
        rig.send(&line, &[], body).await.problem("400 VAL-006");
    }
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body(), created);
}

async fn conditions_are_derived_again(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let path = path_of(&created);
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        rig.report(&path, report(adapter, 1, DONE)).await.is(201);
    }
    let before = rig.get(&path).await.is(200).body();
    assert_eq!(before["status"]["conditions"][0]["status"], "True");
    let after = rig.ask(&format!("PATCH {path}"), json!({ "spec": { "x": 1 } })).await.is(200).body();
    let reconciled = &after["status"]["conditions"][0];
    assert_eq!((&reconciled["status"], &reconciled["observed_generation"]), (&json!("False"), &json!(2)));
    assert_eq!(reconciled["last_transition_time"], after["updated_time"]);
    assert_eq!(after["status"]["conditions"][1]["status"], "True", "what was good last is still known");
}

async fn soft_deleted_resources_are_not_changed(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let (path, id) = (path_of(&created), created["id"].as_str().unwrap());
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    let before = rig.get(&path).await.is(200).body();
    let answer = rig.ask(&format!("PATCH {path}"), json!({ "spec": { "x": 1 } })).await;
    answer.refuses("409 CNF-003", &format!("Cluster '{id}' is marked for deletion"));
    assert_eq!(rig.get(&path).await.is(200).body(), before);
}

async fn if_match(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let line = format!("PATCH {}", path_of(&created));
    let send = async |value: &str, spec: Value| {
        rig.send(&line, &[("if-match", value)], json!({ "spec": spec }).to_string()).await
    };
    assert_eq!(send("\"1\"", json!({ "a": 1 })).await.is(200).body()["generation"], 2);
    send("\"1\"", json!({ "a": 2 })).await.problem("412 CNF-002");
    send("\"3\"", json!({ "a": 2 })).await.problem("412 CNF-002");
    // A stale precondition is refused even if the patch has no difference.
    send("\"1\"", json!({ "a": 1 })).await.problem("412 CNF-002");
    assert_eq!(send("\"2\"", json!({ "a": 3 })).await.is(200).body()["generation"], 3);
    let malformed = [
        "1",
        "\"\"",
        "\"x\"",
        "\"1",
        "1\"",
        "\"-1\"",
        "\"0x1\"",
        "\"1\", \"2\"",
        "W/\"3\"",
        "\"1.0\"",
        "\"99999999999999999999\"",
    ];
    for malformed in malformed {
        send(malformed, json!({ "a": 4 })).await.problem("400 VAL-000");
    }
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body()["generation"], 3);
}

async fn absent(rig: &Rig) {
    let id = unique("absent");
    let answer = rig.ask(&format!("PATCH /clusters/{id}"), json!({ "spec": {} })).await;
    answer.refuses("404 NTF-001", &format!("Cluster with id='{id}' not found"));
}
