//! Secrets and their versions: written, read, updated, disabled.

use std::time::Duration;

use emulators::key_vault::Settings;
use serde_json::{Value, json};

use testkit::key_vault::{KeyVaultReply as _, Server, names, version_of};

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn each_write_makes_a_version() {
    let server = Server::plain().await;
    let given = json!({
        "value": "first", "contentType": "application/json", "tags": {"hyperfleet-version": "7"},
        "attributes": {"nbf": 1_800_000_000, "exp": 1_900_000_000},
    });
    let before = jiff::Timestamp::now().as_second();
    let first = server.put("s", given.clone()).await.expect(200);
    let id = version_of(&first);
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    assert_eq!(first["id"], format!("{}/secrets/s/{id}", server.vault.url()));
    for member in ["value", "contentType", "tags"] {
        assert_eq!(first[member], given[member]);
    }
    let attributes = &first["attributes"];
    let created = attributes["created"].as_i64().unwrap();
    assert!((before..=before + 60).contains(&created), "seconds: {created}");
    let expected = json!({
        "enabled": true, "nbf": 1_800_000_000, "exp": 1_900_000_000, "created": created, "updated": created,
        "recoveryLevel": "Recoverable+Purgeable", "recoverableDays": 90,
    });
    assert_eq!(*attributes, expected);
    assert_eq!(server.get("/secrets/s").await.expect(200), first);

    let second = server.set("s", "second").await;
    assert_ne!(second, id);
    assert_eq!(server.value("s").await, "second");
    assert_eq!(server.value(&format!("s/{second}")).await, "second");
    assert_eq!(server.get(&format!("/secrets/s/{id}")).await.expect(200), first);
    let plain = server.get("/secrets/s/").await.expect(200);
    assert_eq!((plain.get("contentType"), &plain["tags"]), (None, &json!({})), "nothing is inherited");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = Server::with_secret(Settings::default()).await;
    server.get("/secrets/none").await.refused(404, "SecretNotFound", "A secret with (name/id) none was not found");
    let version = "0123456789abcdef0123456789abcdef";
    let of_version = format!("(name/id) s/{version} was not found");
    server.get(&format!("/secrets/s/{version}")).await.refused(404, "SecretNotFound", &of_version);
    let update = server.patch(&format!("/secrets/s/{version}"), json!({"tags": {}})).await;
    update.refused(404, "SecretNotFound", &of_version);
    server.patch("/secrets/none", json!({"tags": {}})).await.refused(404, "SecretNotFound", "none was not found");
    server.delete("/secrets/none").await.refused(404, "SecretNotFound", "none was not found");
}

#[tokio::test]
async fn an_update_changes_what_it_names_of_one_version() {
    let server = Server::plain().await;
    let given = json!({"value": "a", "contentType": "text", "tags": {"a": "1", "b": "2"}, "attributes": {"exp": 1_900_000_000}});
    let first = server.put("s", given).await.expect(200);
    let path = format!("/secrets/s/{}", version_of(&first));
    server.set("s", "b").await;
    server.vault.advance_clock(MINUTE);

    let tagged = server.patch(&path, json!({"tags": {"c": "3"}, "value": "ignored"})).await.expect(200);
    assert_eq!((tagged.get("value"), &tagged["id"]), (None, &first["id"]));
    assert_eq!(
        (&tagged["tags"], &tagged["contentType"]),
        (&json!({"c": "3"}), &json!("text")),
        "all tags, nothing else"
    );
    let (created, updated) = (&tagged["attributes"]["created"], tagged["attributes"]["updated"].as_i64().unwrap());
    assert_eq!(*created, first["attributes"]["created"]);
    assert!((60..120).contains(&(updated - created.as_i64().unwrap())), "{updated}");
    let changed =
        server.patch(&path, json!({"contentType": "json", "attributes": {"exp": 1_950_000_000}})).await.expect(200);
    assert_eq!((&changed["tags"], &changed["contentType"]), (&json!({"c": "3"}), &json!("json")));
    assert_eq!(
        (&changed["attributes"]["exp"], &changed["attributes"]["enabled"]),
        (&json!(1_950_000_000), &json!(true))
    );
    assert_eq!(server.value(path.strip_prefix("/secrets/").unwrap()).await, "a");
    assert_eq!(server.get("/secrets/s").await.expect(200)["tags"], json!({}), "the newest is untouched");
    server.patch("/secrets/s", json!({"tags": {"new": "est"}})).await.expect(200);
    assert_eq!(server.get("/secrets/s").await.expect(200)["tags"], json!({"new": "est"}));
}

