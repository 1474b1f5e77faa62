//! Tombstones: a forced deletion leaves one until its copies are swept.

use std::sync::Arc;

use hyperfleet_api::store::Store;
use serde_json::{Value, json};

use crate::rig::tokens::{Issuer, granted};
use crate::rig::{DONE, Kind, Rig, cluster, path_of, report, unique};

rules! {
    shared: a_forced_deletion_leaves_a_tombstone swept_copies_leave_the_tombstone invalid_reports_of_a_sweep
        other_deletions_leave_none children_have_tombstones_of_their_own;
    own: only_sweepers_see_and_sweep they_outlive_a_restart_and_not_their_retention;
}

const CLUSTERS: &str = "/tombstones/clusters";

fn copy(name: &str) -> Value {
    json!({ "kind": "secret", "project": "p-1", "name": name })
}

/// Removes a cluster by force, about which an adapter has reported these copies; returns it as it last was.
async fn removed(rig: &Rig, copies: &[Value]) -> Value {
    let path = path_of(&rig.cluster(json!({})).await);
    let mut of = report("pullsecret", 1, DONE);
    of["data"] = json!({ "copies": copies, "more": 1 });
    rig.report(&path, of).await.is(201);
    let last = rig.ask(&format!("DELETE {path}"), None).await.is(202).body();
    rig.ask(&format!("POST {path}/force-delete"), json!({ "reason": "the region is lost" })).await.is(204);
    last
}

