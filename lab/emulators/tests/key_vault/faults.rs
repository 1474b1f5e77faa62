//! Scripted faults, each effect seen from the client's side.

use std::time::Duration;

use emulators::key_vault::{Operation, Settings};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::http::{exchange_over, secured};
use tokio::net::TcpStream;

use testkit::key_vault::{KeyVaultReply as _, SUBJECT, Server, names, versioned};

fn faults(texts: &[&str]) -> Settings {
    Settings { faults: texts.iter().map(|text| text.parse().unwrap()).collect(), ..Settings::default() }
}

#[rstest]
#[case("throttled", 429, "Throttled", "too many requests")]
#[case("internal-error", 500, "InternalServerError", "Scripted fault")]
#[case("unavailable", 503, "ServiceUnavailable", "Scripted fault")]
#[case("gateway-timeout", 504, "GatewayTimeout", "Scripted fault")]
#[case("unauthorized", 401, "Unauthorized", "Scripted fault")]
#[case("access-denied", 403, "Forbidden/AccessDenied", "Scripted fault")]
#[case("not-found", 404, "SecretNotFound", "s was not found")]
#[tokio::test]
async fn refusals_are_answered_and_nothing_is_done(
    #[case] effect: &str,
    #[case] status: u16,
    #[case] code: &str,
    #[case] text: &str,
) {
    let server = Server::start(faults(&[&format!("setSecret in S:{effect}(retry-after=1500ms)@2")])).await;
    let first = server.set("s", "a").await;
    server.set("other", "a").await;
    let refused = server.put("s", json!({"value": "b"})).await;
    assert!(refused.head.contains("retry-after: 2\r\n"), "{}", refused.head);
    refused.refused(status, code, text);
    assert_eq!(names(&server.get("/secrets/s/versions").await.expect(200)), [first]);
    server.set("s", "b").await;
    assert_eq!(server.outcomes(Operation::SetSecret), [200, 200, status, 200].map(Some));
}

#[rstest]
#[case("throttled(retry-after=1s)", 429, "temporarily_unavailable", "too many requests")]
#[case("unavailable(retry-after=1s)", 503, "temporarily_unavailable", "Scripted fault")]
#[case("internal-error(retry-after=1s)", 500, "server_error", "Scripted fault")]
#[case("unauthorized(retry-after=1s)", 401, "invalid_client", "Scripted fault")]
#[tokio::test]
async fn entra_fails_in_its_own_words(
    #[case] effect: &str,
    #[case] status: u16,
    #[case] error: &str,
    #[case] text: &str,
) {
    let server = Server::start(faults(&[&format!("requestToken:{effect}@2")])).await;
    let form = server.form(&[("client_assertion", &server.vault.assertion(SUBJECT))]);
    let denied = server.request_token(&form).await;
    assert!(denied.head.contains("retry-after: 1\r\n"), "{}", denied.head);
    denied.denied(status, error, text);
    server.request_token(&form).await.expect(200);
}

/// A call without a token that is good is refused before any fault: the first one that a client sends to be challenged does
/// not use it up.
#[tokio::test]
async fn a_challenge_counts_for_no_fault() {
    let server = Server::with_secret(faults(&["getSecret:throttled"])).await;
    let challenged = server.raw("GET", &versioned("/secrets/s"), "", "").await.unwrap();
    challenged.refused(401, "Unauthorized", "missing a Bearer");
    server.get("/secrets/s").await.refused(429, "Throttled", "too many requests");
    server.get("/secrets/s").await.expect(200);
}

#[tokio::test]
async fn a_time_out_after_the_commit_has_committed() {
    let server = Server::start(faults(&["setSecret:commit-then-timeout"])).await;
    server.put("s", json!({"value": "a"})).await.refused(504, "GatewayTimeout", "Scripted fault");
    assert_eq!(server.value("s").await, "a");
    assert_eq!(server.outcomes(Operation::SetSecret), [Some(504)]);
}

#[rstest]
#[case("setSecret:cut", false)]
#[case("setSecret:commit-then-cut", true)]
#[tokio::test]
async fn a_cut_connection_answers_nothing(#[case] fault: &str, #[case] committed: bool) {
    let server = Server::start(faults(&[fault])).await;
    let reply = server.try_call("PUT", "/secrets/s", json!({"value": "a"})).await;
    assert!(reply.is_none(), "{reply:?}");
    assert_eq!(server.get("/secrets/s").await.status == 200, committed);
    assert_eq!(server.outcomes(Operation::SetSecret), [None]);
}

#[rstest]
#[case("setSecret:hang", false)]
#[case("setSecret:commit-then-hang", true)]
#[tokio::test]
async fn a_hanging_call_ends_with_the_server(#[case] fault: &str, #[case] committed: bool) {
    let server = Server::start(faults(&[fault])).await;
    let stream = TcpStream::connect(server.vault.address()).await.unwrap();
    let stream = secured(stream, server.vault.authority()).await.unwrap();
    let headers = format!("host: localhost\r\nauthorization: Bearer {}\r\n", server.token);
    let hanging = tokio::spawn(async move {
        exchange_over(stream, "PUT", &versioned("/secrets/s"), r#"{"value": "a"}"#, &headers).await
    });
    // The first call was for the token.
    server.vault.wait_for_calls(2).await;
    assert_eq!(server.get("/secrets/s").await.status == 200, committed);
    assert!(!hanging.is_finished());
    server.vault.shutdown().await;
    assert!(hanging.await.unwrap().is_none());
}

/// Time stands still but for what is waited for.
#[tokio::test(start_paused = true)]
async fn every_call_takes_its_time() {
    let latency = Duration::from_mins(10);
    let server = Server::start(Settings { latency, ..Settings::default() }).await;
    let began = tokio::time::Instant::now();
    server.get("/secrets").await.expect(200);
    assert!(began.elapsed() >= latency);
}

#[tokio::test]
async fn faults_come_and_go_at_run_time() {
    let server = Server::with_secret(Settings::default()).await;
    server.vault.inject("*:unavailable*0".parse().unwrap());
    for (method, path) in [("GET", "/secrets"), ("GET", "/secrets/s"), ("DELETE", "/secrets/s")] {
        server.call(method, path, Value::Null).await.refused(503, "ServiceUnavailable", "Scripted fault");
    }
    server.vault.clear_faults();
    server.get("/secrets/s").await.expect(200);
}
