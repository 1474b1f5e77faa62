//! Scripted faults, each effect seen from the client's side.

use emulators::kubernetes::Fault;
use rstest::rstest;
use serde_json::json;

use super::client::{Refused as _, SECRETS, Server, secret};
use testkit::http::exchange;

#[tokio::test]
async fn refusals_are_answered_and_nothing_is_done() {
    let faults = ["create/secrets:500*2", "create/secrets:403(message=exceeded quota: q, requested: secrets=1)@3"];
    let server = Server::faulty(&faults).await;
    server.post(SECRETS, &secret("s")).await.refused(500, "InternalError", "Scripted fault");
    server.post(SECRETS, &secret("s")).await.refused(500, "InternalError", "Scripted fault");
    server.post(SECRETS, &secret("s")).await.refused(403, "Forbidden", "exceeded quota: q, requested: secrets=1");
    server.post(SECRETS, &secret("s")).await.expect(201);
    let outcomes: Vec<_> = server.kubernetes.calls().iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Some(500), Some(500), Some(403), Some(201)]);
}

#[tokio::test]
async fn a_fault_of_a_namespace_leaves_the_others_alone() {
    let server = Server::faulty(&["create/secrets in other:500*0", "create/secrets in default:500"]).await;
    server.post(SECRETS, &secret("s")).await.refused(500, "InternalError", "Scripted fault");
    server.post(SECRETS, &secret("s")).await.expect(201);
}

#[tokio::test]
async fn retry_after_is_a_header_and_a_detail() {
    let server =
        Server::faulty(&["get/secrets:429(retry-after=1500ms)", "get/secrets:409(reason=AlreadyExists)"]).await;
    let reply = server.get(&format!("{SECRETS}/s")).await;
    assert!(reply.head.contains("retry-after: 2"), "{}", reply.head);
    assert_eq!(reply.refused(429, "TooManyRequests", "Scripted")["details"], json!({"retryAfterSeconds": 2}));
    server.get(&format!("{SECRETS}/s")).await.refused(409, "AlreadyExists", "Scripted");
}

#[rstest]
#[case("create/secrets:cut", false)]
#[case("*/*:commit-then-cut", true)]
#[tokio::test]
async fn a_cut_connection_answers_nothing(#[case] fault: &str, #[case] committed: bool) {
    let server = Server::faulty(&[fault]).await;
    let reply = server.raw("POST", SECRETS, &secret("s").to_string(), "").await;
    assert!(reply.is_none(), "{reply:?}");
    assert_eq!(server.get(&format!("{SECRETS}/s")).await.status == 200, committed);
    assert_eq!(server.kubernetes.calls()[0].outcome, None);
}

#[rstest]
#[case("create/secrets:hang", false)]
#[case("create/secrets:commit-then-hang", true)]
#[tokio::test]
async fn a_hanging_call_ends_with_the_server(#[case] fault: &str, #[case] committed: bool) {
    let server = Server::faulty(&[fault]).await;
    let address = server.kubernetes.address();
    let hanging = tokio::spawn(async move { exchange(address, "POST", SECRETS, &secret("s").to_string(), "").await });
    server.kubernetes.wait_for_calls(1).await;
    assert_eq!(server.get(&format!("{SECRETS}/s")).await.status == 200, committed);
    assert!(!hanging.is_finished());
    server.kubernetes.shutdown().await;
    assert!(hanging.await.unwrap().is_none());
}

#[tokio::test]
async fn a_time_out_after_the_commit_has_committed() {
    let server = Server::faulty(&["create/secrets:commit-then-timeout", "get/secrets:slow(1ms)"]).await;
    server.post(SECRETS, &secret("s")).await.refused(504, "Timeout", "request did not complete");
    server.get(&format!("{SECRETS}/s")).await.expect(200);
}

#[tokio::test]
async fn watches_are_cut_or_expire_after_some_events() {
    let server = Server::faulty(&["watch/secrets:cut(after=1)", "watch/secrets:gone(after=1)"]).await;
    for name in ["a", "b"] {
        server.post(SECRETS, &secret(name)).await.expect(201);
    }
    let mut cut = server.watch(SECRETS).await;
    assert_eq!((cut.next_event().await.as_str(), cut.next_event().await.as_str()), ("ADDED a", "over"));
    let mut gone = server.watch(SECRETS).await;
    let events = [gone.next_event().await, gone.next_event().await, gone.next_event().await];
    assert_eq!(events, ["ADDED a", "ERROR", "over"]);
    let mut whole = server.watch(SECRETS).await;
    assert_eq!((whole.next_event().await.as_str(), whole.next_event().await.as_str()), ("ADDED a", "ADDED b"));
}

#[tokio::test]
async fn faults_come_and_go_at_run_time_and_fit_subresources() {
    let server = Server::plain().await;
    let every: Fault = "get/pods/status:503*0".parse().unwrap();
    server.kubernetes.inject(every);
    let path = "/api/v1/namespaces/default/pods/p";
    for _ in 0..3 {
        server.get(&format!("{path}/status")).await.refused(503, "ServiceUnavailable", "Scripted fault");
        server.get(path).await.refused(404, "NotFound", "");
    }
    server.kubernetes.clear_faults();
    server.get(&format!("{path}/status")).await.refused(404, "NotFound", "pods \"p\" not found");
}

#[tokio::test]
async fn calls_are_remembered_without_content() {
    let server = Server::plain().await;
    let headers = "user-agent: pull-secret/1.0\r\ncontent-type: application/json\r\n";
    server.raw("POST", &format!("{SECRETS}?dryRun=All"), &secret("s").to_string(), headers).await.unwrap().expect(201);
    let calls = server.kubernetes.calls();
    let call = &calls[0];
    let events = (call.verb.as_str(), call.resource.as_str(), call.namespace.as_str(), call.user_agent.as_str());
    assert_eq!(events, ("create", "secrets", "default", "pull-secret/1.0"));
    assert!(call.dry_run);
    assert!(!format!("{calls:?}").contains("value"));
}
