//! Lists: selectors, pages, forms.

use rstest::rstest;
use serde_json::{Value, json};

use super::client::{Refused as _, SECRETS, Server, secret};

async fn server() -> Server {
    let server = Server::plain().await;
    for (name, labels) in [("a", json!({"tier": "1"})), ("b", json!({"tier": "2"})), ("c", json!({}))] {
        let mut object = secret(name);
        object["metadata"]["labels"] = labels;
        server.post(SECRETS, &object).await.expect(201);
    }
    server.post("/api/v1/namespaces/kube-system/secrets", &secret("d")).await.expect(201);
    server
}

fn names(list: &Value) -> String {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[rstest]
#[case(SECRETS, "", "abc")]
#[case("/api/v1/secrets", "", "abcd")]
#[case(SECRETS, "labelSelector=tier%3D1", "a")]
#[case(SECRETS, "labelSelector=tier%20in%20(1,2)", "ab")]
#[case(SECRETS, "labelSelector=!tier", "c")]
#[case(SECRETS, "labelSelector=tier,tier!%3D1", "b")]
#[case(SECRETS, "fieldSelector=metadata.name%3Db", "b")]
#[case("/api/v1/secrets", "fieldSelector=metadata.namespace!%3Ddefault", "d")]
#[case(SECRETS, "fieldSelector=type%3DOther", "")]
#[tokio::test]
async fn selects(#[case] path: &str, #[case] query: &str, #[case] wanted: &str) {
    let server = server().await;
    let list = server.get(&format!("{path}?{query}")).await.expect(200);
    assert_eq!(names(&list), wanted);
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("SecretList"), &json!("v1")));
    assert!(list["items"].as_array().unwrap().iter().all(|item| item.get("kind").is_none()));
}

/// Selection by this label is indexed: it follows the label of every Pod, also of one without a Job, and each change of it.
#[tokio::test]
async fn selects_pods_by_the_label_of_their_job() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let server = server().await;
    for (name, job) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let metadata = json!({"name": name, "labels": {"job-name": job, "tier": name}});
        server
            .post(PODS, &json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
            .await
            .expect(201);
    }
    let selected = async |path: &str, selector: &str| {
        names(&server.get(&format!("{path}?labelSelector={selector}")).await.expect(200))
    };
    assert_eq!(selected(PODS, "job-name%3Dx").await, "ac");
    assert_eq!(selected(PODS, "job-name%3Dx,tier!%3Da").await, "c");
    assert_eq!(selected(PODS, "job-name%20in%20(x,y)").await, "abc");
    assert_eq!(selected("/api/v1/namespaces/kube-system/pods", "job-name%3Dx").await, "");
    assert_eq!(selected("/api/v1/pods", "job-name%3Dx").await, "ac");
    server.merge(&format!("{PODS}/a"), &json!({"metadata": {"labels": {"job-name": "y"}}})).await.expect(200);
    assert_eq!(selected(PODS, "job-name%3Dx").await, "c");
    assert_eq!(selected(PODS, "job-name%3Dy").await, "ab");
}

#[rstest]
#[case("labelSelector=a%20b", "unable to parse requirement")]
#[case("fieldSelector=spec.x%3D1", "field label not supported: spec.x")]
#[case("limit=x", "invalid syntax")]
#[case("continue=x", "continue key is not valid")]
#[tokio::test]
async fn refuses_what_it_cannot_select(#[case] query: &str, #[case] text: &str) {
    server().await.get(&format!("{SECRETS}?{query}")).await.refused(400, "BadRequest", text);
}

#[tokio::test]
async fn pages_follow_each_other() {
    let server = server().await;
    let first = server.get("/api/v1/secrets?limit=3").await.expect(200);
    assert_eq!((names(&first).as_str(), &first["metadata"]["remainingItemCount"]), ("abc", &json!(1)));
    let token = first["metadata"]["continue"].as_str().unwrap();
    server.post(SECRETS, &secret("e")).await.expect(201);
    let second = server.get(&format!("/api/v1/secrets?limit=3&continue={token}")).await.expect(200);
    assert_eq!(names(&second), "ed");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert_eq!(second["metadata"].get("continue"), None);
    server.kubernetes.forget_history();
    let late = server.get(&format!("/api/v1/secrets?limit=3&continue={token}")).await;
    late.refused(410, "Expired", "The provided continue parameter is too old");
}

#[tokio::test]
async fn a_revision_to_come_is_waited_for_elsewhere() {
    let server = server().await;
    let status = server.get(&format!("{SECRETS}?resourceVersion=99999")).await.refused(
        504,
        "Timeout",
        "Too large resource version",
    );
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    server.get(&format!("{SECRETS}?resourceVersion=0")).await.expect(200);
}

#[tokio::test]
async fn metadata_can_be_had_alone() {
    let server = server().await;
    let accept = "accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n";
    let list = server.raw("GET", SECRETS, "", accept).await.unwrap().expect(200);
    assert_eq!(
        (&list["kind"], &list["items"][0]["kind"]),
        (&json!("PartialObjectMetadataList"), &json!("PartialObjectMetadata"))
    );
    assert_eq!(list["items"][0].get("data"), None);
}
