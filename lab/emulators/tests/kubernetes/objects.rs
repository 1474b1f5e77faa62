//! Creating, reading, updating: what the server adds, what it refuses.

use rstest::rstest;
use serde_json::{Value, json};

use super::client::{
    CONFIG_MAPS, DEPLOYMENTS, JOBS, PODS, Refused as _, SECRETS, Server, config_map, deployment, job, pod, secret,
};

#[tokio::test]
async fn a_secret_is_created_completed_and_read() {
    let server = Server::plain().await;
    let created = server.post(SECRETS, &secret("s")).await.expect(201);
    assert_eq!(created["data"], json!({"key": "dmFsdWU="}));
    assert_eq!(created["type"], "Opaque");
    assert!(created.get("stringData").is_none());
    let metadata = &created["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert!(metadata["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(metadata.get("generation"), None);
    assert_eq!(server.get(&format!("{SECRETS}/s")).await.expect(200), created);
}

#[tokio::test]
async fn names_are_generated_and_unique() {
    let server = Server::plain().await;
    let mut object = config_map("", &json!({}));
    object["metadata"] = json!({"generateName": "run-"});
    let first = server.post(CONFIG_MAPS, &object).await.expect(201);
    let second = server.post(CONFIG_MAPS, &object).await.expect(201);
    let name = first["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("run-") && name.len() == 9, "{name}");
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
}

#[tokio::test]
async fn what_is_there_is_not_created_twice() {
    let server = Server::plain().await;
    server.post(SECRETS, &secret("s")).await.expect(201);
    let status = server.post(SECRETS, &secret("s")).await.refused(409, "AlreadyExists", "secrets \"s\" already exists");
    assert_eq!(status["details"], json!({"name": "s", "kind": "secrets"}));
}

#[rstest]
#[case::no_object(format!("{SECRETS}/s"), 404, "secrets \"s\" not found", json!({"name": "s", "kind": "secrets"}))]
#[case::no_job(format!("{JOBS}/j"), 404, "jobs.batch \"j\" not found", json!({"name": "j", "group": "batch", "kind": "jobs"}))]
#[case::no_kind("/apis/batch/v1/widgets".to_owned(), 404, "the server could not find the requested resource", json!({}))]
#[case::no_subresource(format!("{SECRETS}/s/status"), 404, "could not find the requested resource", json!({}))]
#[tokio::test]
async fn what_is_not_there_is_not_found(
    #[case] path: String,
    #[case] code: u16,
    #[case] text: &str,
    #[case] details: Value,
) {
    let server = Server::plain().await;
    assert_eq!(server.get(&path).await.refused(code, "NotFound", text)["details"], details);
}

#[tokio::test]
async fn a_namespace_must_be_there() {
    let server = Server::plain().await;
    let path = "/api/v1/namespaces/elsewhere/secrets";
    server.post(path, &secret("s")).await.refused(404, "NotFound", "namespaces \"elsewhere\" not found");
    let mut foreign = secret("s");
    foreign["metadata"]["namespace"] = json!("kube-system");
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    server.post(SECRETS, &foreign).await.refused(400, "BadRequest", text);
    server.post("/api/v1/secrets", &secret("s")).await.refused(405, "MethodNotAllowed", "does not allow this method");
}

#[tokio::test]
async fn a_stale_update_conflicts_and_an_equal_one_changes_nothing() {
    let server = Server::plain().await;
    let path = format!("{SECRETS}/s");
    let created = server.post(SECRETS, &secret("s")).await.expect(201);
    assert_eq!(server.put(&path, &created).await.expect(200), created);
    let mut changed = created.clone();
    changed["data"]["key"] = json!("bmV3");
    let updated = server.put(&path, &changed).await.expect(200);
    assert_ne!(updated["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    let status =
        server.put(&path, &changed).await.refused(409, "Conflict", "the object has been modified; please apply");
    assert_eq!(status["details"], json!({"name": "s", "kind": "secrets"}));
    changed["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    server.put(&path, &changed).await.expect(200);
    changed["metadata"]["uid"] = json!("another");
    server.put(&path, &changed).await.refused(
        409,
        "Conflict",
        "Key: /registry/secrets/default/s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in",
    );
    changed["metadata"]["name"] = json!("t");
    server.put(&path, &changed).await.refused(400, "BadRequest", "does not match the name on the URL (s)");
}

#[tokio::test]
async fn what_belongs_to_the_server_stays() {
    let server = Server::plain().await;
    let created = server.post(SECRETS, &secret("s")).await.expect(201);
    let patch =
        json!({"metadata": {"creationTimestamp": "2000-01-01T00:00:00Z", "deletionTimestamp": "2000-01-01T00:00:00Z"}});
    let patched = server.merge(&format!("{SECRETS}/s"), &patch).await.expect(200);
    assert_eq!(patched, created);
}

#[tokio::test]
async fn a_lease_is_updated_with_its_revision_only() {
    let server = Server::plain().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let created = server.put(&format!("{leases}/l"), &lease).await.expect(201);
    let text = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    server.put(&format!("{leases}/l"), &lease).await.refused(422, "Invalid", text);
    server.put(&format!("{leases}/l"), &created).await.expect(200);
}

#[tokio::test]
async fn status_and_specification_are_written_apart() {
    let server = Server::plain().await;
    let path = format!("{DEPLOYMENTS}/d");
    let mut given = deployment("d");
    given["status"] = json!({"readyReplicas": 7});
    let mut created = server.post(DEPLOYMENTS, &given).await.expect(201);
    assert_eq!((&created["status"]["readyReplicas"], &created["metadata"]["generation"]), (&Value::Null, &json!(1)));
    created["spec"]["replicas"] = json!(2);
    created["status"] = json!({"readyReplicas": 1});
    let status = server.put(&format!("{path}/status"), &created).await.expect(200);
    assert_eq!((&status["spec"]["replicas"], &status["status"]["readyReplicas"]), (&json!(1), &json!(1)));
    assert_eq!(status["metadata"]["generation"], 1);
    let patch = json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 9}, "metadata": {"labels": {"a": "1"}}});
    let patched = server.merge(&path, &patch).await.expect(200);
    assert_eq!((&patched["spec"]["replicas"], &patched["status"]["readyReplicas"]), (&json!(3), &json!(1)));
    assert_eq!(patched["metadata"]["generation"], 2);
    let labelled = server.merge(&path, &json!({"metadata": {"labels": {"a": "2"}}})).await.expect(200);
    assert_eq!(labelled["metadata"]["generation"], 2);
}

#[tokio::test]
async fn jobs_and_pods_are_completed_as_upstream_does() {
    let server = Server::plain().await;
    let created = server.post(JOBS, &job("j")).await.expect(201);
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let spec = &created["spec"];
    assert_eq!((&spec["backoffLimit"], &spec["completions"], &spec["suspend"]), (&json!(6), &json!(1), &json!(false)));
    assert_eq!(spec["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], uid);
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!((&labels["job-name"], &labels["batch.kubernetes.io/job-name"]), (&json!("j"), &json!("j")));
    assert_eq!(spec["template"]["spec"]["containers"][0]["terminationMessagePath"], "/dev/termination-log");
    let pod = server.post(PODS, &pod("p")).await.expect(201);
    assert_eq!((&pod["status"]["phase"], &pod["spec"]["serviceAccountName"]), (&json!("Pending"), &json!("default")));
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
}

#[tokio::test]
async fn dry_runs_check_and_answer_but_store_nothing() {
    let server = Server::plain().await;
    let before = server.revision().await;
    let answered = server.post(&format!("{SECRETS}?dryRun=All"), &secret("s")).await.expect(201);
    assert_eq!(answered["metadata"]["uid"].as_str().unwrap().len(), 36);
    server.get(&format!("{SECRETS}/s")).await.refused(404, "NotFound", "");
    server.post(SECRETS, &secret("s")).await.expect(201);
    server.post(&format!("{SECRETS}?dryRun=All"), &secret("s")).await.refused(409, "AlreadyExists", "");
    let patch = json!({"metadata": {"labels": {"a": "1"}}});
    let patched = server.merge(&format!("{SECRETS}/s?dryRun=All"), &patch).await.expect(200);
    assert_eq!(patched["metadata"]["labels"]["a"], "1");
    server.delete(&format!("{SECRETS}/s?dryRun=All"), &json!({})).await.expect(200);
    assert_eq!(server.get(&format!("{SECRETS}/s")).await.expect(200)["metadata"].get("labels"), None);
    assert_eq!(server.revision().await, before + 1);
    server.post(&format!("{SECRETS}?dryRun=Some"), &secret("t")).await.refused(
        422,
        "Invalid",
        "dryRun: Unsupported value",
    );
}

#[tokio::test]
async fn custom_kinds_are_served_once_they_are_defined() {
    let server = Server::plain().await;
    let custom = "/apis/example.com/v1/namespaces/default/widgets";
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}});
    server.post(custom, &widget).await.refused(404, "NotFound", "could not find the requested resource");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                          "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let defined = server.post(definitions, &definition).await.expect(201);
    assert_eq!(defined["status"]["conditions"][1]["type"], "Established");
    let mut created = server.post(custom, &widget).await.expect(201);
    created["spec"]["size"] = json!(2);
    created["status"] = json!({"ready": true});
    let updated = server.put(&format!("{custom}/w"), &created).await.expect(200);
    assert_eq!((&updated["metadata"]["generation"], &updated["status"]), (&json!(2), &Value::Null));
    let groups = server.get("/apis").await.expect(200);
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "example.com"));
    server.delete(&format!("{definitions}/widgets.example.com"), &json!({})).await.expect(200);
    server.get(custom).await.refused(404, "NotFound", "");
    server.post(definitions, &definition).await.expect(201);
    assert_eq!(server.get(custom).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn events_are_the_same_in_both_groups() {
    let server = Server::plain().await;
    let event = json!({
        "metadata": {"name": "e"}, "regarding": {"kind": "Secret", "name": "s"}, "reason": "Stored", "note": "version 3",
        "type": "Normal", "reportingController": "pull-secret", "reportingInstance": "p", "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    let created = server.post("/apis/events.k8s.io/v1/namespaces/default/events", &event).await.expect(201);
    assert_eq!((&created["note"], &created["apiVersion"]), (&json!("version 3"), &json!("events.k8s.io/v1")));
    let path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Ds";
    let listed = server.get(path).await.expect(200);
    assert_eq!((&listed["items"][0]["message"], &listed["kind"]), (&json!("version 3"), &json!("EventList")));
    assert_eq!(listed["items"][0]["reportingComponent"], "pull-secret");
    let patch = json!({"note": "version 4"});
    let patched = server.merge("/apis/events.k8s.io/v1/namespaces/default/events/e", &patch).await.expect(200);
    assert_eq!(patched["note"], "version 4");
}
