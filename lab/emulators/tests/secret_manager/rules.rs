//! Rules of the service: validation, etags, checksums, aliases, pages, filters, permissions.

use emulators::secret_manager::Settings;
use rstest::rstest;
use serde_json::{Value, json};

use super::client::{PARENT, SecretManagerReply as _, Server, payload};

#[rstest]
#[case("a.b", json!({}), "Secret ID [a.b] must be")]
#[case("", json!({}), "Secret ID [] must be")]
#[case("s", json!({"replication": null}), "replication policy must be set")]
#[case("s", json!({"replication": {"automatic": {}, "userManaged": {}}}), "replication policy must be set")]
#[case("s", json!({"replication": {"user_managed": {}}}), "at least one replica")]
#[case("s", json!({"replication": {"userManaged": {"replicas": [{"location": "a"}, {"location": "a"}]}}}), "only once")]
#[case("s", json!({"replication": {"automatic": {"customerManagedEncryption": {"kmsKeyName": "key"}}}}), "KMS key [key]")]
#[case("s", json!({"labels": {"Team": "x"}}), "Label key [Team]")]
#[case("s", json!({"labels": {"team": "v1.2"}}), "value of label [team]")]
#[case("s", json!({"annotations": {"a/b": "x"}}), "Annotation key [a/b]")]
#[case("s", json!({"annotations": {"a": "x".repeat(16 * 1024)}}), "16 KiB")]
#[case("s", json!({"versionAliases": {"blue": "1"}}), "does not exist")]
#[case("s", json!({"expireTime": "2020-01-01T00:00:00Z"}), "in the future")]
#[case("s", json!({"expireTime": "2120-01-01T00:00:00Z", "ttl": "60s"}), "Only one of")]
#[case("s", json!({"ttl": "-60s"}), "must be positive")]
#[case("s", json!({"ttl": "an hour"}), "Invalid value (type.googleapis.com/google.protobuf.Duration)")]
#[case("s", json!({"versionDestroyTtl": "3600s"}), "between 1 and 1000 days")]
#[case("s", json!({"topics": [{"name": "t"}]}), "Topic [t]")]
#[case("s", json!({"rotation": {"nextRotationTime": "2120-01-01T00:00:00Z"}}), "at least one topic")]
#[case("s", json!({"replication": {"automatic": {"key": 1}}}), "Unknown name \"key\" at 'secret.replication.automatic'")]
#[tokio::test]
async fn refuses_secrets(#[case] id: &str, #[case] extra: Value, #[case] text: &str) {
    Server::plain().await.create(id, extra).await.refused(400, "INVALID_ARGUMENT", text);
}

#[tokio::test]
async fn keeps_what_it_was_given() {
    let server = Server::plain().await;
    let key = |location: &str| format!("projects/k/locations/{location}/keyRings/r/cryptoKeys/c");
    let replicas = json!([{"location": "a", "customerManagedEncryption": {"kmsKeyName": key("a")}}]);
    let given = json!({
        "replication": {"userManaged": {"replicas": replicas}},
        "labels": {"team": "", "élan": "été_1"},
        "topics": [{"name": "projects/p/topics/t"}],
        "rotation": {"nextRotationTime": "2120-01-01T00:00:00Z", "rotationPeriod": "86400s"},
        "versionDestroyTtl": "172800s",
        "expireTime": "2120-01-01T00:00:00.5Z",
        "tags": {"1/env": "dev"},
    });
    let created = server.create("s", given.clone()).await.expect(200);
    for member in ["replication", "labels", "topics", "rotation", "versionDestroyTtl"] {
        assert_eq!(created[member], given[member]);
    }
    assert_eq!(created["expireTime"], "2120-01-01T00:00:00.500Z");
    assert!(created.get("tags").is_none() && created.get("ttl").is_none());
    server.create("s", json!({})).await.refused(409, "ALREADY_EXISTS", "/secrets/s] already exists.");
    let status = &server.add("x").await.expect(200)["replicationStatus"]["userManaged"]["replicas"][0];
    assert_eq!(status["customerManagedEncryption"]["kmsKeyVersionName"], key("a") + "/cryptoKeyVersions/1");
}

