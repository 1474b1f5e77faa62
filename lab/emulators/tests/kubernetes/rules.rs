//! Refusals, in a real server's wording.

use rstest::rstest;
use serde_json::{Value, json};

use super::client::{CONFIG_MAPS, JOBS, PODS, Refused as _, SECRETS, Server, config_map, job, pod, secret};

#[rstest]
#[case::upper("S", "metadata.name: Invalid value: \"S\": a lowercase RFC 1123 subdomain must consist of lower case")]
#[case::ending("s-", "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]")]
#[case::nothing("", "Secret \"\" is invalid: metadata.name: Required value: name or generateName is required")]
#[tokio::test]
async fn names(#[case] name: &str, #[case] text: &str) {
    let server = Server::plain().await;
    server.post(SECRETS, &secret(name)).await.refused(422, "Invalid", text);
}

#[rstest]
#[case::value(json!({"a": "1 2"}), "metadata.labels: Invalid value: \"1 2\": a valid label must be an empty string or")]
#[case::key(json!({"a b": "1"}), "metadata.labels: Invalid value: \"a b\": name part must consist of")]
#[case::prefix(json!({"A/b": "1"}), "prefix part a lowercase RFC 1123 subdomain")]
#[tokio::test]
async fn label_keys_and_values(#[case] labels: Value, #[case] text: &str) {
    let server = Server::plain().await;
    let mut object = secret("s");
    object["metadata"]["labels"] = labels;
    server.post(SECRETS, &object).await.refused(422, "Invalid", text);
}

#[rstest]
#[case::no_json(
    json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "dG9wc2VjcmV0"}}),
    422,
    "Secret \"s\" is invalid: data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character"
)]
#[case::no_entry(
    json!({"type": "kubernetes.io/dockerconfigjson", "data": {"other": ""}}),
    422,
    "data[.dockerconfigjson]: Required value"
)]
#[case::key(json!({"data": {"a/b": ""}}), 422, "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of")]
#[case::base64(json!({"data": {"a": "topsecret!"}}), 400, "illegal base64 data at input byte 9")]
#[case::number(json!({"data": {"a": 1}}), 400, "cannot unmarshal into Go struct field data.a of type string")]
#[case::kind(json!({"kind": "ConfigMap"}), 400, "ConfigMap in version \"v1\" cannot be handled as a Secret")]
#[case::version(json!({"apiVersion": "v2"}), 400, "no kind \"Secret\" is registered for version \"v2\"")]
#[tokio::test]
async fn secrets(#[case] members: Value, #[case] code: u16, #[case] text: &str) {
    let server = Server::plain().await;
    let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let reason = if code == 422 { "Invalid" } else { "BadRequest" };
    let status = server.post(SECRETS, &object).await.refused(code, reason, text);
    assert!(!status.to_string().contains("topsecret"), "{status}");
}

#[tokio::test]
async fn a_secret_is_not_too_large() {
    let server = Server::plain().await;
    let mut object = secret("s");
    object["stringData"] = json!({"a": "x".repeat(1024 * 1024 + 1)});
    server.post(SECRETS, &object).await.refused(422, "Invalid", "data: Too long: may not be more than 1048576 bytes");
    object["stringData"] = json!({"a": "x".repeat(4 * 1024 * 1024)});
    server.post(SECRETS, &object).await.refused(413, "RequestEntityTooLarge", "limit is 3145728");
}

