//! Conditions that the configuration computes with CEL.

use serde_json::{Value, json};

use crate::rig::{DONE, Kind, Rig, merged, path_of, refusal, report};

rules! {
    shared: ;
    own: are_computed secrets_are_masked bounds adapters_with_unknown_status_are_left_out
        a_failing_expression_undoes_the_report invalid_expressions_are_refused_at_start the_forms_of_hyperfleets_guide;
}

/// A kind with these conditions, each with its type and its expressions for status, reason and message.
fn entities(conditions: &[[&str; 4]]) -> String {
    let conditions =
        conditions.iter().map(|[kind, status, reason, message]| mapping(kind, "true", [status, reason, message]));
    let conditions: Vec<Value> = conditions.collect();
    let kind = json!({ "kind": "Thing", "plural": "things", "required_adapters": ["one"], "conditions": conditions });
    json!({ "entities": [kind] }).to_string()
}

fn mapping(kind: &str, when: &str, [status, reason, message]: [&str; 3]) -> Value {
    let expression = |source: &str| json!({ "expression": source });
    let output = json!({ "status": expression(status), "reason": expression(reason), "message": expression(message) });
    json!({ "type": kind, "when": expression(when), "output": output })
}

async fn thing(rig: &Rig, more: Value) -> String {
    path_of(&rig.create("/things", merged(json!({ "kind": "Thing", "name": "thing", "spec": {} }), more)).await)
}

async fn mapped(rig: &Rig, path: &str, kind: &str) -> Option<Value> {
    let conditions = rig.get(path).await.is(200).body()["status"]["conditions"].clone();
    conditions.as_array().unwrap().iter().find(|condition| condition["type"] == kind).cloned()
}

async fn are_computed(kind: Kind) {
    let yaml = entities(&[[
        "Big",
        "statuses.exists(s, s.adapter == 'one' && has(s.data.count) && s.data.count + 1 > 4)",
        "resource.name + 'Reason'",
        "'generation ' + string(resource.generation) + ' of ' + string(size(statuses))",
    ]]);
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
    let yaml = entities(&[["Shown", "true", "''", "toJson(statuses) + toJson(resource.spec)"]]);
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({ "spec": { "password": "spec-sesame", "open": "visible" } })).await;
    let data = json!({ "nested": { "apiToken": "data-sesame" }, "open": "seen" });
    rig.report(&path, merged(report("one", 1, DONE), json!({ "data": data }))).await.is(201);
    let message = mapped(&rig, &path, "Shown").await.unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("***REDACTED***") && message.contains("visible") && message.contains("seen"), "{message}");
    assert!(!message.contains("sesame"), "{message}");
}

async fn bounds(kind: Kind) {
    let text = "size(statuses) > 0 ? statuses[0].data.text : ''";
    let yaml = entities(&[["Long", "true", "''", text], ["Reason", "true", text, "''"]]);
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
    let yaml = entities(&[["Some", "size(statuses) > 0", "''", "''"]]);
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({})).await;
    rig.report(&path, report("two", 1, "Available=True Applied=True Health=True Extra=Unknown")).await.is(201);
    assert_eq!(mapped(&rig, &path, "Some").await.unwrap()["status"], "False");
    rig.report(&path, report("two", 1, DONE)).await.is(201);
    assert_eq!(mapped(&rig, &path, "Some").await.unwrap()["status"], "True");
}

async fn a_failing_expression_undoes_the_report(kind: Kind) {
    let yaml = entities(&[["Fragile", "statuses.all(s, s.data.count > 1)", "''", "''"]]);
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
    let deep = format!("{}1{} == 1", "(".repeat(5000), ")".repeat(5000));
    let good = ["true", "''", "''"];
    let of_type = |kind: &str| mapping(kind, "true", good);
    let long = "A".repeat(101);
    let missing = |member: &str| {
        let mut mapping = of_type("Odd");
        mapping["output"].as_object_mut().unwrap().remove(member);
        mapping
    };
    for (conditions, fault) in [
        (json!([mapping("Odd", "statuses.", good)]), "entities[0].conditions[0].when.expression: 'statuses.'"),
        (
            json!([mapping("Odd", "true", ["1 +", "''", "''"])]),
            "entities[0].conditions[0].output.status.expression: '1 +'",
        ),
        (json!([mapping("Odd", "true", ["true", "", "''"])]), "entities[0].conditions[0].output.reason.expression: ''"),
        (
            json!([mapping("Odd", "true", ["true", "''", "size()["])]),
            "entities[0].conditions[0].output.message.expression",
        ),
        (json!([mapping("Deep", "true", [&deep, "''", "''"])]), "entities[0].conditions[0].output.status.expression"),
        (json!([of_type("")]), "entities[0].conditions[0].type: '' is empty"),
        (json!([of_type("Fine"), of_type("Reconciled")]), "entities[0].conditions[1].type: 'Reconciled' is reserved"),
        (json!([of_type("LastKnownReconciled")]), "entities[0].conditions[0].type: 'LastKnownReconciled' is reserved"),
        (json!([of_type("OneSuccessful")]), "entities[0].conditions[0].type: 'OneSuccessful' is reserved"),
        (json!([of_type("OtherSuccessful")]), "entities[0].conditions[0].type: 'OtherSuccessful' is reserved"),
        (json!([of_type(&long)]), "has more than 100 characters"),
        (json!([of_type("Same"), of_type("Same")]), "entities[0].conditions[1].type: 'Same' is defined twice"),
        (json!([missing("reason")]), "entities[0].conditions[0].output"),
        (json!([{ "type": "Old", "status": "true" }]), "entities[0].conditions[0].status: unknown key"),
    ] {
        let entities = json!([
            { "kind": "Thing", "plural": "things", "required_adapters": ["one"], "conditions": conditions },
            { "kind": "Other", "plural": "others", "required_adapters": ["other"] },
        ]);
        let refused = refusal(kind, &json!({ "entities": entities }).to_string()).await;
        assert!(refused.contains(fault), "{fault}: {refused}");
    }
}

