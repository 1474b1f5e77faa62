//! Server-side apply and who owns what.

use serde_json::{Value, json};

use super::client::{CONFIG_MAPS, DEPLOYMENTS, Refused as _, SECRETS, Server, config_map, deployment, secret};

fn labelled(labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": labels}})
}

/// Each manager with the operation and the fields that it owns.
fn managers(object: &Value) -> Vec<(&str, &str, Value)> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let entry = |entry: &'_ Value| entry["fieldsV1"].clone();
    entries.iter().map(|e| (e["manager"].as_str().unwrap(), e["operation"].as_str().unwrap(), entry(e))).collect()
}

#[tokio::test]
async fn applying_creates_then_changes_nothing_then_updates() {
    let server = Server::plain().await;
    let path = format!("{CONFIG_MAPS}/c");
    let object = config_map("c", &json!({"a": "1"}));
    let created = server.apply(&path, "job", &object).await.expect(201);
    assert_eq!(managers(&created), [("job", "Apply", json!({"f:data": {"f:a": {}}}))]);
    assert_eq!(server.apply(&path, "job", &object).await.expect(200), created);
    let updated = server.apply(&path, "job", &config_map("c", &json!({"b": "2"}))).await.expect(200);
    assert_eq!(updated["data"], json!({"b": "2"}));
    assert_eq!(managers(&updated), [("job", "Apply", json!({"f:data": {"f:b": {}}}))]);
}

#[tokio::test]
async fn secrets_are_applied_whole() {
    let server = Server::plain().await;
    let path = format!("{SECRETS}/s");
    let created = server.apply(&path, "job", &secret("s")).await.expect(201);
    assert_eq!(created["data"], json!({"key": "dmFsdWU="}));
    assert_eq!(managers(&created)[0].2, json!({"f:stringData": {"f:key": {}}}));
    assert_eq!(server.apply(&path, "job", &secret("s")).await.expect(200), created);
}

#[tokio::test]
async fn what_another_owns_conflicts_until_forced() {
    let server = Server::plain().await;
    let path = format!("{CONFIG_MAPS}/c");
    server.apply(&path, "adapter", &labelled(&json!({"a": "1", "b": "1"}))).await.expect(201);
    let status = server.apply(&path, "job", &labelled(&json!({"a": "2"}))).await.refused(
        409,
        "Conflict",
        "Apply failed with 1 conflict: conflict with \"adapter\": .metadata.labels.a",
    );
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"adapter\"", "field": ".metadata.labels.a"});
    assert_eq!(status["details"], json!({"causes": [cause]}));
    let both = labelled(&json!({"a": "2", "b": "2"}));
    let text = "Apply failed with 2 conflicts: conflicts with \"adapter\":\n- .metadata.labels.a\n- .metadata.labels.b";
    server.apply(&path, "job", &both).await.refused(409, "Conflict", text);
    let forced = server.apply(&format!("{path}?force=true"), "job", &labelled(&json!({"a": "2"}))).await.expect(200);
    assert_eq!(forced["metadata"]["labels"], json!({"a": "2", "b": "1"}));
    let fields = |label: &str| json!({"f:metadata": {"f:labels": {format!("f:{label}"): {}}}});
    assert_eq!(managers(&forced), [("adapter", "Apply", fields("b")), ("job", "Apply", fields("a"))]);
}

#[tokio::test]
async fn what_two_say_alike_belongs_to_both() {
    let server = Server::plain().await;
    let path = format!("{CONFIG_MAPS}/c");
    server.apply(&path, "one", &labelled(&json!({"a": "1"}))).await.expect(201);
    server.apply(&path, "two", &labelled(&json!({"a": "1"}))).await.expect(200);
    let left = server.apply(&path, "one", &labelled(&json!({}))).await.expect(200);
    assert_eq!(left["metadata"]["labels"], json!({"a": "1"}));
    let gone = server.apply(&path, "two", &labelled(&json!({}))).await.expect(200);
    assert_eq!(gone["metadata"].get("labels"), None);
}

#[tokio::test]
async fn plain_writes_own_what_they_change() {
    let server = Server::plain().await;
    let path = format!("{CONFIG_MAPS}/c");
    let created =
        server.post(&format!("{CONFIG_MAPS}?fieldManager=kubectl-create"), &config_map("c", &json!({"a": "1"}))).await;
    let created = created.expect(201);
    assert_eq!(managers(&created), [("kubectl-create", "Update", json!({"f:data": {".": {}, "f:a": {}}}))]);
    let text = "Apply failed with 1 conflict: conflict with \"kubectl-create\" using v1: .data.a";
    server.apply(&path, "job", &config_map("c", &json!({"a": "2"}))).await.refused(409, "Conflict", text);
    server.apply(&path, "job", &config_map("c", &json!({"a": "1", "b": "1"}))).await.expect(200);
    let edited =
        server.merge(&format!("{path}?fieldManager=kubectl-edit"), &json!({"data": {"b": "2"}})).await.expect(200);
    let text = "conflict with \"kubectl-edit\" using v1: .data.b";
    server.apply(&path, "job", &config_map("c", &json!({"b": "3"}))).await.refused(409, "Conflict", text);
    assert_eq!(managers(&edited).len(), 3);
    let deleted = server.merge(&path, &json!({"data": {"b": null}})).await.expect(200);
    assert_eq!(managers(&deleted).len(), 2, "{deleted:#}");
}

