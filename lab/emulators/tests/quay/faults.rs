//! Scripted faults, each effect seen from the client's side.

use std::time::Duration;

use emulators::quay::{Operation, Settings};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::http::exchange;
use testkit::quay::{Server, bearer};

#[rstest]
#[case("throttled", 429, "downstream_issue")]
#[case("internal-error", 500, "downstream_issue")]
#[case("bad-gateway", 502, "downstream_issue")]
#[case("unavailable", 503, "downstream_issue")]
#[case("gateway-timeout", 504, "downstream_issue")]
#[case("unauthorized", 401, "invalid_token")]
#[case("forbidden", 403, "insufficient_scope")]
#[case("not-found", 404, "not_found")]
#[tokio::test]
async fn refusals_are_answered_and_nothing_is_done(#[case] effect: &str, #[case] status: u16, #[case] kind: &str) {
    let server = Server::faulty(&[&format!("createOrgRobot in b1:{effect}(retry-after=1500ms)")]).await;
    server.robot("a1").await;
    let refused = server.call("PUT", "robots/b1", Value::Null).await;
    assert!(refused.head.contains("retry-after: 2\r\n"), "{}", refused.head);
    assert_eq!((refused.status, &refused.body["error_type"]), (status, &json!(kind)));
    server.call("GET", "robots/b1", Value::Null).await.expect(400);
    server.robot("b1").await;
    assert_eq!(server.outcomes(Operation::CreateRobot), [201, status, 201].map(Some));
}

#[tokio::test]
async fn the_token_service_fails_in_its_own_form() {
    let server = Server::faulty(&["issueToken in hyperfleet+a1:throttled(retry-after=1s)"]).await;
    let password = server.robot("a1").await;
    let refused = server.request_token("a1", &password, "release").await;
    assert!(refused.head.contains("retry-after: 1\r\n"), "{}", refused.head);
    assert_eq!(refused.expect(429)["errors"][0]["code"], json!("TOOMANYREQUESTS"));
    server.request_token("a1", &password, "release").await.expect(200);
}

/// A call whose token is not good is refused before any fault, and uses none up.
#[tokio::test]
async fn a_call_without_a_token_counts_for_no_fault() {
    let server = Server::faulty(&["getOrgRobots:throttled"]).await;
    server.raw("GET", "/api/v1/organization/hyperfleet/robots", "", "").await.unwrap().expect(401);
    server.call("GET", "robots", Value::Null).await.expect(429);
    server.call("GET", "robots", Value::Null).await.expect(200);
}

/// An answer that the caller does not get belongs to a change that has happened all the same, as a read shows.
#[rstest]
#[case("cut", None, false)]
#[case("commit-then-cut", None, true)]
#[case("commit-then-timeout", Some(504), true)]
#[case("commit-then-garbage", Some(200), true)]
#[case("garbage", Some(200), false)]
#[tokio::test]
async fn an_answer_is_lost(#[case] effect: &str, #[case] status: Option<u16>, #[case] committed: bool) {
    let server = Server::faulty(&[&format!("createOrgRobot:{effect}")]).await;
    let reply = server.try_call("PUT", "robots/a1", json!({"description": "d"})).await;
    assert_eq!(reply.map(|reply| reply.status), status);
    assert_eq!(server.outcomes(Operation::CreateRobot), [status]);
    assert_eq!(server.call("GET", "robots/a1", Value::Null).await.status == 200, committed);
}

#[rstest]
#[case("hang", false)]
#[case("commit-then-hang", true)]
#[case("commit-then-stall", true)]
#[tokio::test]
async fn a_hanging_call_ends_with_the_server(#[case] effect: &str, #[case] committed: bool) {
    let server = Server::faulty(&[&format!("createOrgRobot:{effect}")]).await;
    let (address, headers) = (server.quay.address(), bearer(server.quay.token()));
    let hanging = tokio::spawn(async move {
        exchange(address, "PUT", "/api/v1/organization/hyperfleet/robots/a1", "", &headers).await
    });
    server.quay.wait_for_calls(1).await;
    assert_eq!(server.call("GET", "robots/a1", Value::Null).await.status == 200, committed);
    assert!(!hanging.is_finished());
    server.quay.shutdown().await;
    let reply = hanging.await.unwrap();
    assert_eq!(reply.is_some(), effect == "commit-then-stall");
}

#[tokio::test]
async fn a_huge_answer_is_longer_than_any_list() {
    let server = Server::faulty(&["getOrgRobots:commit-then-huge"]).await;
    let reply = server.call("GET", "robots", Value::Null).await.expect(200);
    assert!(reply.as_str().unwrap().len() > 64 * 1024 * 1024);
}

/// Time stands still but for what is waited for.
#[tokio::test(start_paused = true)]
async fn answers_take_their_time() {
    let (latency, delay) = (Duration::from_mins(10), Duration::from_hours(1));
    let faults = vec!["getOrgRobots:slow(3600s)".parse().unwrap()];
    let server = Server::start(Settings { latency, faults, ..Settings::default() }).await;
    let began = tokio::time::Instant::now();
    server.call("GET", "robots", Value::Null).await.expect(200);
    assert!(began.elapsed() >= latency + delay);
    let began = tokio::time::Instant::now();
    server.call("GET", "robots", Value::Null).await.expect(200);
    assert!((latency..delay).contains(&began.elapsed()));
}

#[tokio::test]
async fn faults_come_and_go_at_run_time() {
    let server = Server::plain().await;
    server.quay.inject("*:unavailable*0".parse().unwrap());
    for (method, path) in [("GET", "robots"), ("PUT", "robots/a1"), ("GET", "logs")] {
        server.call(method, path, Value::Null).await.expect(503);
    }
    server.quay.clear_faults();
    server.robot("a1").await;
}
