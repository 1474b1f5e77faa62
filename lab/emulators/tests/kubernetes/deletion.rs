//! Deleting: preconditions, finalizers, dependents, namespaces.

use rstest::rstest;
use serde_json::{Value, json};

use super::client::{CONFIG_MAPS, JOBS, PODS, Refused as _, SECRETS, Server, config_map, job, pod, secret};

/// A `ConfigMap` that is owned.
fn owned(name: &str, owner: &Value, blocks: bool) -> Value {
    let mut object = config_map(name, &json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    }]);
    object
}

fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

fn release() -> Value {
    json!({"metadata": {"finalizers": null}})
}

#[tokio::test]
async fn a_deletion_answers_with_success_and_is_over() {
    let server = Server::plain().await;
    let created = server.post(SECRETS, &secret("s")).await.expect(201);
    let path = format!("{SECRETS}/s");
    let status = server.delete(&path, &json!({})).await.expect(200);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"]["uid"], created["metadata"]["uid"]);
    server.delete(&path, &json!({})).await.refused(404, "NotFound", "secrets \"s\" not found");
    server.post(PODS, &pod("p")).await.expect(201);
    let deleted = server.delete(&format!("{PODS}/p"), &json!({})).await.expect(200);
    assert_eq!(deleted["kind"], "Pod");
}

#[rstest]
#[case::uid(json!({"uid": "another"}), "Secret \"s\": the UID in the precondition (another) does not match the UID in record (")]
#[case::revision(json!({"resourceVersion": "1"}), "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (")]
#[tokio::test]
async fn preconditions_hold(#[case] preconditions: Value, #[case] text: &str) {
    let server = Server::plain().await;
    let created = server.post(SECRETS, &secret("s")).await.expect(201);
    let path = format!("{SECRETS}/s");
    server.delete(&path, &json!({"preconditions": preconditions})).await.refused(409, "Conflict", text);
    let metadata = &created["metadata"];
    let right = json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]});
    server.delete(&path, &json!({"preconditions": right})).await.expect(200);
}

#[tokio::test]
async fn finalizers_hold_an_object_back() {
    let server = Server::plain().await;
    let path = format!("{SECRETS}/s");
    server.post(SECRETS, &held(secret("s"))).await.expect(201);
    let deleting = server.delete(&path, &json!({})).await.expect(200);
    assert!(deleting["metadata"]["deletionTimestamp"].is_string());
    server.delete(&path, &json!({})).await.expect(200);
    server.post(SECRETS, &secret("s")).await.refused(409, "AlreadyExists", "");
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    server.merge(&path, &more).await.refused(
        422,
        "Invalid",
        "no new finalizers can be added if the object is being deleted",
    );
    server.merge(&path, &json!({"metadata": {"labels": {"a": "1"}}})).await.expect(200);
    server.merge(&path, &release()).await.expect(200);
    server.get(&path).await.refused(404, "NotFound", "");
}

