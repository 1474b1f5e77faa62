//! The history of a resource's conditions: the last 50 transitions, newest first.

use serde_json::{Value, json};

use crate::rig::{DONE, Rig, merged, path_of, report, time, unique};

rules! {
    shared: begins_with_the_creation a_new_reason_is_a_transition lists_transitions_only keeps_fifty pages absent;
    own: ;
}

async fn items(rig: &Rig, path: &str) -> Vec<Value> {
    let body = rig.get(&format!("{path}/statuses/history?size=100")).await.is(200).body();
    assert_eq!(body["total"], body["items"].as_array().unwrap().len());
    body["items"].as_array().unwrap().clone()
}

fn short(item: &Value) -> String {
    let text = |name: &str| item[name].as_str().unwrap_or("-").to_owned();
    format!("{} {} {}>{}", text("adapter"), text("type"), text("from"), text("to"))
}

async fn begins_with_the_creation(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let items = items(rig, &path_of(&created)).await;
    let mut received: Vec<String> = items.iter().map(short).collect();
    received.sort();
    assert_eq!(received, ["hyperfleet-api LastKnownReconciled ->False", "hyperfleet-api Reconciled ->False"]);
    assert_eq!(items[0]["observed_generation"], 1);
    assert_eq!(items[0]["time"], created["created_time"]);
    assert!(items.iter().all(|item| item["reason"].is_string() && item["message"].is_string()));
}

async fn lists_transitions_only(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let at = |seconds: i64, conditions: &str| {
        merged(report("dns", 1, conditions), json!({ "observed_time": time(seconds), "data": { "n": seconds } }))
    };
    rig.report(&path, at(-30, "Available=False Applied=True Health=True")).await.is(201);
    let first = items(rig, &path).await;
    let of_adapter: Vec<String> = first.iter().map(short).filter(|line| line.starts_with("dns ")).collect();
    for kind in ["Available ->False", "Applied ->True", "Health ->True"] {
        assert!(of_adapter.contains(&format!("dns {kind}")), "{of_adapter:?}");
    }
    rig.report(&path, at(-20, "Available=False Applied=True Health=True")).await.is(201);
    assert_eq!(items(rig, &path).await, first, "the same status again is no transition");
    rig.report(&path, at(-10, DONE)).await.is(201);
    let after = items(rig, &path).await;
    let new: Vec<String> = after[..after.len() - first.len()].iter().map(short).collect();
    assert!(new.contains(&"dns Available False>True".to_owned()), "{new:?}");
    assert!(new.iter().all(|line| !line.contains("Applied") && !line.contains("Health")), "{new:?}");
    assert_eq!(after[after.len() - first.len()..], first, "what was is not changed");
}

/// "Since when does this hold" has an answer: in the condition and in the history.
async fn a_new_reason_is_a_transition(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let of = |seconds: i64, reason: &str| {
        let mut body = merged(report("dns", 1, DONE), json!({ "observed_time": time(seconds) }));
        body["conditions"][0] = json!({ "type": "Available", "status": "False", "reason": reason, "message": "m" });
        body
    };
    let condition = async || rig.get(&path).await.is(200).body()["status"]["conditions"][2].clone();
    rig.report(&path, of(-40, "Waiting")).await.is(201);
    let first = condition().await;
    assert_eq!((&first["type"], &first["reason"]), (&json!("DnsSuccessful"), &json!("Waiting")));
    assert_eq!(first["reason_since_time"], first["last_transition_time"]);
    rig.report(&path, of(-30, "Waiting")).await.is(201);
    assert_eq!(condition().await["reason_since_time"], first["reason_since_time"], "the same reason");
    let before = items(rig, &path).await.len();
    rig.report(&path, of(-20, "Broken")).await.is(201);
    let second = condition().await;
    assert_eq!(second["last_transition_time"], first["last_transition_time"], "the status is the same");
    assert_eq!(second["reason_since_time"], second["last_updated_time"]);
    let after = items(rig, &path).await;
    let new: Vec<String> =
        after[..after.len() - before].iter().map(|item| format!("{} {}", short(item), item["reason"])).collect();
    let expected = ["dns Available False>False \"Broken\"", "hyperfleet-api DnsSuccessful False>False \"Broken\""];
    assert_eq!(new.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), expected.into());
    assert!(after[..2].iter().all(|item| item["time"] == second["reason_since_time"]), "{after:?}");
    let found = async |search: &str| {
        let search = format!("{search} and name = '{}'", rig.get(&path).await.is(200).body()["name"].as_str().unwrap());
        rig.list("/clusters", &[("search", &search)]).await.is(200).body()["total"].clone()
    };
    assert_eq!(found("status.conditions.DnsSuccessful.reason = 'Broken'").await, 1);
    assert_eq!(found("'Broken' = status.conditions.DnsSuccessful.reason").await, 1);
    assert_eq!(found("status.conditions.DnsSuccessful.reason = 'Waiting'").await, 0);
    assert_eq!(found("status.conditions.DnsSuccessful.reason != 'Waiting'").await, 1);
    assert_eq!(found("status.conditions.HypershiftSuccessful.reason is null").await, 1);
}

async fn keeps_fifty(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for n in 0..60 {
        let status = if n % 2 == 0 { "True" } else { "False" };
        let body = report("other", 1, &format!("Available={status} Applied=True Health=True"));
        let body = merged(body, json!({ "observed_time": time(n - 60) }));
        rig.report(&path, body).await.is(201);
    }
    let items = items(rig, &path).await;
    assert_eq!(items.len(), 50);
    assert_eq!(short(&items[0]), "other Available True>False");
    let times: Vec<&str> = items.iter().map(|item| item["time"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "{times:?}");
}

async fn pages(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for adapter in ["a", "b", "c", "d"] {
        rig.report(&path, report(adapter, 1, DONE)).await.is(201);
    }
    let all = items(rig, &path).await;
    let mut actual = Vec::new();
    for page in 1..=4 {
        let body = rig.get(&format!("{path}/statuses/history?size=4&page={page}")).await.is(200).body();
        assert_eq!((&body["page"], &body["total"]), (&json!(page), &json!(all.len())));
        actual.extend(body["items"].as_array().unwrap().clone());
    }
    assert_eq!(actual, all);
    rig.get(&format!("{path}/statuses/history?size=0")).await.refuses("400 VAL-000", "Invalid query parameters");
}

async fn absent(rig: &Rig) {
    let id = unique("absent");
    let answer = rig.get(&format!("/clusters/{id}/statuses/history")).await;
    answer.refuses("404 NTF-001", &format!("Cluster with id='{id}' not found"));
    let path = path_of(&rig.cluster(json!({})).await);
    let answer = rig.ask(&format!("PUT {path}/statuses/history"), json!({})).await.is(405);
    assert!(answer.header("allow").contains("GET"), "{answer}");
}
