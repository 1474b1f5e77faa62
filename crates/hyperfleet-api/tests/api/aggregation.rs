//! The conditions that the API derives from reports: statuses, reasons, messages and times.

use serde_json::{Value, json};

use crate::rig::{DONE, FINALIZED, Kind, Rig, merged, path_of, report, time, unique};

rules! {
    shared: from_missing_to_reconciled a_failure_and_its_repair mixed_generations conditions_of_adapters
        reports_of_old_generations_still_count deleting others_do_not_count;
    own: names_of_adapters order_of_conditions;
}

const ADAPTERS: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];
const FAILED: &str = "Available=False Applied=True Health=True";
const NOT_AVAILABLE: &str = "One or more required adapters report Available=False";

async fn conditions(rig: &Rig, path: &str) -> Value {
    rig.get(path).await.is(200).body()["status"]["conditions"].clone()
}

/// `type status generation reason`.
fn short(condition: &Value) -> String {
    let text = |name: &str| condition[name].as_str().unwrap_or("-").to_owned();
    format!("{} {} {} {}", text("type"), text("status"), condition["observed_generation"], text("reason"))
}

fn at(adapter: &str, generation: i64, conditions: &str, observed: &str) -> Value {
    merged(report(adapter, generation, conditions), json!({ "observed_time": observed }))
}

/// A time as the API returns it after storing it.
fn stored(time: &str) -> String {
    let time: jiff::Timestamp = time.parse().unwrap();
    jiff::Timestamp::from_microsecond(time.as_microsecond()).unwrap().to_string()
}

async fn from_missing_to_reconciled(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let path = path_of(&created);
    let times: Vec<String> = (0..4).map(|n| time(n * 2 - 20)).collect();
    for n in 0..3 {
        rig.report(&path, at(ADAPTERS[n], 1, DONE, &times[n])).await.is(201);
    }
    let three = conditions(rig, &path).await;
    assert_eq!(short(&three[0]), "Reconciled False 1 ReconciledMissingAdapters");
    let message = "Required adapters not reporting Available=True: [hypershift]. Currently reporting: [dns, pullsecret, \
                   validation]";
    assert_eq!(three[0]["message"], message);
    assert_eq!(three[0]["last_updated_time"], stored(&times[0]), "the earliest of those that reported");
    assert_eq!(three[0]["created_time"], created["created_time"]);
    assert_eq!(short(&three[1]), "LastKnownReconciled False 1 AdaptersMissingReports");
    rig.report(&path, at(ADAPTERS[3], 1, DONE, &times[3])).await.is(201);
    let all = conditions(rig, &path).await;
    assert_eq!(short(&all[0]), "Reconciled True 1 ReconciledAll");
    let message = "All required adapters reported Available=True or Finalized=True at the current generation";
    assert_eq!(all[0]["message"], message);
    assert_eq!(all[0]["last_updated_time"], stored(&times[0]));
    assert_eq!(all[0]["last_transition_time"], stored(&times[0]));
    assert_eq!(short(&all[1]), "LastKnownReconciled True 1 AllAdaptersReconciled");
    assert_eq!(all[1]["message"], "All required adapters report Available=True for the tracked generation");
    assert_eq!(all[1]["last_updated_time"], stored(&times[0]));
}

async fn a_failure_and_its_repair(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for (n, adapter) in ADAPTERS.iter().enumerate() {
        rig.report(&path, at(adapter, 1, DONE, &time(i64::try_from(n).unwrap() - 30))).await.is(201);
    }
    let failure = time(-10);
    rig.report(&path, at("dns", 1, FAILED, &failure)).await.is(201);
    let failed = conditions(rig, &path).await;
    assert_eq!(short(&failed[0]), "Reconciled False 1 ReconciledMissingAdapters");
    let all = "dns, hypershift, pullsecret, validation";
    let message = format!("Required adapters not reporting Available=True: [dns]. Currently reporting: [{all}]");
    assert_eq!(failed[0]["message"], message);
    assert_eq!(short(&failed[1]), "LastKnownReconciled False 1 AdapterReportedNotAvailable");
    assert_eq!(failed[1]["message"], NOT_AVAILABLE);
    rig.report(&path, at("dns", 1, DONE, &time(-5))).await.is(201);
    let repaired = conditions(rig, &path).await;
    assert_eq!(short(&repaired[0]), "Reconciled True 1 ReconciledAll");
    assert_eq!(short(&repaired[1]), "LastKnownReconciled True 1 AllAdaptersReconciled");
}

