//! Conditions that the configuration computes with CEL.

use serde_json::{Value, json};

use crate::rig::{DONE, Kind, Rig, merged, path_of, refusal, report};

rules! {
    shared: ;
    own: are_computed secrets_are_masked bounds adapters_with_unknown_status_are_left_out
        a_failing_expression_undoes_the_report invalid_expressions_are_refused_at_start;
}

fn entities(conditions: &str) -> String {
    format!(
        "entities:\n  - kind: Thing\n    plural: things\n    required_adapters: [one]\n    conditions:\n{conditions}"
    )
}

async fn thing(rig: &Rig, more: Value) -> String {
    path_of(&rig.create("/things", merged(json!({ "kind": "Thing", "name": "thing", "spec": {} }), more)).await)
}

async fn mapped(rig: &Rig, path: &str, kind: &str) -> Option<Value> {
    let conditions = rig.get(path).await.is(200).body()["status"]["conditions"].clone();
    conditions.as_array().unwrap().iter().find(|condition| condition["type"] == kind).cloned()
}

async fn are_computed(kind: Kind) {
    let yaml = entities(
        r#"
      - type: Big
        status: 'statuses.exists(s, s.adapter == "one" && has(s.data.count) && s.data.count + 1 > 4)'
        reason: 'resource.name + "Reason"'
        message: '"generation " + string(resource.generation) + " of " + string(size(statuses))'
"#,
    );
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({})).await;
    let with = |count: i64| merged(report("one", 1, DONE), json!({ "data": { "count": count } }));
    rig.report(&path, with(3)).await.is(201);
    assert_eq!(mapped(&rig, &path, "Big").await.unwrap()["status"], "False");
    rig.report(&path, with(4)).await.is(201);
    let big = mapped(&rig, &path, "Big").await.unwrap();
    assert_eq!((&big["status"], &big["reason"]), (&json!("True"), &json!("thingReason")));
    assert_eq!((&big["message"], &big["observed_generation"]), (&json!("generation 1 of 1"), &json!(1)));
    // A computed condition can be searched like any other.
    let found = async |status: &str| {
        let search = format!("status.conditions.Big = '{status}'");
        rig.list("/things", &[("search", &search)]).await.is(200).body()["total"].clone()
    };
    assert_eq!((found("True").await, found("False").await), (json!(1), json!(0)));
}

async fn secrets_are_masked(kind: Kind) {
    let yaml = entities(
        r"
      - { type: Shown, status: 'true', message: 'toJson(statuses) + toJson(resource.spec)' }
",
    );
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({ "spec": { "password": "spec-sesame", "open": "visible" } })).await;
    let data = json!({ "nested": { "apiToken": "data-sesame" }, "open": "seen" });
    rig.report(&path, merged(report("one", 1, DONE), json!({ "data": data }))).await.is(201);
    let message = mapped(&rig, &path, "Shown").await.unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("***REDACTED***") && message.contains("visible") && message.contains("seen"), "{message}");
    assert!(!message.contains("sesame"), "{message}");
}

async fn bounds(kind: Kind) {
    let yaml = entities(
        r#"
      - { type: Long, status: 'true', message: 'size(statuses) > 0 ? statuses[0].data.text : ""' }
      - { type: Reason, status: 'true', reason: 'size(statuses) > 0 ? statuses[0].data.text : ""' }
"#,
    );
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({})).await;
    let with = |count: usize| merged(report("one", 1, DONE), json!({ "data": { "text": "ä".repeat(count) } }));
    rig.report(&path, with(256)).await.is(201);
    assert_eq!(mapped(&rig, &path, "Reason").await.unwrap()["reason"], "ä".repeat(256));
    rig.report(&path, with(3000)).await.is(201);
    assert_eq!(mapped(&rig, &path, "Long").await.unwrap()["message"], "ä".repeat(2048));
    assert_eq!(mapped(&rig, &path, "Reason").await, None, "a reason that is too long");
}

async fn adapters_with_unknown_status_are_left_out(kind: Kind) {
    let yaml = entities(r"      - { type: Some, status: 'size(statuses) > 0' }");
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({})).await;
    rig.report(&path, report("two", 1, "Available=True Applied=True Health=True Extra=Unknown")).await.is(201);
    assert_eq!(mapped(&rig, &path, "Some").await.unwrap()["status"], "False");
    rig.report(&path, report("two", 1, DONE)).await.is(201);
    assert_eq!(mapped(&rig, &path, "Some").await.unwrap()["status"], "True");
}

async fn a_failing_expression_undoes_the_report(kind: Kind) {
    let yaml = entities(r"      - { type: Fragile, status: 'statuses.all(s, s.data.count > 1)' }");
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({})).await;
    let broken = merged(report("one", 1, DONE), json!({ "data": { "count": "sesame" } }));
    let before = rig.get(&path).await.is(200).body();
    let answer = rig.report(&path, broken).await;
    answer.problem("500 INT-001");
    assert!(!answer.text().contains("sesame"), "{answer}");
    assert_eq!(rig.get(&path).await.is(200).body(), before);
    assert_eq!(rig.get(&format!("{path}/statuses")).await.is(200).body()["total"], 0);
    rig.report(&path, merged(report("one", 1, DONE), json!({ "data": { "count": 2 } }))).await.is(201);
    assert_eq!(mapped(&rig, &path, "Fragile").await.unwrap()["status"], "True");
}

async fn invalid_expressions_are_refused_at_start(kind: Kind) {
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    for (condition, place) in [
        (r"{ type: Odd, status: 'statuses.' }".to_owned(), "Odd"),
        (r"{ type: Reconciled, status: 'true' }".to_owned(), "Reconciled"),
        (r"{ type: LastKnownReconciled, status: 'true' }".to_owned(), "LastKnownReconciled"),
        (format!("{{ type: {}, status: 'true' }}", "A".repeat(101)), "100"),
        (format!("{{ type: Deep, status: '{deep} == 1' }}"), "Deep"),
        ("{ type: Same, status: 'true' }\n      - { type: Same, status: 'true' }".to_owned(), "Same"),
    ] {
        let fault = refusal(kind, &entities(&format!("      - {condition}\n"))).await;
        assert!(fault.contains(place), "{fault}");
    }
}
