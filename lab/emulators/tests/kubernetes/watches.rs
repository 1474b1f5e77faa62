//! Watches: where they begin, what they tell, how they end.

use serde_json::json;

use super::client::{SECRETS, Server, Watch, secret};
use emulators::kubernetes::Settings;

#[tokio::test]
async fn what_is_there_comes_first() {
    let server = Server::plain().await;
    server.post(SECRETS, &secret("a")).await.expect(201);
    let mut watch = server.watch(SECRETS).await;
    assert_eq!(watch.next_event().await, "ADDED a");
    server.post(SECRETS, &secret("b")).await.expect(201);
    server.merge(&format!("{SECRETS}/a"), &json!({"metadata": {"labels": {"x": "1"}}})).await.expect(200);
    server.delete(&format!("{SECRETS}/b"), &json!({})).await.expect(200);
    for events in ["ADDED b", "MODIFIED a", "DELETED b"] {
        assert_eq!(watch.next_event().await, events);
    }
}

#[tokio::test]
async fn a_watch_goes_on_behind_its_revision() {
    let server = Server::plain().await;
    let created = server.post(SECRETS, &secret("a")).await.expect(201);
    let revision = created["metadata"]["resourceVersion"].as_str().unwrap();
    server.post(SECRETS, &secret("b")).await.expect(201);
    let mut watch = server.watch(&format!("{SECRETS}?resourceVersion={revision}")).await;
    assert_eq!(watch.next_event().await, "ADDED b");
    let deleted = server.delete(&format!("{SECRETS}/b"), &json!({})).await;
    deleted.expect(200);
    let event = watch.next().await.unwrap();
    let last: u64 = event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert_eq!(last, server.revision().await);
}

#[tokio::test]
async fn selectors_turn_changes_into_comings_and_goings() {
    let server = Server::plain().await;
    let path = format!("{SECRETS}/a");
    server.post(SECRETS, &secret("a")).await.expect(201);
    let mut watch = server.watch(&format!("{SECRETS}?labelSelector=x%3D1")).await;
    let mut named = server.watch(&format!("{SECRETS}?fieldSelector=metadata.name%3Db")).await;
    for label in [json!("1"), json!("2"), json!("1")] {
        server.merge(&path, &json!({"metadata": {"labels": {"x": label}}})).await.expect(200);
    }
    server.post(SECRETS, &secret("b")).await.expect(201);
    server.delete(&path, &json!({})).await.expect(200);
    for events in ["ADDED a", "DELETED a", "ADDED a", "DELETED a"] {
        assert_eq!(watch.next_event().await, events);
    }
    assert_eq!(named.next_event().await, "ADDED b");
}

#[tokio::test]
async fn what_is_forgotten_is_gone() {
    let server = Server::start(Settings { watch_history: 2, ..Settings::default() }).await;
    let created = server.post(SECRETS, &secret("a")).await.expect(201);
    for label in ["1", "2", "3"] {
        let patch = json!({"metadata": {"labels": {"x": label}}});
        server.merge(&format!("{SECRETS}/a"), &patch).await.expect(200);
    }
    let revision = created["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = server.watch(&format!("{SECRETS}?resourceVersion={revision}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!((&event["object"]["code"], &event["object"]["reason"]), (&json!(410), &json!("Expired")));
    assert!(event["object"]["message"].as_str().unwrap().starts_with("too old resource version: "), "{event}");
    assert_eq!(watch.next_event().await, "over");
    let late = format!("{SECRETS}?resourceVersion={}", server.revision().await);
    let mut watch = server.watch(&late).await;
    server.delete(&format!("{SECRETS}/a"), &json!({})).await.expect(200);
    assert_eq!(watch.next_event().await, "DELETED a");
    server.kubernetes.forget_history();
    assert_eq!(server.watch(&late).await.next_event().await, "ERROR");
}

#[tokio::test]
async fn bookmarks_come_when_asked_for() {
    let server = Server::plain().await;
    server.post(SECRETS, &secret("a")).await.expect(201);
    let query = "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=0";
    let mut watch = server.watch(&format!("{SECRETS}?{query}")).await;
    assert_eq!(watch.next_event().await, "ADDED a");
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let revision = server.revision().await.to_string();
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], revision);
    assert_eq!(bookmark["object"]["kind"], "Secret");
    let end = watch.next().await.unwrap();
    assert_eq!((&end["type"], &end["object"]["metadata"]["resourceVersion"]), (&json!("BOOKMARK"), &json!(revision)));
    assert_eq!(watch.next_event().await, "over");
}

/// Clients of metadata decode nothing else.
#[tokio::test]
async fn bookmarks_are_metadata_where_objects_are() {
    let server = Server::plain().await;
    let accept = "accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n";
    let query = "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = Watch::open(server.kubernetes.address(), &format!("{SECRETS}?{query}"), accept).await;
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let object = &bookmark["object"];
    assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("meta.k8s.io/v1"), &json!("PartialObjectMetadata")));
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn tables_are_watched_too() {
    let server = Server::plain().await;
    server.post(SECRETS, &secret("a")).await.expect(201);
    let accept = "accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    let mut watch = Watch::open(server.kubernetes.address(), SECRETS, accept).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["object"]["rows"][0]["cells"][0], "a");
    assert_eq!(event["object"]["columnDefinitions"][0]["name"], "Name");
    server.post(SECRETS, &secret("b")).await.expect(201);
    assert!(watch.next().await.unwrap()["object"]["columnDefinitions"].is_null());
}

#[tokio::test]
async fn watches_end_with_the_server() {
    let server = Server::plain().await;
    let mut watch = server.watch(SECRETS).await;
    server.kubernetes.shutdown().await;
    assert_eq!(watch.next_event().await, "over");
}
