//! Deletion: soft, taken back, final, forbidden; and the conflicts on the way.

use std::time::Duration;

use emulators::key_vault::Settings;
use rstest::rstest;
use serde_json::{Value, json};

use testkit::key_vault::{KeyVaultReply as _, Server, names};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// A server on which deletions, recoveries and purges take a minute.
async fn slow() -> Server {
    Server::with_secret(Settings { transition: MINUTE, ..Settings::default() }).await
}

#[tokio::test]
async fn a_deleted_secret_can_be_recovered() {
    let server = Server::with_secret(Settings::default()).await;
    server.put("s", json!({"value": "b", "contentType": "text", "tags": {"a": "b"}})).await.expect(200);
    let newest = server.get("/secrets/s").await.expect(200);
    let deleted = server.delete("/secrets/s").await.expect(200);
    let (at, purge) = (deleted["deletedDate"].as_i64().unwrap(), deleted["scheduledPurgeDate"].as_i64().unwrap());
    assert_eq!(purge - at, 90 * 24 * 3600);
    let mut expected = newest.clone();
    expected.as_object_mut().unwrap().remove("value");
    let more = json!({
        "recoveryId": format!("{}/deletedsecrets/s", server.vault.url()), "deletedDate": at, "scheduledPurgeDate": purge,
    });
    expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(deleted, expected);
    assert_eq!(server.get("/deletedsecrets/s").await.expect(200), deleted);
    let listed = server.get("/deletedsecrets").await.expect(200);
    expected["id"] = json!(format!("{}/secrets/s", server.vault.url()));
    assert_eq!(listed["value"], json!([expected]));

    server.get("/secrets/s").await.refused(404, "SecretNotFound", "it may be recoverable");
    server.patch("/secrets/s", json!({"tags": {}})).await.refused(404, "SecretNotFound", "s was not found");
    server.delete("/secrets/s").await.refused(404, "SecretNotFound", "s was not found");
    assert_eq!(server.get("/secrets").await.expect(200)["value"], json!([]));
    let reused = server.put("s", json!({"value": "c"})).await;
    reused.refused(409, "Conflict/ObjectIsDeletedButRecoverable", "can only be recovered or purged");

    let recovered = server.recover("s").await.expect(200);
    assert_eq!((&recovered["id"], recovered.get("value")), (&newest["id"], None));
    assert_eq!(server.get("/secrets/s").await.expect(200), newest);
    assert_eq!(names(&server.get("/secrets/s/versions").await.expect(200)).len(), 2);
    server.get("/deletedsecrets/s").await.refused(404, "SecretNotFound", "Deleted Secret not found: s");
    server.recover("s").await.refused(404, "SecretNotFound", "Deleted Secret not found: s");
    server.delete("/deletedsecrets/s").await.refused(404, "SecretNotFound", "Deleted Secret not found: s");
}

#[tokio::test]
async fn a_purge_is_final() {
    let server = Server::with_secret(Settings::default()).await;
    server.delete("/secrets/s").await.expect(200);
    let purged = server.delete("/deletedsecrets/s").await;
    assert_eq!((purged.status, &purged.body), (204, &json!("")));
    server.get("/deletedsecrets/s").await.refused(404, "SecretNotFound", "Deleted Secret not found");
    server.recover("s").await.refused(404, "SecretNotFound", "Deleted Secret not found");
    server.set("s", "anew").await;
    assert_eq!(names(&server.get("/secrets/s/versions").await.expect(200)).len(), 1);
}

/// The name is taken while a deletion, a recovery and a purge are on their way, and the secret is on neither side.
#[rstest]
#[case::deleting(&[], 409, "Conflict/ObjectIsBeingDeleted")]
#[case::recovering(&["recover"], 409, "Conflict/ObjectIsBeingRecovered")]
#[case::purging(&["purge"], 409, "Conflict/ObjectIsBeingDeleted")]
#[tokio::test]
async fn transitions_take_their_time(#[case] steps: &[&str], #[case] status: u16, #[case] code: &str) {
    let server = slow().await;
    server.delete("/secrets/s").await.expect(200);
    for step in steps {
        server.vault.advance_clock(MINUTE);
        let done = if *step == "purge" { server.delete("/deletedsecrets/s").await } else { server.recover("s").await };
        assert!([200, 204].contains(&done.status), "{done:?}");
    }
    server.put("s", json!({"value": "b"})).await.refused(status, code, "Secret s is currently being");
    server.get("/secrets/s").await.refused(404, "SecretNotFound", "was not found");
    server.get("/deletedsecrets/s").await.refused(404, "SecretNotFound", "Deleted Secret not found");
    for path in ["/secrets", "/deletedsecrets", "/secrets/s/versions"] {
        assert_eq!(server.get(path).await.expect(200)["value"], json!([]), "{path}");
    }
    server.vault.advance_clock(MINUTE);
    let after = server.put("s", json!({"value": "b"})).await;
    if steps.is_empty() {
        after.refused(
            409,
            "Conflict/ObjectIsDeletedButRecoverable",
            "s is currently in a deleted but recoverable state",
        );
    } else {
        after.expect(200);
    }
}

#[rstest]
#[case::delete("DELETE", "/secrets/s")]
#[case::purge("DELETE", "/deletedsecrets/s")]
#[case::recover("POST", "/deletedsecrets/s/recover")]
#[tokio::test]
async fn a_deletion_on_its_way_is_a_conflict(#[case] method: &str, #[case] path: &str) {
    let server = slow().await;
    server.delete("/secrets/s").await.expect(200);
    server.call(method, path, Value::Null).await.refused(409, "Conflict/ObjectIsBeingDeleted", "being deleted");
}

#[tokio::test]
async fn a_recovery_on_its_way_is_a_conflict() {
    let server = slow().await;
    server.delete("/secrets/s").await.expect(200);
    server.vault.advance_clock(MINUTE);
    server.recover("s").await.expect(200);
    server.delete("/secrets/s").await.refused(409, "Conflict/ObjectIsBeingRecovered", "being recovered");
    server.recover("s").await.refused(404, "SecretNotFound", "Deleted Secret not found");
}

#[tokio::test]
async fn purge_protection_keeps_what_is_deleted() {
    let settings = Settings { purge_protection: true, recoverable_days: 7, ..Settings::default() };
    let server = Server::with_secret(settings).await;
    let deleted = server.delete("/secrets/s").await.expect(200);
    let attributes = &deleted["attributes"];
    assert_eq!(
        (&attributes["recoveryLevel"], &attributes["recoverableDays"]),
        (&json!("CustomizedRecoverable"), &json!(7))
    );
    server.delete("/deletedsecrets/s").await.refused(403, "Forbidden/ForbiddenByPolicy", "purge protection is enabled");
    server.delete("/deletedsecrets/none").await.refused(404, "SecretNotFound", "Deleted Secret not found: none");
    server.vault.advance_clock(DAY * 6);
    server.recover("s").await.expect(200);
    server.delete("/secrets/s").await.expect(200);
    server.vault.advance_clock(DAY * 7);
    server.get("/deletedsecrets/s").await.refused(404, "SecretNotFound", "Deleted Secret not found");
    server.set("s", "anew").await;
}
