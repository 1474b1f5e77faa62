//! Effects of time: lagging reads, expiry, delayed destruction.

use std::time::Duration;

use emulators::secret_manager::Settings;
use serde_json::json;

use super::client::{PARENT, SecretManagerReply as _, Server};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn metadata_lags_access_by_number_does_not() {
    let server = Server::with_secret(Settings { metadata_lag: MINUTE, ..Settings::default() }).await;
    let secret = format!("{PARENT}/secrets/s");
    server.create("s", json!({})).await.refused(409, "ALREADY_EXISTS", "already exists");
    server.add("a").await.expect(200);
    assert_eq!(server.access("1").await.content(), "a");
    server.access("latest").await.refused(404, "NOT_FOUND", "not found or has no versions");
    server.get(&secret).await.refused(404, "NOT_FOUND", "not found");
    server.get(&format!("{secret}/versions/1")).await.refused(404, "NOT_FOUND", "not found");
    assert_eq!(server.get(&format!("{PARENT}/secrets")).await.expect(200), json!({}));

    server.manager.advance_clock(MINUTE);
    assert_eq!(server.access("latest").await.content(), "a");
    let etag = server.get(&secret).await.expect(200)["etag"].clone();
    let fresh = server.patch("labels", json!({"labels": {"a": "b"}})).await.expect(200)["etag"].clone();
    server.add("b").await.expect(200);
    server.change("1", "disable").await.expect(200);
    assert_eq!(server.access("2").await.content(), "b");
    assert_eq!(server.get(&secret).await.expect(200)["etag"], etag, "reads are old");
    server.patch("labels", json!({"etag": etag})).await.refused(400, "FAILED_PRECONDITION", "etag");
    server.patch("labels", json!({"etag": fresh})).await.expect(200);
    server.access("latest").await.refused(400, "FAILED_PRECONDITION", "versions/1] is in DISABLED state.");
    assert_eq!(server.get(&format!("{secret}/versions")).await.expect(200)["totalSize"], 1);

    server.manager.advance_clock(MINUTE);
    assert_eq!(server.access("latest").await.content(), "b");
    server.call("DELETE", &secret, json!({})).await.expect(200);
    server.get(&secret).await.expect(200);
    server.access("2").await.refused(404, "NOT_FOUND", "not found");
    server.manager.advance_clock(MINUTE);
    server.get(&secret).await.refused(404, "NOT_FOUND", "not found");
}

#[tokio::test]
async fn secrets_expire() {
    let server = Server::plain().await;
    let created = server.create("s", json!({"ttl": "3600s"})).await.expect(200);
    assert!(created["expireTime"].is_string());
    server.manager.advance_clock(Duration::from_secs(3500));
    server.patch("ttl", json!({"ttl": "7200s"})).await.expect(200);
    server.manager.advance_clock(Duration::from_secs(7100));
    server.get(&format!("{PARENT}/secrets/s")).await.expect(200);
    server.manager.advance_clock(Duration::from_secs(100));
    server.get(&format!("{PARENT}/secrets/s")).await.refused(404, "NOT_FOUND", "not found");
    server.create("s", json!({})).await.expect(200);
}

#[tokio::test]
async fn destruction_can_wait_and_be_called_off() {
    let server = Server::plain().await;
    server.create("s", json!({"versionDestroyTtl": "172800s"})).await.expect(200);
    server.add("a").await.expect(200);
    let scheduled = server.change("1", "destroy").await.expect(200);
    assert_eq!(scheduled["state"], "DISABLED");
    let at = scheduled["scheduledDestroyTime"].clone();
    server.manager.advance_clock(DAY);
    assert_eq!(
        server.change("1", "destroy").await.expect(200)["scheduledDestroyTime"],
        at,
        "asking again changes nothing"
    );
    let restored = server.change("1", "enable").await.expect(200);
    assert!(restored["state"] == "ENABLED" && restored.get("scheduledDestroyTime").is_none());
    server.manager.advance_clock(DAY * 2);
    assert_eq!(server.access("1").await.content(), "a");

    let at = server.change("1", "destroy").await.expect(200)["scheduledDestroyTime"].clone();
    server.manager.advance_clock(DAY * 2);
    server.access("1").await.refused(400, "FAILED_PRECONDITION", "DESTROYED state");
    let version = server.get(&format!("{PARENT}/secrets/s/versions/1")).await.expect(200);
    assert_eq!(version["destroyTime"], at);
}
