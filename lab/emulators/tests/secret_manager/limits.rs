//! Quotas, the required token, latency, shutdown.

use std::time::Duration;

use emulators::secret_manager::{Quotas, Settings};
use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use super::client::{PARENT, SecretManagerReply as _, Server};

#[tokio::test]
async fn quotas_are_per_minute_class_and_project() {
    let quotas = Quotas { writes_per_minute: Some(2), ..Quotas::default() };
    let server = Server::with_secret(Settings { quotas, ..Settings::default() }).await;
    server.add("a").await.expect(200);
    let reply = server.add("b").await;
    let info = &reply.body["error"]["details"][0];
    assert_eq!((&info["reason"], &info["metadata"]["quota_limit_value"]), (&json!("RATE_LIMIT_EXCEEDED"), &json!("2")));
    let text = "Quota exceeded for quota metric 'Write requests' and limit 'Write requests per minute' of service \
                'secretmanager.googleapis.com' for consumer 'project_number:";
    reply.refused(429, "RESOURCE_EXHAUSTED", text);
    assert_eq!(server.access("1").await.content(), "a");
    server
        .call("POST", "/v1/projects/other/secrets?secretId=s", json!({"replication": {"automatic": {}}}))
        .await
        .expect(200);
    server.manager.advance_clock(Duration::from_mins(1));
    server.add("b").await.expect(200);
}

#[rstest]
#[case("", 401)]
#[case("authorization: Bearer wrong\r\n", 401)]
#[case("authorization: Basic right\r\n", 401)]
#[case("authorization: Bearer right\r\n", 200)]
#[tokio::test]
async fn requires_the_token(#[case] header: &str, #[case] status: u16) {
    let server = Server::start(Settings { required_token: Some("right".to_owned()), ..Settings::default() }).await;
    let reply = server.raw("GET", &format!("{PARENT}/secrets"), "", header).await.unwrap();
    assert_eq!(reply.status, status);
    if status == 401 {
        assert!(reply.head.contains("www-authenticate: bearer"));
        reply.refused(401, "UNAUTHENTICATED", "invalid authentication credentials");
    }
}

#[tokio::test]
async fn takes_its_time() {
    let latency = Duration::from_millis(50);
    let server = Server::start(Settings { latency, ..Settings::default() }).await;
    let start = Instant::now();
    server.get(&format!("{PARENT}/secrets")).await.expect(200);
    assert!(start.elapsed() >= latency);
}

#[tokio::test]
async fn stops_and_frees_its_port() {
    let server = Server::plain().await;
    let listen = server.manager.address();
    server.manager.shutdown().await;
    let mut again = Server::start(Settings { listen, ..Settings::default() }).await;
    let taken = emulators::secret_manager::SecretManager::start(Settings { listen, ..Settings::default() }).await;
    assert_eq!(taken.unwrap_err().to_string(), format!("cannot listen on {listen}"));
    let still_running = tokio::time::timeout(Duration::from_millis(20), again.manager.stopped()).await;
    assert!(still_running.is_err());
}
