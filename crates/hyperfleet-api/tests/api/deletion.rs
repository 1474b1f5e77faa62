//! Deletion: soft, immediate, with children, and final only after `Finalized` reports.

use serde_json::{Value, json};

use crate::rig::{DONE, FINALIZED, Kind, Rig, path_of, report, unique};

rules! {
    shared: soft_and_idempotent at_once_without_adapters absent soft_deleted_are_listed restricted_by_children
        cascades_to_children final_only_when_all_have_finalized a_child_that_remains_keeps_its_parent
        repeated_finalized_report_still_removes finalized_of_an_older_generation_does_not_count any_adapter_may_be_the_last;
    own: chains_of_parents a_restricting_parent_goes_after_its_last_child;
}

const CLUSTER: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];
const POOL: [&str; 2] = ["validation", "hypershift"];

async fn delete(rig: &Rig, path: &str) -> Value {
    rig.ask(&format!("DELETE {path}"), None).await.is(202).body()
}

async fn pool(rig: &Rig, parent: &str) -> String {
    let body = json!({ "kind": "NodePool", "name": unique("np"), "spec": {} });
    path_of(&rig.create(&format!("{parent}/nodepools"), body).await)
}

async fn finalize(rig: &Rig, path: &str, adapters: &[&str]) {
    let generation = rig.get(path).await.is(200).body()["generation"].as_i64().unwrap();
    for adapter in adapters {
        rig.report(path, report(adapter, generation, FINALIZED)).await.is(201);
    }
}

async fn soft_and_idempotent(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let path = path_of(&created);
    let deleted = delete(rig, &path).await;
    assert_eq!((&deleted["id"], &deleted["generation"]), (&created["id"], &json!(2)));
    assert_eq!(deleted["deleted_by"], "system@hyperfleet.local");
    assert!(deleted["deleted_time"].as_str() > created["created_time"].as_str());
    let conditions = &deleted["status"]["conditions"];
    assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&json!("Reconciled"), &json!("False")));
    assert_eq!(conditions[0]["observed_generation"], 2);
    let message = "Required adapters not reporting Finalized=True: [dns, hypershift, pullsecret, validation]. Currently \
                   reporting: []";
    assert_eq!(conditions[0]["message"], message);
    assert_eq!(rig.get(&path).await.is(200).body(), deleted);
    for _ in 0..2 {
        assert_eq!(delete(rig, &path).await, deleted, "asking again changes nothing");
    }
    rig.get(&format!("{path}/statuses")).await.is(200);
}

async fn at_once_without_adapters(rig: &Rig) {
    let created = rig.create("/channels", json!({ "kind": "Channel", "name": unique("ch"), "spec": {} })).await;
    let path = path_of(&created);
    let deleted = delete(rig, &path).await;
    assert_eq!((&deleted["id"], &deleted["generation"]), (&created["id"], &json!(2)));
    assert!(deleted["deleted_time"].is_string());
    rig.get(&path).await.problem("404 NTF-001");
    rig.ask(&format!("DELETE {path}"), None).await.refuses("404 NTF-001", "Channel not found");
}

async fn absent(rig: &Rig) {
    for (path, kind) in [("clusters", "Cluster"), ("nodepools", "NodePool"), ("channels", "Channel")] {
        let answer = rig.ask(&format!("DELETE /{path}/{}", unique("absent")), None).await;
        answer.refuses("404 NTF-001", &format!("{kind} not found"));
    }
}

async fn soft_deleted_are_listed(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let name = created["name"].as_str().unwrap();
    delete(rig, &path_of(&created)).await;
    for (search, found) in [
        (format!("name = '{name}'"), 1),
        (format!("name = '{name}' and deleted_time is null"), 0),
        (format!("name = '{name}' and deleted_time is not null"), 1),
    ] {
        assert_eq!(rig.list("/clusters", &[("search", &search)]).await.is(200).body()["total"], found, "{search}");
    }
}

async fn restricted_by_children(rig: &Rig) {
    let channel = rig.create("/channels", json!({ "kind": "Channel", "name": unique("ch"), "spec": {} })).await;
    let (path, id) = (path_of(&channel), channel["id"].as_str().unwrap());
    let body = json!({ "kind": "Version", "name": unique("v"), "spec": {} });
    let version = rig.create(&format!("{path}/versions"), body).await;
    let answer = rig.ask(&format!("DELETE {path}"), None).await;
    answer.refuses("409 CNF-003", &format!("Cannot delete Channel '{id}': active Version(s) exist"));
    assert_eq!(rig.get(&path).await.is(200).body(), channel, "refused as a whole");
    delete(rig, &path_of(&version)).await;
    delete(rig, &path).await;
    rig.get(&path).await.problem("404 NTF-001");
}