#[rstest]
#[case(json!({}), "cannot be empty")]
#[case(json!({"payload": {"data": ""}}), "cannot be empty")]
#[case(json!({"payload": {"data": "A".repeat(87_384)}}), "65538 bytes is larger than the limit of 65536")]
#[case(json!({"payload": {"data": "aGVsbG8=", "dataCrc32c": "1"}}), "checksum")]
#[tokio::test]
async fn refuses_payloads(#[case] body: Value, #[case] text: &str) {
    let server = Server::with_secret(Settings::default()).await;
    server.call("POST", &format!("{PARENT}/secrets/s:addVersion"), body).await.refused(400, "INVALID_ARGUMENT", text);
    server.access("1").await.refused(404, "NOT_FOUND", "not found");
}

#[tokio::test]
async fn etags_guard_every_change() {
    let server = Server::with_secret(Settings::default()).await;
    let first = server.get(&format!("{PARENT}/secrets/s")).await.expect(200)["etag"].clone();
    server.add("x").await.expect(200);
    let second = server.patch("labels", json!({"etag": first})).await.expect(200)["etag"].clone();
    assert_ne!(first, second, "a version does not change the secret's etag, an update that changes nothing does");
    server.patch("labels", json!({"etag": first})).await.refused(400, "FAILED_PRECONDITION", "etag");

    let version = format!("{PARENT}/secrets/s/versions/1");
    let etag = server.get(&version).await.expect(200)["etag"].clone();
    server.call("POST", &format!("{version}:disable"), json!({"etag": etag})).await.expect(200);
    for verb in ["enable", "disable", "destroy"] {
        let stale = server.call("POST", &format!("{version}:{verb}"), json!({"etag": etag})).await;
        stale.refused(400, "FAILED_PRECONDITION", "etag");
    }
    let path = |etag: &Value| format!("{PARENT}/secrets/s?etag={}", etag.as_str().unwrap().replace('"', "%22"));
    server.call("DELETE", &path(&first), json!({})).await.refused(400, "FAILED_PRECONDITION", "etag");
    server.call("DELETE", &path(&second), json!({})).await.expect(200);
}

#[tokio::test]
async fn updates_what_the_mask_names() {
    let server = Server::with_secret(Settings::default()).await;
    server.add("x").await.expect(200);
    let given = json!({"labels": {"a": "b"}, "annotations": {"A.b": "C"}, "versionAliases": {"blue": 1}});
    let updated = server.patch("annotations,version_aliases", given.clone()).await.expect(200);
    assert_eq!((&updated["annotations"], &updated["versionAliases"]), (&given["annotations"], &json!({"blue": "1"})));
    assert!(updated.get("labels").is_none());
    assert_eq!(server.access("blue").await.content(), "x");
    server.access("green").await.refused(404, "NOT_FOUND", "versions/green] not found.");
    server.change("blue", "disable").await.refused(400, "INVALID_ARGUMENT", "by its number");
    server.patch("", given.clone()).await.refused(400, "INVALID_ARGUMENT", "update mask");
    server.patch("name", given.clone()).await.refused(400, "INVALID_ARGUMENT", "cannot be changed");
    server.patch("colour", given.clone()).await.refused(400, "INVALID_ARGUMENT", "no field [colour]");
    server.patch("replication", given).await.refused(400, "INVALID_ARGUMENT", "cannot be changed");
    let cleared = server.patch("versionAliases", json!({})).await.expect(200);
    assert!(cleared.get("versionAliases").is_none() && cleared["annotations"] == json!({"A.b": "C"}));
}

