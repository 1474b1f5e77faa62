//! The rules, as tables.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::settings::{Command, parse};

const NOW: i64 = 1_700_000_000;

fn jwt(claims: &Value) -> String {
    format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn settings(further: &str) -> Settings {
    let line = format!("--registry quay.example.com:8443 {further}");
    let Ok(Command::Provide(settings)) = parse(line.split_whitespace().map(str::to_owned)) else { panic!("{line}") };
    settings
}

/// A request that is granted.
fn request() -> Value {
    json!({
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderRequest",
        "image": "quay.example.com:8443/team/app",
        "serviceAccountToken": jwt(&json!({"iss": "https://issuer.example.com", "sub": "system:serviceaccount:a:b"})),
        "serviceAccountAnnotations": {"hyperfleet.io/registry-robot": "team+puller"},
    })
}

fn decided(settings: &Settings, request: &Value) -> Result<Exchange, Refusal> {
    exchange(settings, Request::parse(request.to_string().as_bytes())?)
}

#[rstest]
#[case::annotation(json!({}), "", "team+puller")]
#[case::annotation_before_flag(json!({}), "--robot team+all", "team+puller")]
#[case::flag(json!({"serviceAccountAnnotations": null}), "--robot team+all", "team+all")]
#[case::other_annotations(json!({"serviceAccountAnnotations": {"a": "b"}}), "--robot team+all", "team+all")]
#[case::case_of_the_host(json!({"image": "Quay.Example.com:8443/a"}), "", "team+puller")]
#[case::later_members(json!({"podName": "p"}), "", "team+puller")]
fn the_robot_is_that_of_the_annotation_or_of_the_flag(#[case] change: Value, #[case] flags: &str, #[case] robot: &str) {
    let mut request = request();
    request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let exchange = decided(&settings(flags), &request).unwrap();
    assert_eq!(exchange.robot.as_str(), robot);
    assert_eq!(exchange.endpoint.to_string(), "https://quay.example.com:8443/oauth2/federation/robot/token");
    assert_eq!(exchange.token.expose_secret(), request["serviceAccountToken"].as_str().unwrap());
}

#[rstest]
#[case::version(json!({"apiVersion": "credentialprovider.kubelet.k8s.io/v1beta1"}), "is not a CredentialProviderRequest of")]
#[case::no_version(json!({"apiVersion": null}), "is not a CredentialProviderRequest of")]
#[case::kind(json!({"kind": "CredentialProviderResponse"}), "is not a CredentialProviderRequest of")]
#[case::other_host(json!({"image": "quay.io/team/app"}), "not one of quay.example.com:8443: no token was sent")]
#[case::other_port(json!({"image": "quay.example.com/team/app"}), "not one of")]
#[case::longer_host(json!({"image": "quay.example.com:8443.evil.example/team/app"}), "not one of")]
#[case::no_host(json!({"image": "quay.example.com:8443"}), "not one of")]
#[case::no_image(json!({"image": null}), "not one of")]
#[case::no_token(json!({"serviceAccountToken": null}), "sent no service-account token")]
#[case::empty_token(json!({"serviceAccountToken": ""}), "sent no service-account token")]
#[case::no_jwt(json!({"serviceAccountToken": "tok3nThatMustNotShow"}), "is not a JSON Web Token; it was not sent")]
#[case::token_with_newline(json!({"serviceAccountToken": "a.b.c\r\nX: y"}), "is not a JSON Web Token")]
#[case::no_annotation(json!({"serviceAccountAnnotations": {}}), "set its annotation hyperfleet.io/registry-robot")]
#[case::no_robot(json!({"serviceAccountAnnotations": {"hyperfleet.io/registry-robot": "a:b"}}), "must be ORGANIZATION+ROBOT")]
#[case::token_of_another_type(json!({"serviceAccountToken": ["tok3nThatMustNotShow"]}), "it is malformed at line 1, column")]
fn requests_are_refused(#[case] change: Value, #[case] expected: &str) {
    let mut request = request();
    request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let refusal = decided(&settings(""), &request).unwrap_err();
    let shown = format!("{refusal}{refusal:?}");
    assert!(shown.contains(expected), "{shown}");
    assert!(!shown.contains("tok3nThatMustNotShow"), "{shown}");
    assert_eq!(refusal.code(), 2);
}

#[test]
fn what_is_no_json_is_refused_by_its_position() {
    let refusal = Request::parse(b"{\"serviceAccountToken\": tok3nThatMustNotShow").unwrap_err();
    assert!(refusal.to_string().contains("it is malformed at line 1, column 26"), "{refusal}");
}

fn answered(status: u16, body: &str) -> Result<Value, Refusal> {
    let settings = settings("");
    let exchange = decided(&settings, &request()).unwrap();
    let answer = Answer { status, body: Zeroizing::new(body.as_bytes().to_vec()) };
    let response = response(&settings, &exchange, &answer, Timestamp::from_second(NOW).unwrap())?;
    Ok(serde_json::from_slice(&response).unwrap())
}

#[test]
fn the_response_is_the_kubelets() {
    let password = jwt(&json!({"iat": NOW, "exp": NOW + 3600}));
    assert_eq!(
        answered(200, &json!({"token": password}).to_string()).unwrap(),
        json!({
            "kind": "CredentialProviderResponse",
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            "cacheKeyType": "Registry",
            "cacheDuration": "3000s",
            "auth": {"quay.example.com:8443": {"username": "team+puller", "password": password}},
        })
    );
}

#[rstest]
#[case::an_hour(json!({"iat": NOW, "exp": NOW + 3600}), 3000)]
#[case::ten_minutes(json!({"iat": NOW, "exp": NOW + 600}), 500)]
#[case::a_day(json!({"iat": NOW, "exp": NOW + 86400}), 3000)]
#[case::the_node_is_slow(json!({"iat": NOW + 7200, "exp": NOW + 10800}), 3000)]
#[case::the_node_is_fast(json!({"iat": NOW - 1800, "exp": NOW + 1800}), 1500)]
#[case::the_node_is_very_fast(json!({"iat": NOW - 7200, "exp": NOW - 3600}), 0)]
#[case::without_begin(json!({"exp": NOW + 1200}), 1000)]
#[case::without_end(json!({"iat": NOW}), 0)]
#[case::ends_before_it_begins(json!({"iat": NOW + 5, "exp": NOW}), 0)]
#[case::absurd(json!({"iat": i64::MIN, "exp": i64::MAX}), 3000)]
fn a_password_is_kept_for_less_than_its_life(#[case] claims: Value, #[case] expected: i64) {
    assert_eq!(cache_seconds(&jwt(&claims), Timestamp::from_second(NOW).unwrap()), expected);
}

#[test]
fn a_password_that_is_no_token_is_not_kept() {
    let response = answered(200, r#"{"token":"opaque"}"#).unwrap();
    assert_eq!(
        (&response["cacheDuration"], &response["auth"]["quay.example.com:8443"]["password"]),
        (&json!("0s"), &json!("opaque"))
    );
}

#[rstest]
#[case(400, 4, "issuer 'https://issuer.example.com' and subject 'system:serviceaccount:a:b'")]
#[case(401, 4, "a password of team+puller (status 401)")]
#[case(403, 4, "refused to exchange")]
#[case(302, 4, "redirects are not followed")]
#[case(404, 4, "check --federation-url")]
#[case(418, 4, "check --federation-url")]
#[case(204, 4, "check --federation-url")]
#[case(429, 75, "tries again with the next pull")]
#[case(500, 75, "tries again with the next pull")]
#[case(503, 75, "tries again with the next pull")]
fn a_status_is_shown_without_the_body(#[case] status: u16, #[case] code: u8, #[case] expected: &str) {
    let refusal = answered(status, r#"{"token":"tok3nThatMustNotShow"}"#).unwrap_err();
    let shown = format!("{refusal}{refusal:?}");
    assert!(shown.contains(expected) && !shown.contains("tok3n"), "{shown}");
    assert_eq!(refusal.code(), code);
}

#[rstest]
#[case("tok3nThatMustNotShow", "it has no token")]
#[case(r#"{"token":null}"#, "it has no token")]
#[case(r#"{"token":["tok3nThatMustNotShow"]}"#, "it has no token")]
#[case(r#"{"message":"tok3nThatMustNotShow"}"#, "it has no token")]
#[case(r#"{"token":""}"#, "its token is empty")]
#[case(r#"{"token":"tok3nThatMustNotShow\n"}"#, "not of printable characters")]
fn an_answer_that_is_none_of_quays_is_refused(#[case] body: &str, #[case] expected: &str) {
    let refusal = answered(200, body).unwrap_err();
    let shown = format!("{refusal}{refusal:?}");
    assert!(shown.contains(expected) && !shown.contains("tok3n"), "{shown}");
    assert_eq!(refusal.code(), 75);
}