#[tokio::test]
async fn a_disabled_version_is_a_state_not_an_absence() {
    let server = Server::with_secret(Settings::default()).await;
    let second = server.set("s", "b").await;
    let disable = |enabled: bool| json!({"attributes": {"enabled": enabled}});
    let disabled = server.patch(&format!("/secrets/s/{second}"), disable(false)).await.expect(200);
    assert_eq!(disabled["attributes"]["enabled"], false);
    let text = "Operation get is not allowed on a disabled secret.";
    server.get("/secrets/s").await.refused(403, "Forbidden/SecretDisabled", text);
    server.get(&format!("/secrets/s/{second}")).await.refused(403, "Forbidden/SecretDisabled", text);
    let listed = server.get("/secrets").await.expect(200);
    assert_eq!((names(&listed), &listed["value"][0]["attributes"]["enabled"]), (vec!["s".to_owned()], &json!(false)));
    server.patch(&format!("/secrets/s/{second}"), disable(true)).await.expect(200);
    assert_eq!(server.value("s").await, "b");

    let born = server.put("t", json!({"value": "a", "attributes": {"enabled": false}})).await.expect(200);
    assert_eq!((&born["value"], &born["attributes"]["enabled"]), (&json!("a"), &json!(false)));
    server.get("/secrets/t").await.refused(403, "Forbidden/SecretDisabled", text);
}

/// A value can be read before its time and after it: Key Vault only informs of both.
#[tokio::test]
async fn validity_is_not_enforced() {
    let server = Server::plain().await;
    for attributes in [json!({"exp": 1}), json!({"nbf": 4_000_000_000_i64})] {
        server.put("s", json!({"value": "a", "attributes": attributes})).await.expect(200);
        assert_eq!(server.value("s").await, "a");
    }
}

#[tokio::test]
async fn names_do_not_differ_by_case() {
    let server = Server::plain().await;
    server.set("Pull-Secret", "a").await;
    let second = server.put("pull-secret", json!({"value": "b"})).await.expect(200);
    assert!(second["id"].as_str().unwrap().contains("/secrets/Pull-Secret/"), "as it was written first");
    assert_eq!(server.value("PULL-SECRET").await, "b");
    assert_eq!(names(&server.get("/secrets").await.expect(200)), ["Pull-Secret"]);
    server.delete("/secrets/PULL-secret").await.expect(200);
    server.get("/deletedsecrets/pull-secret").await.expect(200);
}

#[tokio::test]
async fn versions_are_seen_late() {
    let server = Server::start(Settings { version_lag: MINUTE, ..Settings::default() }).await;
    let first = server.set("s", "a").await;
    let version = format!("/secrets/s/{first}");
    server.get("/secrets/s").await.refused(404, "SecretNotFound", "s was not found");
    server.get(&version).await.refused(404, "SecretNotFound", "was not found");
    assert_eq!(server.get("/secrets").await.expect(200)["value"], json!([]));
    assert_eq!(server.get("/secrets/s/versions").await.expect(200)["value"], json!([]));
    server.patch(&version, json!({"tags": {"a": "b"}})).await.expect(200);

    server.vault.advance_clock(MINUTE);
    assert_eq!(server.value("s").await, "a");
    let second = server.set("s", "b").await;
    assert_eq!(server.value("s").await, "a");
    assert_eq!(names(&server.get("/secrets/s/versions").await.expect(200)), [first]);
    server.vault.advance_clock(MINUTE);
    assert_eq!(server.value(&format!("s/{second}")).await, "b");
}

/// Everything that a server prints of itself, and every error, is free of values and credentials.
#[tokio::test]
async fn no_credential_is_printed() {
    let server = Server::plain().await;
    let value = "Zq7wordThatMustNotShow";
    let secret = server.settings.identities[0].secret.clone().unwrap();
    let assertion = server.vault.assertion(testkit::key_vault::SUBJECT);
    server.set("s", value).await;
    let shown = [
        format!("{:?} {:?}", server.vault, server.settings),
        format!("{:?}", server.vault.calls()),
        format!("{:?}", server.patch("/secrets/s", json!({"value": value, "tags": 17})).await.body),
        format!("{:?}", server.put("s", json!({"value": [value]})).await.body),
        format!("{:?}", server.put("s", json!({"value": value.repeat(2000)})).await.body),
        format!("{:?}", server.call("PUT", "/secrets/s", Value::from(value)).await.body),
        format!("{:?}", server.get("/secrets").await.body),
        format!("{:?}", server.delete("/secrets/s").await.body),
        format!("{:?}", server.put("s", json!({"value": value})).await.body),
        format!("{:?}", server.get("/deletedsecrets/s").await.body),
        format!("{:?}", server.request_token(&server.form(&[("client_secret", &format!("{secret}x"))])).await.body),
        format!(
            "{:?}",
            server.request_token(&server.form(&[("client_assertion", &format!("{assertion}x"))])).await.body
        ),
    ];
    for text in shown {
        for credential in [value, secret.as_str(), server.token.as_str(), assertion.as_str()] {
            assert!(!text.contains(credential), "{text}");
        }
    }
}
