//! Scripted faults, each effect seen from the client's side.

use emulators::secret_manager::{Fault, Method, Settings};
use rstest::rstest;
use serde_json::json;

use super::client::{PARENT, SecretManagerReply as _, Server, call, payload};

fn faults(texts: &[&str]) -> Settings {
    Settings { faults: texts.iter().map(|text| text.parse().unwrap()).collect(), ..Settings::default() }
}

#[tokio::test]
async fn codes_are_answered_and_nothing_is_done() {
    let server = Server::with_secret(faults(&["addVersion:unavailable*2", "addVersion:internal@4"])).await;
    server.add("a").await.refused(503, "UNAVAILABLE", "Scripted fault");
    server.add("a").await.refused(503, "UNAVAILABLE", "Scripted fault");
    assert!(server.add("a").await.expect(200)["name"].as_str().unwrap().ends_with("/versions/1"));
    server.add("b").await.refused(500, "INTERNAL", "Scripted fault");
    server.access("2").await.refused(404, "NOT_FOUND", "versions/2] not found.");
}

#[tokio::test]
async fn retry_after_is_a_header_and_a_detail() {
    let server = Server::with_secret(faults(&["getSecret:resource-exhausted(retry-after=1500ms)"])).await;
    let reply = server.get(&format!("{PARENT}/secrets/s")).await;
    assert!(reply.head.contains("retry-after: 2"), "{}", reply.head);
    let detail = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.500s"});
    assert_eq!(reply.body["error"]["details"], json!([detail]));
    reply.refused(429, "RESOURCE_EXHAUSTED", "Scripted fault");
}

#[rstest]
#[case("iam-denied", (403, "PERMISSION_DENIED", "Permission 'secretmanager.versions.add' denied for resource"))]
#[case("quota-exceeded", (429, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric"))]
#[case("api-disabled", (403, "PERMISSION_DENIED", "Secret Manager API has not been used in project"))]
#[tokio::test]
async fn the_service_refuses_in_one_project(#[case] effect: &str, #[case] expect: (u16, &str, &str)) {
    let project = PARENT.rsplit('/').next().unwrap();
    let server =
        Server::with_secret(faults(&[&format!("addVersion in {project}:{effect}"), "addVersion in other-1:cut*0"]))
            .await;
    server.add("a").await.refused(expect.0, expect.1, expect.2);
    server.add("a").await.expect(200);
}

#[tokio::test]
async fn a_time_out_after_the_commit_has_committed() {
    let server = Server::with_secret(faults(&["addVersion:commit-then-timeout"])).await;
    server.add("a").await.refused(504, "DEADLINE_EXCEEDED", "deadline");
    assert_eq!(server.access("1").await.content(), "a");
    assert_eq!(server.outcomes(Method::AddVersion), [Some("DEADLINE_EXCEEDED")]);
}

#[rstest]
#[case("addVersion:cut", false)]
#[case("addVersion:commit-then-cut", true)]
#[tokio::test]
async fn a_cut_connection_answers_nothing(#[case] fault: &str, #[case] committed: bool) {
    let server = Server::with_secret(faults(&[fault])).await;
    let reply = server.raw("POST", &format!("{PARENT}/secrets/s:addVersion"), &payload("a").to_string(), "").await;
    assert!(reply.is_none(), "{reply:?}");
    assert_eq!(server.access("1").await.status == 200, committed);
    assert_eq!(server.outcomes(Method::AddVersion), [None]);
}

#[rstest]
#[case("addVersion:hang", false)]
#[case("addVersion:commit-then-hang", true)]
#[tokio::test]
async fn a_hanging_call_ends_with_the_server(#[case] fault: &str, #[case] committed: bool) {
    let server = Server::with_secret(faults(&[fault])).await;
    let address = server.manager.address();
    let hanging = tokio::spawn(async move {
        let (path, body) = (format!("{PARENT}/secrets/s:addVersion"), payload("a").to_string());
        call(address, "POST", &path, &body, "").await
    });
    server.manager.wait_for_calls(2).await;
    assert_eq!(server.access("1").await.status == 200, committed);
    assert!(!hanging.is_finished());
    server.manager.shutdown().await;
    assert!(hanging.await.unwrap().is_none());
}

#[tokio::test]
async fn faults_come_and_go_at_run_time() {
    let server = Server::with_secret(Settings::default()).await;
    let every: Fault = "*:aborted*0".parse().unwrap();
    server.manager.inject(every);
    for _ in 0..3 {
        server.add("a").await.refused(409, "ABORTED", "Scripted fault");
    }
    server.manager.clear_faults();
    server.add("a").await.expect(200);
}
