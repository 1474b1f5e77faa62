//! JSON patch, merge patch, strategic merge patch.

use rstest::rstest;
use serde_json::{Value, json};

use super::client::{CONFIG_MAPS, PODS, Refused as _, Server, config_map, pod};

const STRATEGIC: &str = "application/strategic-merge-patch+json";

#[rstest]
#[case::merge("application/merge-patch+json", json!({"data": {"a": null, "b": "2"}}))]
#[case::strategic(STRATEGIC, json!({"data": {"a": null, "b": "2"}}))]
#[case::json("application/json-patch+json", json!([{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/b", "value": "2"}]))]
#[tokio::test]
async fn each_kind_changes_what_it_says(#[case] kind: &str, #[case] patch: Value) {
    let server = Server::plain().await;
    server.post(CONFIG_MAPS, &config_map("c", &json!({"a": "1"}))).await.expect(201);
    let patched = server.patch(&format!("{CONFIG_MAPS}/c"), kind, &patch).await.expect(200);
    assert_eq!(patched["data"], json!({"b": "2"}));
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/c")).await.expect(200), patched);
}

#[tokio::test]
async fn a_failed_test_changes_nothing() {
    let server = Server::plain().await;
    let created = server.post(CONFIG_MAPS, &config_map("c", &json!({"a": "1"}))).await.expect(201);
    let patch = json!([{"op": "remove", "path": "/data/a"}, {"op": "test", "path": "/data/b", "value": "2"}]);
    let reply = server.patch(&format!("{CONFIG_MAPS}/c"), "application/json-patch+json", &patch).await;
    reply.refused(422, "Invalid", "the server rejected our request due to an error in our request");
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/c")).await.expect(200), created);
}

#[tokio::test]
async fn a_patch_may_be_meant_for_one_state_only() {
    let server = Server::plain().await;
    server.post(CONFIG_MAPS, &config_map("c", &json!({"a": "1"}))).await.expect(201);
    let patch = json!({"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}});
    server.merge(&format!("{CONFIG_MAPS}/c"), &patch).await.refused(409, "Conflict", "the object has been modified");
    server.merge(&format!("{CONFIG_MAPS}/d"), &patch).await.refused(404, "NotFound", "configmaps \"d\" not found");
}

#[tokio::test]
async fn lists_with_keys_are_merged_strategically() {
    let server = Server::plain().await;
    server.post(PODS, &pod("p")).await.expect(201);
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let path = format!("{PODS}/p/status");
    let patch = json!({"status": {"conditions": [condition("Ready", "False"), condition("Other", "True")]}});
    server.patch(&path, STRATEGIC, &patch).await.expect(200);
    let patch = json!({"status": {"phase": "Running", "conditions": [condition("Ready", "True")]}});
    let patched = server.patch(&path, STRATEGIC, &patch).await.expect(200);
    assert_eq!(patched["status"]["conditions"], json!([condition("Ready", "True"), condition("Other", "True")]));
    let image = json!({"spec": {"containers": [{"name": "main", "image": "registry/pod:2"}]}});
    let patched = server.patch(&format!("{PODS}/p"), STRATEGIC, &image).await.expect(200);
    assert_eq!(patched["spec"]["containers"][0]["image"], "registry/pod:2");
    assert_eq!(patched["spec"]["containers"][0]["terminationMessagePolicy"], "File");
}

#[tokio::test]
async fn other_kinds_of_patches_are_refused() {
    let server = Server::plain().await;
    server.post(CONFIG_MAPS, &config_map("c", &json!({}))).await.expect(201);
    let reply = server.patch(&format!("{CONFIG_MAPS}/c"), "application/json", &json!({})).await;
    reply.refused(415, "UnsupportedMediaType", "415: Unsupported Media Type");
}