async fn cascades_to_children(rig: &Rig) {
    let parent = path_of(&rig.cluster(json!({})).await);
    let (one, two) = (pool(rig, &parent).await, pool(rig, &parent).await);
    let before = delete(rig, &one).await;
    delete(rig, &parent).await;
    assert_eq!(rig.get(&one).await.is(200).body(), before, "what was going already is left as it is");
    let two = rig.get(&two).await.is(200).body();
    assert!(two["deleted_time"].is_string());
    assert_eq!((&two["generation"], &two["deleted_by"]), (&json!(2), &json!("system@hyperfleet.local")));
    assert_eq!(two["status"]["conditions"][0]["status"], "False");
}

async fn final_only_when_all_have_finalized(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    // A report from before the deletion removes nothing.
    for adapter in CLUSTER {
        rig.report(&path, report(adapter, 1, &format!("{DONE} Finalized=True"))).await.is(201);
    }
    rig.get(&path).await.is(200);
    delete(rig, &path).await;
    finalize(rig, &path, &CLUSTER[..3]).await;
    let going = rig.get(&path).await.is(200).body();
    let message = "Required adapters not reporting Finalized=True: [hypershift]. Currently reporting: [dns, hypershift, \
                   pullsecret, validation]";
    assert_eq!(going["status"]["conditions"][0]["message"], message);
    rig.report(&path, report("hypershift", 2, "Available=False Applied=False Health=True Finalized=False"))
        .await
        .is(201);
    rig.report(&path, report("hypershift", 2, DONE)).await.is(201);
    rig.get(&path).await.is(200);
    let last = rig.report(&path, report("hypershift", 2, FINALIZED)).await.is(201).body();
    assert_eq!(last["adapter"], "hypershift", "the last report is answered like any other");
    for gone in [path.clone(), format!("{path}/statuses"), format!("{path}/statuses/history")] {
        rig.get(&gone).await.problem("404 NTF-001");
    }
    rig.ask(&format!("DELETE {path}"), None).await.refuses("404 NTF-001", "Cluster not found");
    rig.report(&path, report("hypershift", 2, FINALIZED)).await.problem("404 NTF-001");
}

async fn a_child_that_remains_keeps_its_parent(rig: &Rig) {
    let parent = path_of(&rig.cluster(json!({})).await);
    let child = pool(rig, &parent).await;
    delete(rig, &parent).await;
    finalize(rig, &parent, &CLUSTER).await;
    let waiting = rig.get(&parent).await.is(200).body();
    // With no active child left, the finalized parent is Reconciled.
    assert_eq!(waiting["status"]["conditions"][0]["status"], "True");
    finalize(rig, &child, &POOL).await;
    rig.get(&child).await.problem("404 NTF-001");
    // The parent stays until one of its adapters reports again.
    rig.get(&parent).await.is(200);
    rig.report(&parent, report("dns", 2, "Available=False Applied=False Health=True")).await.is(201);
    rig.get(&parent).await.is(200);
    rig.report(&parent, report("dns", 2, FINALIZED)).await.is(201);
    rig.get(&parent).await.problem("404 NTF-001");
}

async fn repeated_finalized_report_still_removes(rig: &Rig) {
    let parent = path_of(&rig.cluster(json!({})).await);
    let child = pool(rig, &parent).await;
    delete(rig, &parent).await;
    finalize(rig, &parent, &CLUSTER[..3]).await;
    let last = report("hypershift", 2, FINALIZED);
    rig.report(&parent, last.clone()).await.is(201);
    finalize(rig, &child, &POOL).await;
    rig.get(&parent).await.is(200);
    rig.report(&parent, last).await.is(201);
    rig.get(&parent).await.problem("404 NTF-001");
}

async fn finalized_of_an_older_generation_does_not_count(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    delete(rig, &path).await;
    for adapter in CLUSTER {
        rig.report(&path, report(adapter, 1, FINALIZED)).await.is(201);
    }
    rig.get(&path).await.is(200);
    finalize(rig, &path, &CLUSTER).await;
    rig.get(&path).await.problem("404 NTF-001");
}