async fn mixed_generations(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for adapter in ADAPTERS {
        rig.report(&path, report(adapter, 1, DONE)).await.is(201);
    }
    let patched = rig.ask(&format!("PATCH {path}"), json!({ "spec": { "n": 2 } })).await.is(200).body();
    let before = patched["status"]["conditions"].clone();
    assert_eq!(short(&before[0]), "Reconciled False 2 ReconciledMissingAdapters");
    let all = "[dns, hypershift, pullsecret, validation]";
    let none = format!("Required adapters not reporting Available=True: {all}. Currently reporting: {all}");
    assert_eq!(before[0]["message"], none, "their reports are of an older generation");
    assert_eq!(before[0]["last_transition_time"], patched["updated_time"]);
    assert_eq!(before[0]["last_updated_time"], patched["updated_time"]);
    assert_eq!(short(&before[1]), "LastKnownReconciled True 1 AllAdaptersReconciled");
    rig.report(&path, report("dns", 2, DONE)).await.is(201);
    let mixed = conditions(rig, &path).await;
    assert_eq!(&short(&mixed[1])[..26], "LastKnownReconciled True 1", "it was True, and no report contradicts it");
    assert_eq!(mixed[1]["last_updated_time"], before[1]["last_updated_time"]);
    // A failure at a newer generation than the last known good one.
    rig.report(&path, report("dns", 2, FAILED)).await.is(201);
    assert_eq!(&short(&conditions(rig, &path).await[1])[..26], "LastKnownReconciled True 1");
    for adapter in ADAPTERS {
        rig.report(&path, report(adapter, 2, DONE)).await.is(201);
    }
    let all = conditions(rig, &path).await;
    assert_eq!(short(&all[0]), "Reconciled True 2 ReconciledAll");
    assert_eq!(short(&all[1]), "LastKnownReconciled True 2 AllAdaptersReconciled");
}

async fn conditions_of_adapters(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let path = path_of(&created);
    let first = time(-20);
    let body = json!({
        "adapter": "pullsecret", "observed_generation": 1, "observed_time": first,
        "conditions": [
            { "type": "Available", "status": "False", "reason": "Waiting", "message": "for the secret" },
            { "type": "Applied", "status": "True" }, { "type": "Health", "status": "True" },
        ],
    });
    rig.report(&path, body).await.is(201);
    let one = conditions(rig, &path).await[2].clone();
    assert_eq!(short(&one), "PullsecretSuccessful False 1 Waiting");
    assert_eq!(one["message"], "for the secret");
    assert_eq!(
        (&one["last_updated_time"], &one["last_transition_time"]),
        (&json!(stored(&first)), &json!(stored(&first)))
    );
    assert_eq!(one["created_time"], created["updated_time"], "of the resource's last change");
    let second = time(-10);
    rig.report(&path, at("pullsecret", 1, FAILED, &second)).await.is(201);
    let two = conditions(rig, &path).await[2].clone();
    assert_eq!(short(&two), "PullsecretSuccessful False 1 -");
    assert_eq!(two["last_updated_time"], stored(&second));
    assert_eq!(two["last_transition_time"], stored(&first), "kept while the status is the same");
    assert_eq!(two["created_time"], one["created_time"]);
    let third = time(-5);
    rig.report(&path, at("pullsecret", 1, DONE, &third)).await.is(201);
    assert_eq!(conditions(rig, &path).await[2]["last_transition_time"], stored(&third));
}