#[tokio::test]
async fn fields_are_handed_over_by_a_patch_of_the_bookkeeping() {
    let server = Server::plain().await;
    let path = format!("{CONFIG_MAPS}/c");
    let object = config_map("c", &json!({"a": "1", "b": "1"}));
    let mut created = server.post(&format!("{CONFIG_MAPS}?fieldManager=job"), &object).await.expect(201);
    server.merge(&format!("{path}?fieldManager=other"), &json!({"data": {"c": "1"}})).await.expect(200);
    created["metadata"]["managedFields"][0]["operation"] = json!("Apply");
    let entries = json!({"metadata": {"managedFields": created["metadata"]["managedFields"]}});
    let handed_over = server.merge(&format!("{path}?fieldManager=job"), &entries).await.expect(200);
    let fields = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
    assert_eq!(managers(&handed_over), [("job", "Apply", fields)]);
    let applied = server.apply(&path, "job", &config_map("c", &json!({"a": "1"}))).await.expect(200);
    assert_eq!(applied["data"], json!({"a": "1", "c": "1"}), "the list around what is applied stays");
}

#[tokio::test]
async fn list_items_are_owned_one_by_one() {
    let server = Server::plain().await;
    let path = format!("{DEPLOYMENTS}/d");
    server.apply(&path, "adapter", &deployment("d")).await.expect(201);
    let owner = |uid: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "ownerReferences":
            [{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": uid}]}})
    };
    let uid =
        server.get("/api/v1/namespaces/default").await.expect(200)["metadata"]["uid"].as_str().unwrap().to_owned();
    let owned = server.apply(&path, "owner", &owner(&uid)).await.expect(200);
    let key = format!("k:{{\"uid\":\"{uid}\"}}");
    assert_eq!(managers(&owned)[1].2, json!({"f:metadata": {"f:ownerReferences": {key: {}}}}));
    let bare = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    let left = server.apply(&path, "owner", &bare).await.expect(200);
    assert_eq!((left["metadata"].get("ownerReferences"), managers(&left).len()), (None, 1));
}

#[tokio::test]
async fn the_status_is_applied_apart() {
    let server = Server::plain().await;
    let path = format!("{DEPLOYMENTS}/d");
    let mut with_status = deployment("d");
    with_status["status"] = json!({"readyReplicas": 1});
    let created = server.apply(&path, "adapter", &with_status).await.expect(201);
    assert_eq!(created["status"].get("readyReplicas"), None);
    let status = json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"readyReplicas": 1}});
    let applied = server.apply(&format!("{path}/status"), "controller", &status).await.expect(200);
    assert_eq!(applied["status"]["readyReplicas"], 1);
    let entry = &applied["metadata"]["managedFields"][1];
    assert_eq!(
        (&entry["subresource"], &entry["fieldsV1"]),
        (&json!("status"), &json!({"f:status": {"f:readyReplicas": {}}}))
    );
}

#[tokio::test]
async fn an_application_must_be_complete() {
    let server = Server::plain().await;
    let path = format!("{CONFIG_MAPS}/c");
    let object = config_map("c", &json!({}));
    let reply = server.patch(&path, "application/apply-patch+yaml", &object).await;
    reply.refused(422, "Invalid", "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value");
    let text = "invalid object type: /, Kind=ConfigMap";
    server.apply(&path, "job", &json!({"kind": "ConfigMap"})).await.refused(400, "BadRequest", text);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: \"1\"\n";
    let kind = "content-type: application/apply-patch+yaml\r\n";
    let reply = server.raw("PATCH", &format!("{path}?fieldManager=job"), yaml, kind).await.unwrap();
    assert_eq!(reply.expect(201)["data"]["a"], "1");
    let mut foreign = object;
    foreign["metadata"]["uid"] = json!("another");
    let text = "metadata.uid: Invalid value: \"another\": field is immutable";
    server.apply(&path, "job", &foreign).await.refused(422, "Invalid", text);
    let text = "uid mismatch: the provided object specified uid another, and no existing object was found";
    foreign["metadata"]["name"] = json!("new");
    server.apply(&format!("{CONFIG_MAPS}/new"), "job", &foreign).await.refused(409, "Conflict", text);
    server.merge(&format!("{path}?force=true"), &json!({})).await.refused(
        422,
        "Invalid",
        "force: Forbidden: may not be",
    );
}

#[tokio::test]
async fn an_applied_revision_must_be_the_newest() {
    let server = Server::plain().await;
    let path = format!("{CONFIG_MAPS}/c");
    let mut object = config_map("c", &json!({"a": "1"}));
    let created = server.apply(&path, "job", &object).await.expect(201);
    object["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    object["data"]["a"] = json!("2");
    server.apply(&path, "job", &object).await.expect(200);
    object["data"]["a"] = json!("3");
    server.apply(&path, "job", &object).await.refused(409, "Conflict", "the object has been modified");
}