async fn any_adapter_may_be_the_last(rig: &Rig) {
    // The incoming report must be Finalized; its adapter need not be a required one.
    let parent = path_of(&rig.cluster(json!({})).await);
    let child = pool(rig, &parent).await;
    delete(rig, &parent).await;
    finalize(rig, &parent, &CLUSTER).await;
    finalize(rig, &child, &POOL).await;
    rig.report(&parent, report("placement", 2, FINALIZED)).await.is(201);
    rig.get(&parent).await.problem("404 NTF-001");
}

async fn chains_of_parents(kind: Kind) {
    let yaml = r"
entities:
  - { kind: Site, plural: sites }
  - { kind: Zone, plural: zones, parent_kind: Site, on_parent_delete: cascade }
  - { kind: Rack, plural: racks, parent_kind: Zone, on_parent_delete: cascade, required_adapters: [cleaner] }
  - { kind: Host, plural: hosts, parent_kind: Rack, on_parent_delete: restrict }
";
    let rig = Rig::start(kind, yaml).await;
    let make = async |path: &str, kind: &str| {
        path_of(&rig.create(path, json!({ "kind": kind, "name": unique("x"), "spec": {} })).await)
    };
    let site = make("/sites", "Site").await;
    let zone = make(&format!("{site}/zones"), "Zone").await;
    let empty = make(&format!("{site}/zones"), "Zone").await;
    let rack = make(&format!("/zones/{}/racks", zone.rsplit('/').next().unwrap()), "Rack").await;
    let host = make(&format!("/racks/{}/hosts", rack.rsplit('/').next().unwrap()), "Host").await;
    // A restriction further down also restricts the ancestors, and nothing is changed.
    let answer = rig.ask(&format!("DELETE {site}"), None).await;
    let rack_id = rack.rsplit('/').next().unwrap();
    answer.refuses("409 CNF-003", &format!("Cannot delete Rack '{rack_id}': active Host(s) exist"));
    for path in [&site, &zone, &empty, &rack, &host] {
        assert_eq!(rig.get(path).await.is(200).body()["generation"], 1, "{path}");
    }
    delete(&rig, &host).await;
    let deleted = delete(&rig, &site).await;
    assert_eq!(deleted["generation"], 2);
    // A resource without adapters and children is removed at once; one with children waits for them.
    rig.get(&empty).await.problem("404 NTF-001");
    for path in [&site, &zone, &rack] {
        assert!(rig.get(path).await.is(200).body()["deleted_time"].is_string(), "{path}");
    }
    finalize(&rig, &rack, &["cleaner"]).await;
    rig.get(&rack).await.problem("404 NTF-001");
    // Nothing reports about sites and zones: asking again removes them, from the leaves upwards.
    for path in [&site, &zone] {
        rig.get(path).await.is(200);
    }
    assert_eq!(delete(&rig, &site).await, deleted);
    for path in [&site, &zone] {
        rig.get(path).await.problem("404 NTF-001");
    }
}

async fn a_restricting_parent_goes_after_its_last_child(kind: Kind) {
    let yaml = r"
entities:
  - { kind: Site, plural: sites }
  - { kind: Rack, plural: racks, parent_kind: Site, on_parent_delete: restrict, required_adapters: [cleaner] }
";
    let rig = Rig::start(kind, yaml).await;
    let site = path_of(&rig.create("/sites", json!({ "kind": "Site", "name": "one", "spec": {} })).await);
    let rack = json!({ "kind": "Rack", "name": "one", "spec": {} });
    let rack = path_of(&rig.create(&format!("{site}/racks"), rack).await);
    rig.ask(&format!("DELETE {site}"), None).await.problem("409 CNF-003");
    delete(&rig, &rack).await;
    let deleted = delete(&rig, &site).await;
    assert_eq!(delete(&rig, &site).await, deleted, "the child is still being finalized");
    finalize(&rig, &rack, &["cleaner"]).await;
    rig.get(&rack).await.problem("404 NTF-001");
    assert_eq!(rig.get(&site).await.is(200).body(), deleted, "it stays until it is asked for again");
    assert_eq!(delete(&rig, &site).await, deleted);
    rig.get(&site).await.problem("404 NTF-001");
}
