//! Shapes on the REST wire: names, numbers, enums, errors, paths.

use emulators::secret_manager::{Method, Settings};
use rstest::rstest;
use serde_json::json;

use super::client::{PARENT, SecretManagerReply as _, Server, payload};

#[tokio::test]
async fn a_secret_lives() {
    let server = Server::plain().await;
    let created =
        server.create("s", json!({"labels": {"managed-by": "hyperfleet"}, "annotations": {}})).await.expect(200);
    let name = created["name"].as_str().unwrap();
    let number = name.strip_prefix("projects/").unwrap().strip_suffix("/secrets/s").unwrap();
    assert!(number.len() == 12 && number.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
    assert_eq!(created["replication"], json!({"automatic": {}}));
    assert!(created.get("annotations").is_none() && created["createTime"].as_str().unwrap().ends_with('Z'));

    let added = server.add("hello").await.expect(200);
    assert_eq!(added["name"], format!("{name}/versions/1"));
    assert_eq!(added["state"], "ENABLED");
    assert_eq!(added["replicationStatus"], json!({"automatic": {}}));
    assert_eq!(added["clientSpecifiedPayloadChecksum"], true);

    let accessed = server.access("latest").await.expect(200);
    assert_eq!(accessed["name"], format!("{name}/versions/1"));
    assert_eq!(accessed["payload"], json!({"data": "aGVsbG8=", "dataCrc32c": "2591144780"}));
    let by_number = server.get(&format!("/v1/{name}/versions/1:access")).await;
    assert_eq!(by_number.content(), "hello");

    assert_eq!(server.change("1", "disable").await.expect(200)["state"], "DISABLED");
    server.access("1").await.refused(400, "FAILED_PRECONDITION", "is in DISABLED state.");
    assert_eq!(server.change("1", "enable").await.expect(200)["state"], "ENABLED");
    let destroyed = server.change("1", "destroy").await.expect(200);
    assert!(destroyed["state"] == "DESTROYED" && destroyed["destroyTime"].is_string());
    server.access("latest").await.refused(400, "FAILED_PRECONDITION", "is in DESTROYED state.");
    server.change("1", "enable").await.refused(400, "FAILED_PRECONDITION", "is in DESTROYED state.");

    assert_eq!(server.call("DELETE", &format!("{PARENT}/secrets/s"), json!({})).await.expect(200), json!({}));
    let gone = server.get(&format!("{PARENT}/secrets/s")).await;
    assert_eq!(gone.refused(404, "NOT_FOUND", "Secret"), format!("Secret [{name}] not found."));
}

#[rstest]
#[case("", "ENABLED".into())]
#[case("?$alt=json;enum-encoding=int", 1.into())]
#[case("?%24alt=json%3Benum-encoding%3Dint", 1.into())]
#[case("?alt=json&prettyPrint=true", "ENABLED".into())]
#[tokio::test]
async fn enums_are_numbers_on_demand(#[case] query: &str, #[case] state: serde_json::Value) {
    let server = Server::with_secret(Settings::default()).await;
    server.add("hello").await.expect(200);
    let version = server.get(&format!("{PARENT}/secrets/s/versions/1{query}")).await.expect(200);
    assert_eq!(version["state"], state);
    let versions = server.get(&format!("{PARENT}/secrets/s/versions{query}")).await.expect(200);
    assert_eq!(versions["versions"][0]["state"], state);
}

#[rstest]
#[case(r#"{"payload": {"data": "_-8", "data_crc32c": 3245998110}}"#, &[0xff, 0xef])]
#[case(r#"{"payload": {"data": "/+8="}, "parent": null}"#, &[0xff, 0xef])]
#[case(r#"{"parent": "projects/other/secrets/other", "payload": {"data": "aGVsbG8"}}"#, b"hello")]
#[tokio::test]
async fn takes_all_spellings(#[case] body: &str, #[case] data: &[u8]) {
    let server = Server::with_secret(Settings::default()).await;
    let body = body.replace("3245998110", &crc32c::crc32c(data).to_string());
    let path = format!("{PARENT}/secrets/s:addVersion");
    server.raw("POST", &path, &body, "").await.unwrap().expect(200);
    let accessed = server.access("1").await.expect(200);
    assert_eq!(accessed["payload"]["dataCrc32c"], crc32c::crc32c(data).to_string());
}

#[rstest]
#[case("{\"payload\": {\"date\": \"c2VjcmV0\"}}", "Unknown name \"date\" at 'payload': Cannot find field.")]
#[case("{\"pay\": {}}", "Unknown name \"pay\": Cannot find field.")]
#[case("{\"payload\": {\"data\": \"c2VjcmV0!\"}}", "Invalid value (TYPE_BYTES)")]
#[case("{\"payload\": \"c2VjcmV0\"}", "Invalid value")]
#[case("{\"payload\": {\"data\": \"c2VjcmV0\", \"dataCrc32c\": \"c2VjcmV0\"}}", "Invalid value (TYPE_INT64)")]
#[case("[\"c2VjcmV0\"]", "Unexpected root value")]
#[case("{\"payload\": c2VjcmV0}", "Parsing stopped at line 1")]
#[tokio::test]
async fn refuses_bodies_without_quoting_them(#[case] body: &str, #[case] text: &str) {
    let server = Server::with_secret(Settings::default()).await;
    let reply = server.raw("POST", &format!("{PARENT}/secrets/s:addVersion"), body, "").await.unwrap();
    assert!(!reply.body.to_string().contains("c2VjcmV0"));
    assert_eq!(reply.body["error"]["details"][0]["@type"], "type.googleapis.com/google.rpc.BadRequest");
    reply.refused(400, "INVALID_ARGUMENT", text);
    assert!(!format!("{:?} {:?}", server.manager, server.manager.calls()).contains("c2VjcmV0"));
}

#[tokio::test]
async fn never_shows_a_payload() {
    let server = Server::with_secret(Settings::default()).await;
    server.add("hello").await.expect(200);
    let shown = format!("{:?} {:?}", server.manager, server.manager.calls());
    assert!(!shown.contains("hello") && !shown.contains("[104, 101") && !shown.contains("aGVsbG8"), "{shown}");
}

#[rstest]
#[case("GET", "/v1/projects/p/secrets/s?colour=red", 400, "INVALID_ARGUMENT", "Cannot bind query parameter")]
#[case("GET", "/v1/projects/p/secrets/s?alt=media", 400, "INVALID_ARGUMENT", "Only alt=json")]
#[case("GET", "/v1/projects/p/secrets?pageSize=many", 400, "INVALID_ARGUMENT", "page_size")]
#[case("GET", "/v1/projects/p/secrets?pageSize=-1", 400, "INVALID_ARGUMENT", "page size")]
#[case("GET", "/v1/projects/p/secrets?pageToken=x", 400, "INVALID_ARGUMENT", "page token")]
#[case("GET", "/v1/projects/p/secrets?filter=colour=red", 400, "INVALID_ARGUMENT", "there is no field 'colour'")]
#[case("GET", "/v1/projects/p/secrets/a.b", 400, "INVALID_ARGUMENT", "does not match the expected format")]
#[case("GET", "/v1/projects/p/secrets/s/versions/0", 400, "INVALID_ARGUMENT", "does not match the expected format")]
#[case("GET", "/v1/projects/p/secrets/s/versions/1:access", 404, "NOT_FOUND", "not found or has no versions")]
#[case("GET", "/v1/projects/p/nothing", 404, "NOT_FOUND", "Method not found")]
#[case("PUT", "/v1/projects/p/secrets/s", 404, "NOT_FOUND", "Method not found")]
#[case("GET", "/", 404, "NOT_FOUND", "Method not found")]
#[case("GET", "/v1/projects/p/secrets/s:getIamPolicy", 501, "UNIMPLEMENTED", "getIamPolicy is not implemented")]
#[case("POST", "/v1/projects/p/secrets/s:setIamPolicy", 501, "UNIMPLEMENTED", "setIamPolicy is not implemented")]
#[tokio::test]
async fn refuses_in_json(
    #[case] method: &str,
    #[case] path: &str,
    #[case] status: u16,
    #[case] name: &str,
    #[case] text: &str,
) {
    let server = Server::plain().await;
    let reply = server.raw(method, path, "", "").await.unwrap();
    assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
    reply.refused(status, name, text);
}

#[tokio::test]
async fn regional_secrets_are_another_place() {
    let server = Server::with_secret(Settings::default()).await;
    let parent = format!("{PARENT}/locations/europe-west1/secrets");
    let path = format!("{parent}?secretId=s");
    server.call("POST", &path, json!({"replication": {"automatic": {}}})).await.refused(
        400,
        "INVALID_ARGUMENT",
        "regional",
    );
    let created = server.call("POST", &path, json!({})).await.expect(200);
    assert!(created["name"].as_str().unwrap().ends_with("/locations/europe-west1/secrets/s"));
    let added = server.call("POST", &format!("{parent}/s:addVersion"), payload("there")).await.expect(200);
    assert!(added.get("replicationStatus").is_none());
    assert_eq!(server.get(&format!("{parent}/s/versions/latest:access")).await.content(), "there");
    server.access("1").await.refused(404, "NOT_FOUND", "versions/1] not found.");
}

#[tokio::test]
async fn remembers_calls() {
    let server = Server::with_secret(Settings::default()).await;
    server.access("7").await.refused(404, "NOT_FOUND", "versions/7] not found.");
    server.manager.wait_for_calls(2).await;
    let calls = server.manager.calls();
    assert_eq!(calls[0].resource, "projects/fleet-dev");
    assert_eq!(
        (calls[1].method, calls[1].resource.as_str()),
        (Method::AccessVersion, "projects/fleet-dev/secrets/s/versions/7")
    );
    assert_eq!(server.outcomes(Method::AccessVersion), [Some("NOT_FOUND")]);
}