#[tokio::test]
async fn pages_and_filters_secrets() {
    let server = Server::plain().await;
    for number in 1..=5 {
        let owner = if number % 2 == 1 { "hyperfleet" } else { "other" };
        server.create(&format!("s{number}"), json!({"labels": {"managed-by": owner}})).await.expect(200);
    }
    server
        .call("POST", "/v1/projects/else/secrets?secretId=s6", json!({"replication": {"automatic": {}}}))
        .await
        .expect(200);
    let ids = |page: &Value| -> Vec<String> {
        let secrets = page["secrets"].as_array().cloned().unwrap_or_default();
        secrets.iter().map(|secret| secret["name"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    };
    let path = format!("{PARENT}/secrets");
    let first = server.get(&format!("{path}?pageSize=2")).await.expect(200);
    assert_eq!((ids(&first), &first["totalSize"]), (vec!["s1".to_owned(), "s2".to_owned()], &json!(5)));
    let token = first["nextPageToken"].as_str().unwrap();
    let second = server.get(&format!("{path}?page_size=3&page_token={token}")).await.expect(200);
    assert_eq!(ids(&second), ["s3", "s4", "s5"]);
    assert!(second.get("nextPageToken").is_none());
    let other = server.get(&format!("{path}?pageToken={token}&filter=name:s")).await;
    other.refused(400, "INVALID_ARGUMENT", "page token");

    let filtered = server.get(&format!("{path}?filter=labels.managed-by%3Dhyperfleet")).await.expect(200);
    assert_eq!(ids(&filtered), ["s1", "s3", "s5"]);
    assert!(filtered.get("totalSize").is_none());
    assert_eq!(ids(&server.get(&format!("{path}?filter=name:s4+OR+name:s5")).await.expect(200)), ["s4", "s5"]);
    assert_eq!(server.get("/v1/projects/none/secrets").await.expect(200), json!({}));
}

#[tokio::test]
async fn lists_versions_newest_first() {
    let server = Server::with_secret(Settings::default()).await;
    for data in ["a", "b", "c"] {
        server.add(data).await.expect(200);
    }
    server.change("2", "disable").await.expect(200);
    let numbers = |page: &Value| -> Vec<char> {
        page["versions"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|version| version["name"].as_str()?.chars().last())
            .collect()
    };
    let path = format!("{PARENT}/secrets/s/versions");
    let first = server.get(&format!("{path}?pageSize=2")).await.expect(200);
    assert_eq!((numbers(&first), &first["totalSize"]), (vec!['3', '2'], &json!(3)));
    let rest = server.get(&format!("{path}?pageToken={}", first["nextPageToken"].as_str().unwrap())).await.expect(200);
    assert_eq!(numbers(&rest), ['1']);
    assert_eq!(numbers(&server.get(&format!("{path}?filter=state:ENABLED")).await.expect(200)), ['3', '1']);
    assert_eq!(numbers(&server.get(&format!("{path}?filter=state%3DDISABLED")).await.expect(200)), ['2']);
    server.get(&format!("{PARENT}/secrets/none/versions")).await.refused(404, "NOT_FOUND", "/secrets/none] not found.");
}

#[tokio::test]
async fn denies_permissions() {
    let denied = ["secretmanager.versions.access".to_owned()].into();
    let server = Server::with_secret(Settings { denied_permissions: denied, ..Settings::default() }).await;
    let reply = server.access("1").await;
    let detail = &reply.body["error"]["details"][0];
    assert_eq!((&detail["reason"], &detail["domain"]), (&json!("IAM_PERMISSION_DENIED"), &json!("iam.googleapis.com")));
    assert_eq!(detail["metadata"]["permission"], "secretmanager.versions.access");
    let text = "Permission 'secretmanager.versions.access' denied for resource 'projects/fleet-dev/secrets/s/versions/1' (or it may not exist).";
    assert_eq!(reply.refused(403, "PERMISSION_DENIED", ""), text);

    let asked = json!({"permissions": ["secretmanager.versions.access", "secretmanager.versions.add"]});
    let test = |id: &str| format!("{PARENT}/secrets/{id}:testIamPermissions");
    let granted = server.call("POST", &test("s"), asked.clone()).await.expect(200);
    assert_eq!(granted, json!({"permissions": ["secretmanager.versions.add"]}));
    assert_eq!(server.call("POST", &test("none"), asked).await.expect(200), json!({}));
}

#[tokio::test]
async fn project_ids_and_numbers_are_the_same() {
    let server = Server::with_secret(Settings::default()).await;
    let name = server.get(&format!("{PARENT}/secrets/s")).await.expect(200)["name"].as_str().unwrap().to_owned();
    server.call("POST", &format!("/v1/{name}:addVersion"), payload("x")).await.expect(200);
    assert_eq!(server.access("1").await.content(), "x");
}