#[tokio::test]
async fn some_fields_never_change() {
    let server = Server::plain().await;
    server.post(SECRETS, &secret("s")).await.expect(201);
    let path = format!("{SECRETS}/s");
    let status = server.merge(&path, &json!({"type": "x"})).await.refused(
        422,
        "Invalid",
        "Secret \"s\" is invalid: type: Invalid value: \"x\": field is immutable",
    );
    let cause =
        json!({"reason": "FieldValueInvalid", "message": "Invalid value: \"x\": field is immutable", "field": "type"});
    assert_eq!(status["details"], json!({"name": "s", "kind": "Secret", "causes": [cause]}));
    server.merge(&path, &json!({"immutable": true})).await.expect(200);
    let text = "data: Forbidden: field is immutable when `immutable` is set";
    server.merge(&path, &json!({"stringData": {"key": "new"}})).await.refused(422, "Invalid", text);
    server.merge(&path, &json!({"immutable": false})).await.refused(422, "Invalid", "immutable: Forbidden");
    server.merge(&path, &json!({"metadata": {"labels": {"a": "1"}}})).await.expect(200);
    server.post(JOBS, &job("j")).await.expect(201);
    let patch = json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}});
    server.merge(&format!("{JOBS}/j"), &patch).await.refused(422, "Invalid", "spec.template.spec: Invalid value");
    server.post(PODS, &pod("p")).await.expect(201);
    let patch = json!({"spec": {"containers": [{"name": "main", "image": "registry/pod:2", "command": ["x"]}]}});
    server.merge(&format!("{PODS}/p"), &patch).await.refused(
        422,
        "Invalid",
        "pod updates may not change fields other than",
    );
    let patch = json!({"spec": {"nodeName": "n"}});
    server.merge(&format!("{PODS}/p"), &patch).await.expect(200);
}

#[rstest]
#[case::policy("/spec/template/spec/restartPolicy", json!("Always"), "spec.template.spec.restartPolicy: Required value: valid values")]
#[case::containers("/spec/template/spec/containers", json!([]), "spec.template.spec.containers: Required value")]
#[case::image("/spec/template/spec/containers/0/image", json!(""), "spec.template.spec.containers[0].image: Required value")]
#[case::name("/spec/template/spec/containers/0/name", json!("A"), "containers[0].name: Invalid value: \"A\"")]
#[tokio::test]
async fn jobs(#[case] pointer: &str, #[case] value: Value, #[case] text: &str) {
    let server = Server::plain().await;
    let mut object = job("j");
    *object.pointer_mut(pointer).unwrap() = value;
    server.post(JOBS, &object).await.refused(422, "Invalid", text);
}

#[tokio::test]
async fn pods_need_their_service_account() {
    let server = Server::plain().await;
    let mut object = pod("p");
    object["spec"]["serviceAccountName"] = json!("absent");
    let text =
        "pods \"p\" is forbidden: error looking up service account default/absent: serviceaccount \"absent\" not found";
    server.post(PODS, &object).await.refused(403, "Forbidden", text);
}

#[tokio::test]
async fn bodies_must_be_readable() {
    let server = Server::plain().await;
    let refuse = |body: &'static str, kind: &'static str| {
        let server = &server;
        async move { server.raw("POST", SECRETS, body, &format!("content-type: {kind}\r\n")).await.unwrap() }
    };
    refuse("{\"data\": {\"a\": topsecret", "application/json").await.refused(
        400,
        "BadRequest",
        "json parse error: line 1",
    );
    refuse("x", "application/vnd.kubernetes.protobuf").await.refused(400, "BadRequest", "protobuf message");
    refuse("k8s\0", "application/vnd.kubernetes.protobuf").await.refused(
        415,
        "UnsupportedMediaType",
        "application/json",
    );
    refuse("{}", "application/xml").await.refused(415, "UnsupportedMediaType", "application/json");
    let yaml = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: yaml\nstringData: {a: b}\n";
    assert_eq!(refuse(yaml, "application/yaml").await.expect(201)["data"]["a"], "Yg==");
    let protobuf_only = "accept: application/vnd.kubernetes.protobuf\r\n";
    let reply = server.raw("GET", SECRETS, "", protobuf_only).await.unwrap();
    reply.refused(406, "NotAcceptable", "Available representations: application/json");
}

#[tokio::test]
async fn several_causes_are_listed_at_once() {
    let server = Server::plain().await;
    let mut object = config_map("X", &json!({"a b": "1"}));
    object["metadata"]["labels"] = json!({"l": "-"});
    let status =
        server.post(CONFIG_MAPS, &object).await.refused(422, "Invalid", "ConfigMap \"X\" is invalid: [metadata.name: ");
    assert_eq!(status["details"]["causes"].as_array().unwrap().len(), 3);
}