/// The forms of conditions in HyperFleet's guide: of one adapter, of several adapters, of a value of an adapter's data.
fn forms() -> Value {
    let of = |adapter: &str, kind: &str, member: &str| {
        format!("statuses.filter(s, s.adapter == '{adapter}')[0].conditions.filter(c, c.type == '{kind}')[0].{member}")
    };
    let has = |adapter: &str, kind: &str| {
        format!("statuses.exists(s, s.adapter == '{adapter}' && s.conditions.exists(c, c.type == '{kind}'))")
    };
    let (ready, cert) = (has("zone", "Ready"), has("cert", "Available"));
    let both =
        format!("{} == 'True' && {} == 'True'", of("zone", "Ready", "status"), of("cert", "Available", "status"));
    let left = "statuses.filter(s, s.adapter == 'zone')[0].?data.?left.orValue(0)";
    let message = format!("'zone: ' + {}", of("zone", "Ready", "message"));
    json!([
        mapping("ZoneReady", &ready, [&of("zone", "Ready", "status"), &of("zone", "Ready", "reason"), &message]),
        mapping(
            "Healthy",
            &format!("{ready} && {cert}"),
            [
                &format!("{both} ? 'True' : 'False'"),
                &format!("{both} ? 'AllHealthy' : 'Degraded'"),
                "'of two adapters'",
            ]
        ),
        mapping(
            "Quota",
            &format!("{ready} && statuses.exists(s, s.?data.?left.hasValue())"),
            [
                &format!("{left} > 10 ? 'true' : 'FALSE'"),
                &format!("{left} > 10 ? 'Sufficient' : 'Low'"),
                &format!("'left: ' + string({left})"),
            ]
        ),
    ])
}

async fn the_forms_of_hyperfleets_guide(kind: Kind) {
    let yaml = json!({ "entities": [{ "kind": "Thing", "plural": "things", "conditions": forms() }] }).to_string();
    let rig = Rig::start(kind, &yaml).await;
    let path = thing(&rig, json!({})).await;
    let conditions = async || rig.get(&path).await.is(200).body()["status"]["conditions"].clone();
    assert_eq!(conditions().await, json!([]), "no report, no condition");
    let report = |adapter: &str, ready: &str, data: Value| {
        let mut body = merged(report(adapter, 1, DONE), json!({ "data": data }));
        let own = json!({ "type": "Ready", "status": ready, "reason": "Because", "message": "text" });
        body["conditions"].as_array_mut().unwrap().push(own);
        body
    };
    rig.report(&path, report("zone", "True", json!({ "left": 25 }))).await.is(201);
    let first = conditions().await;
    let short = |conditions: &Value| {
        let one = |one: &Value| format!("{} {} {} {}", one["type"], one["status"], one["reason"], one["message"]);
        conditions.as_array().unwrap().iter().map(one).collect::<Vec<_>>().join("; ").replace('"', "")
    };
    assert_eq!(short(&first), "Quota True Sufficient left: 25; ZoneReady True Because zone: text", "sorted by type");
    rig.report(&path, report("cert", "True", json!({}))).await.is(201);
    let second = conditions().await;
    assert_eq!(short(&second).split("; ").next().unwrap(), "Healthy True AllHealthy of two adapters");
    let times = |condition: &Value| {
        ["created_time", "last_updated_time", "last_transition_time"].map(|name| condition[name].clone())
    };
    let (before, after) = (times(&first[1]), times(&second[2]));
    assert_eq!((&before[0], &before[2]), (&after[0], &after[2]), "created and changed at the first report");
    assert!(before[1].as_str() < after[1].as_str(), "updated at each evaluation");
    rig.report(&path, report("zone", "False", json!({ "left": 5 }))).await.is(201);
    let third = conditions().await;
    let expected =
        "Healthy False Degraded of two adapters; Quota False Low left: 5; ZoneReady False Because zone: text";
    assert_eq!(short(&third), expected);
    let changed = times(&third[2]);
    assert_eq!((&changed[0], &changed[1]), (&before[0], &changed[2]), "created once, changed now");
    rig.report(&path, report("zone", "Unknown", json!({}))).await.is(201);
    assert_eq!(conditions().await, json!([]), "an adapter with an unknown condition counts as none");
}