async fn reports_of_old_generations_still_count(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    rig.ask(&format!("PATCH {path}"), json!({ "spec": {} })).await.is(200);
    for adapter in ADAPTERS {
        rig.report(&path, report(adapter, 1, DONE)).await.is(201);
    }
    let actual = conditions(rig, &path).await;
    assert_eq!(short(&actual[0]), "Reconciled False 2 ReconciledMissingAdapters");
    assert_eq!(short(&actual[1]), "LastKnownReconciled True 1 AllAdaptersReconciled");
    assert_eq!(short(&actual[2]), "ValidationSuccessful True 1 -");
}

async fn deleting(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let pool = json!({ "kind": "NodePool", "name": unique("np"), "spec": {} });
    rig.create(&format!("{path}/nodepools"), pool).await;
    for adapter in ADAPTERS {
        rig.report(&path, report(adapter, 1, DONE)).await.is(201);
    }
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    let actual = conditions(rig, &path).await;
    assert_eq!(short(&actual[0]), "Reconciled False 2 ReconciledMissingAdapters");
    rig.report(&path, report("dns", 2, DONE)).await.is(201);
    let all = "[dns, hypershift, pullsecret, validation]";
    let message = format!("Required adapters not reporting Finalized=True: {all}. Currently reporting: {all}");
    assert_eq!(conditions(rig, &path).await[0]["message"], message, "available is not finalized");
    for adapter in ADAPTERS {
        rig.report(&path, report(adapter, 2, FINALIZED)).await.is(201);
    }
    let actual = conditions(rig, &path).await;
    assert_eq!(short(&actual[0]), "Reconciled True 2 ReconciledAll");
    assert_eq!(&short(&actual[2])[..28], "ValidationSuccessful False 2");
}

async fn others_do_not_count(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let before = conditions(rig, &path).await;
    rig.report(&path, report("placement", 1, FAILED)).await.is(201);
    assert_eq!(conditions(rig, &path).await, before);
}

async fn names_of_adapters(kind: Kind) {
    let yaml = "entities: [{ kind: Thing, plural: things, required_adapters: [my-adapter, pull-secret, x, a--b] }]";
    let rig = Rig::start(kind, yaml).await;
    let path = path_of(&rig.create("/things", json!({ "kind": "Thing", "name": "thing", "spec": {} })).await);
    for adapter in ["my-adapter", "pull-secret", "x", "a--b"] {
        rig.report(&path, report(adapter, 1, DONE)).await.is(201);
    }
    let actual = conditions(&rig, &path).await;
    let types: Vec<&str> = actual.as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    let expected = [
        "Reconciled",
        "LastKnownReconciled",
        "MyAdapterSuccessful",
        "PullSecretSuccessful",
        "XSuccessful",
        "ABSuccessful",
    ];
    assert_eq!(types, expected);
}

async fn order_of_conditions(kind: Kind) {
    let mapping = |kind: &str| {
        let expression = |source: &str| json!({ "expression": source });
        let output = json!({ "status": expression("'True'"), "reason": expression("''"), "message": expression("''") });
        json!({ "type": kind, "when": expression("true"), "output": output })
    };
    let mapped = [mapping("Zebra"), mapping("Ant")];
    let thing =
        json!({ "kind": "Thing", "plural": "things", "required_adapters": ["zulu", "alpha"], "conditions": mapped });
    let yaml = &json!({ "entities": [thing] }).to_string();
    let rig = Rig::start(kind, yaml).await;
    let path = path_of(&rig.create("/things", json!({ "kind": "Thing", "name": "thing", "spec": {} })).await);
    for adapter in ["alpha", "zulu"] {
        rig.report(&path, report(adapter, 1, DONE)).await.is(201);
    }
    let actual = conditions(&rig, &path).await;
    let types: Vec<&str> = actual.as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["Reconciled", "LastKnownReconciled", "ZuluSuccessful", "AlphaSuccessful", "Ant", "Zebra"]);
}