#[tokio::test]
async fn dependents_follow_in_the_background() {
    let server = Server::plain().await;
    let owner = server.post(CONFIG_MAPS, &config_map("owner", &json!({}))).await.expect(201);
    let child = server.post(CONFIG_MAPS, &owned("child", &owner, true)).await.expect(201);
    server.post(CONFIG_MAPS, &owned("grandchild", &child, true)).await.expect(201);
    let other = server.post(SECRETS, &secret("other")).await.expect(201);
    let mut shared = owned("shared", &owner, true);
    let second = owned("x", &other, true)["metadata"]["ownerReferences"][0].clone();
    shared["metadata"]["ownerReferences"].as_array_mut().unwrap().push(second);
    server.post(CONFIG_MAPS, &shared).await.expect(201);
    server.delete(&format!("{CONFIG_MAPS}/owner"), &json!({})).await.expect(200);
    for name in ["child", "grandchild"] {
        server.get(&format!("{CONFIG_MAPS}/{name}")).await.refused(404, "NotFound", "");
    }
    let shared = server.get(&format!("{CONFIG_MAPS}/shared")).await.expect(200);
    assert_eq!(shared["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    server.post(CONFIG_MAPS, &owned("late", &owner, true)).await.expect(201);
    server.get(&format!("{CONFIG_MAPS}/late")).await.refused(404, "NotFound", "");
}

#[tokio::test]
async fn in_the_foreground_dependents_go_first() {
    let server = Server::plain().await;
    let owner = server.post(CONFIG_MAPS, &config_map("owner", &json!({}))).await.expect(201);
    server.post(CONFIG_MAPS, &held(owned("child", &owner, true))).await.expect(201);
    let options = json!({"propagationPolicy": "Foreground"});
    let deleting = server.delete(&format!("{CONFIG_MAPS}/owner"), &options).await.expect(200);
    assert_eq!(deleting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    server.get(&format!("{CONFIG_MAPS}/owner")).await.expect(200);
    server.merge(&format!("{CONFIG_MAPS}/child"), &release()).await.expect(200);
    server.get(&format!("{CONFIG_MAPS}/owner")).await.refused(404, "NotFound", "");
}

#[tokio::test]
async fn orphans_stay_and_know_their_owner_no_more() {
    let server = Server::plain().await;
    let owner = server.post(CONFIG_MAPS, &config_map("owner", &json!({}))).await.expect(201);
    server.post(CONFIG_MAPS, &owned("child", &owner, true)).await.expect(201);
    server.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Orphan"), &json!({})).await.expect(200);
    server.get(&format!("{CONFIG_MAPS}/owner")).await.refused(404, "NotFound", "");
    let child = server.get(&format!("{CONFIG_MAPS}/child")).await.expect(200);
    assert_eq!(child["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn the_pods_of_a_job_stay_unless_requested_otherwise() {
    let server = Server::plain().await;
    for (options, stays) in [(json!({}), true), (json!({"propagationPolicy": "Background"}), false)] {
        let mut object = job("j");
        object["spec"]["suspend"] = json!(true);
        let owner = server.post(JOBS, &object).await.expect(201);
        server.post(CONFIG_MAPS, &owned("child", &owner, true)).await.expect(201);
        let reply = server.delete(&format!("{JOBS}/j"), &options).await;
        assert_eq!(
            reply.head.contains("warning: 299 - \"child pods are preserved by default"),
            stays,
            "{}",
            reply.head
        );
        reply.expect(200);
        let child = server.get(&format!("{CONFIG_MAPS}/child")).await;
        assert_eq!(child.status == 200, stays);
        server.delete(&format!("{CONFIG_MAPS}/child"), &json!({})).await;
    }
}

#[tokio::test]
async fn a_pod_on_a_node_is_ended_by_its_kubelet() {
    let server = Server::plain().await;
    let path = format!("{PODS}/p");
    let mut object = pod("p");
    object["spec"]["nodeName"] = json!("n");
    server.post(PODS, &object).await.expect(201);
    let deleting = server.delete(&path, &json!({})).await.expect(200);
    assert_eq!(deleting["metadata"]["deletionGracePeriodSeconds"], 30);
    server.get(&path).await.expect(200);
    server.delete(&path, &json!({"gracePeriodSeconds": 0})).await.expect(200);
    server.get(&path).await.refused(404, "NotFound", "");
}

#[tokio::test]
async fn a_namespace_is_emptied_and_goes() {
    let server = Server::plain().await;
    let namespaces = "/api/v1/namespaces";
    let created = server.post(namespaces, &json!({"metadata": {"name": "n"}})).await.expect(201);
    assert_eq!(created["status"]["phase"], "Active");
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    let secrets = "/api/v1/namespaces/n/secrets";
    server.get("/api/v1/namespaces/n/serviceaccounts/default").await.expect(200);
    server.post(secrets, &secret("free")).await.expect(201);
    server.post(secrets, &held(secret("held"))).await.expect(201);
    let terminating = server.delete("/api/v1/namespaces/n", &json!({})).await.expect(200);
    assert_eq!(terminating["status"]["phase"], "Terminating");
    server.get(&format!("{secrets}/free")).await.refused(404, "NotFound", "");
    let status = server.post(secrets, &secret("new")).await.refused(
        403,
        "Forbidden",
        "secrets \"new\" is forbidden: unable to create new content in namespace n because it is being terminated",
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!((&cause["reason"], &cause["field"]), (&json!("NamespaceTerminating"), &json!("metadata.namespace")));
    let again = server.delete("/api/v1/namespaces/n", &json!({})).await.expect(200);
    assert_eq!(again["status"]["phase"], "Terminating");
    server.merge(&format!("{secrets}/held"), &release()).await.expect(200);
    server.get("/api/v1/namespaces/n").await.refused(404, "NotFound", "namespaces \"n\" not found");
    let text = "namespaces \"default\" is forbidden: this namespace may not be deleted";
    server.delete("/api/v1/namespaces/default", &json!({})).await.refused(403, "Forbidden", text);
}

#[tokio::test]
async fn many_are_deleted_at_once() {
    let server = Server::plain().await;
    for name in ["a", "b", "c"] {
        let mut object = secret(name);
        object["metadata"]["labels"] = json!({"name": name});
        server.post(SECRETS, &object).await.expect(201);
    }
    let deleted = server.delete(&format!("{SECRETS}?labelSelector=name%20in%20(a,b)"), &json!({})).await.expect(200);
    assert_eq!((&deleted["kind"], deleted["items"].as_array().unwrap().len()), (&json!("SecretList"), 2));
    let left = server.get(SECRETS).await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}