/// The tombstone of a resource, from whichever page has it.
async fn tombstone(rig: &Rig, list: &str, resource: &Value) -> Option<Value> {
    for page in 1.. {
        let page = rig.get(&format!("{list}?size=100&page={page}")).await.is(200).body();
        let items = page["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["resource_id"] == resource["id"]);
        if found.is_some() || items.is_empty() {
            return found.cloned();
        }
    }
    None
}

async fn a_forced_deletion_leaves_a_tombstone(rig: &Rig) {
    let last = removed(rig, &[copy("one"), copy("two")]).await;
    let found = tombstone(rig, CLUSTERS, &last).await.unwrap();
    for (member, expected) in [
        ("kind", json!("Cluster")),
        ("name", last["name"].clone()),
        ("incarnation", last["created_time"].clone()),
        ("generation", json!(2)),
        ("tenancy", json!({})),
        ("removed_by", json!("system@hyperfleet.local")),
        ("reason", json!("the region is lost")),
        ("copies", json!([copy("one"), copy("two")])),
    ] {
        assert_eq!(found[member], expected, "{member}");
    }
    assert!(found["removed_time"].as_str().unwrap() > last["created_time"].as_str().unwrap());
    // Another cluster with the id neither hides nor replaces it.
    let again = json!({ "kind": "Cluster", "id": last["id"], "name": unique("again"), "spec": {} });
    rig.create("/clusters", again).await;
    assert_eq!(tombstone(rig, CLUSTERS, &last).await.unwrap(), found);
}

async fn swept_copies_leave_the_tombstone(rig: &Rig) {
    let last = removed(rig, &[copy("one"), copy("two"), copy("three")]).await;
    let id = tombstone(rig, CLUSTERS, &last).await.unwrap()["id"].as_str().unwrap().to_owned();
    let line = format!("POST {CLUSTERS}/{id}/swept");
    let left = rig.ask(&line, json!({ "copies": [copy("two"), copy("unknown")] })).await.is(200).body();
    assert_eq!(left["copies"], json!([copy("one"), copy("three")]));
    assert_eq!(rig.ask(&line, json!({ "copies": [] })).await.is(200).body(), left);
    rig.ask(&line, json!({ "copies": [copy("three"), copy("one")] })).await.is(204);
    assert_eq!(tombstone(rig, CLUSTERS, &last).await, None);
    rig.ask(&line, json!({ "copies": [] })).await.problem("404 NTF-001");
}

async fn invalid_reports_of_a_sweep(rig: &Rig) {
    let last = removed(rig, &[copy("one")]).await;
    let id = tombstone(rig, CLUSTERS, &last).await.unwrap()["id"].as_str().unwrap().to_owned();
    for body in ["[]", "{}", r#"{"copies": null}"#, r#"{"copies": {}}"#, r#"{"copies": "one"}"#] {
        rig.send(&format!("POST {CLUSTERS}/{id}/swept"), &[], body).await.problem("400 VAL-000");
    }
    rig.send(&format!("POST {CLUSTERS}/{id}/swept"), &[], "").await.problem("400 VAL-006");
    for path in ["/tombstones", "/tombstones/unknown", "/tombstones/clusters/x", "/tombstones/clusters/x/y"] {
        rig.get(path).await.problem("404 NTF-000");
    }
    // The kind in the path is the removed resource's.
    rig.ask(&format!("POST /tombstones/channels/{id}/swept"), json!({ "copies": [copy("one")] }))
        .await
        .problem("404 NTF-001");
    assert!(tombstone(rig, CLUSTERS, &last).await.is_some());
    rig.get(&format!("{CLUSTERS}?page=0")).await.problem("400 VAL-000");
}

async fn other_deletions_leave_none(rig: &Rig) {
    let channel = json!({ "kind": "Channel", "name": unique("c"), "spec": {} });
    let channel = rig.create("/channels", channel).await;
    rig.ask(&format!("DELETE {}", path_of(&channel)), None).await.is(202);
    assert_eq!(tombstone(rig, "/tombstones/channels", &channel).await, None);
}

async fn children_have_tombstones_of_their_own(rig: &Rig) {
    let parent = path_of(&rig.cluster(json!({})).await);
    let pool = json!({ "kind": "NodePool", "name": unique("np"), "spec": {} });
    let pool = rig.create(&format!("{parent}/nodepools"), pool).await;
    rig.ask(&format!("DELETE {parent}"), None).await.is(202);
    rig.ask(&format!("POST {parent}/force-delete"), json!({ "reason": "stuck" })).await.is(204);
    let found = tombstone(rig, "/tombstones/nodepools", &pool).await.unwrap();
    assert_eq!((&found["kind"], &found["copies"]), (&json!("NodePool"), &json!([])));
}

async fn only_sweepers_see_and_sweep(kind: Kind) {
    let issuer = Issuer::start("key").await;
    let grants = [
        issuer.grant("operator@example.com", "kinds: [Cluster], verbs: ['*'], reports_as: ['*'], force_deletes: true"),
        issuer.grant("sweeper@example.com", "kinds: [Cluster], sweeps: true"),
    ];
    let rig = Rig::start(kind, &granted(&[issuer.settings("")], &grants)).await;
    let ask = async |who: &str, line: &str, body: Value| {
        let bearer = issuer.bearer(json!({ "email": format!("{who}@example.com") }));
        rig.send(line, &[("authorization", &bearer)], body.to_string()).await
    };
    let path = path_of(&ask("operator", "POST /clusters", cluster("one")).await.is(201).body());
    ask("operator", &format!("DELETE {path}"), Value::Null).await.is(202);
    ask("operator", &format!("POST {path}/force-delete"), json!({ "reason": "x" })).await.is(204);
    let list = format!("GET {CLUSTERS}");
    ask("operator", &list, Value::Null).await.refuses("403 AUZ-001", "no grant of the caller allows sweeps on Cluster");
    let found = ask("sweeper", &list, Value::Null).await.is(200).body();
    assert_eq!(found["total"], 1);
    let line = format!("POST {CLUSTERS}/{}/swept", found["items"][0]["id"].as_str().unwrap());
    ask("operator", &line, json!({ "copies": [] })).await.problem("403 AUZ-001");
    ask("sweeper", "GET /tombstones/channels", Value::Null).await.problem("403 AUZ-001");
    ask("sweeper", &line, json!({ "copies": [] })).await.is(204);
    ask("sweeper", "GET /clusters", Value::Null).await.problem("403 AUZ-001");
}

async fn they_outlive_a_restart_and_not_their_retention(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let last = removed(&rig, &[copy("one")]).await;
    let database = Arc::clone(&rig.database);
    rig.stopped().await;
    let rig = Rig::start_on(Arc::clone(&database), "").await;
    let found = tombstone(&rig, CLUSTERS, &last).await.unwrap();
    let removed: jiff::Timestamp = found["removed_time"].as_str().unwrap().parse().unwrap();
    let store: Store = database.store();
    assert_eq!(store.prune_tombstones(removed).await.unwrap(), 0);
    assert!(tombstone(&rig, CLUSTERS, &last).await.is_some());
    assert_eq!(store.prune_tombstones(removed + jiff::SignedDuration::from_micros(1)).await.unwrap(), 1);
    assert_eq!(tombstone(&rig, CLUSTERS, &last).await, None);
    store.database().close().await;
    // The server itself removes what is beyond its retention.
    let last = self::removed(&rig, &[copy("one")]).await;
    rig.stopped().await;
    let rig = Rig::start_on(database, "tombstones: { retention: 0s }").await;
    while tombstone(&rig, CLUSTERS, &last).await.is_some() {
        tokio::task::yield_now().await;
    }
}
