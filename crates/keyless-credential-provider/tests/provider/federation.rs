//! The exchange at the Quay emulator, which is held to the answers of Quay's own code.

use emulators::quay::{Operation, Settings};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::quay::{Server, part_of_token};

use crate::rig::{REGISTRY, ROBOT, at, provide, request};

const ISSUER: &str = "https://issuer.example.com";
const SUBJECT: &str = "system:serviceaccount:pulls:puller";

/// Quay with the robot `puller`, which takes the tokens of one service account and may pull `release`.
pub(crate) async fn quay(settings: Settings, issuer: &str, subject: &str) -> Server {
    let server = Server::start(settings).await;
    server.robot("puller").await;
    server.permit("puller", "release", "read").await;
    bind(&server, "puller", &[(issuer, subject)]).await;
    server
}

/// Lets a robot take the tokens of these service accounts.
pub(crate) async fn bind(server: &Server, robot: &str, accounts: &[(&str, &str)]) {
    let bindings: Vec<_> =
        accounts.iter().map(|(issuer, subject)| json!({"issuer": issuer, "subject": subject})).collect();
    server.call("POST", &format!("robots/{robot}/federation"), json!(bindings)).await.expect(200);
}

async fn plain() -> Server {
    quay(Settings::default(), ISSUER, SUBJECT).await
}

#[tokio::test]
async fn a_token_becomes_a_password_that_pulls() {
    let server = plain().await;
    let token = server.quay.subject_token(ISSUER, SUBJECT, REGISTRY);
    let response = provide(&at(server.quay.address()), &request(&token)).await.response();
    let password = response["auth"][REGISTRY]["password"].as_str().unwrap();
    let expected = json!({
        "kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "cacheKeyType": "Registry", "cacheDuration": "3000s",
        "auth": {REGISTRY: {"username": ROBOT, "password": password}},
    });
    // Seconds may have passed since the registry made the password.
    let mut response = response.clone();
    let kept: i64 = response["cacheDuration"].as_str().unwrap().trim_end_matches('s').parse().unwrap();
    assert!((2900..=3000).contains(&kept), "{kept}");
    response["cacheDuration"] = "3000s".into();
    assert_eq!(response, expected);
    let bearer = server.request_token("puller", password, "release").await.expect(200);
    let claims = part_of_token(bearer["token"].as_str().unwrap(), 1).unwrap();
    assert_eq!(claims["access"][0]["actions"], json!(["pull"]));
}

#[rstest]
#[case::subject(ISSUER, "system:serviceaccount:pulls:other", ROBOT, "subject 'system:serviceaccount:pulls:other'")]
#[case::issuer("https://other.example.com", SUBJECT, ROBOT, "issuer 'https://other.example.com'")]
#[case::robot(ISSUER, SUBJECT, "hyperfleet+none", "a password of hyperfleet+none (status 400)")]
#[tokio::test]
async fn a_token_that_is_not_bound_is_refused(
    #[case] issuer: &str,
    #[case] subject: &str,
    #[case] robot: &str,
    #[case] expected: &str,
) {
    let server = plain().await;
    let mut request = request(&server.quay.subject_token(issuer, subject, REGISTRY));
    request["serviceAccountAnnotations"]["hyperfleet.io/registry-robot"] = robot.into();
    provide(&at(server.quay.address()), &request).await.refused(4, expected);
    assert_eq!(server.outcomes(Operation::ExchangeToken), [Some(400)]);
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    let server = plain().await;
    let token = server.quay.subject_token(ISSUER, SUBJECT, REGISTRY);
    server.quay.advance_clock(std::time::Duration::from_hours(2));
    provide(&at(server.quay.address()), &request(&token)).await.refused(4, "(status 400)");
}

#[rstest]
#[case::no_token(json!({"serviceAccountToken": ""}), "sent no service-account token")]
#[case::no_jwt(json!({"serviceAccountToken": "tok3nThatMustNotShow"}), "is not a JSON Web Token")]
#[case::other_image(json!({"image": "quay.io/hyperfleet/release"}), "is not one of quay.example.com")]
#[case::no_annotation(json!({"serviceAccountAnnotations": {}}), "no robot for this service account")]
#[case::version(json!({"apiVersion": "credentialprovider.kubelet.k8s.io/v1alpha1"}), "set `apiVersion: ")]
#[tokio::test]
async fn a_request_that_is_not_for_this_provider_sends_nothing(#[case] change: Value, #[case] expected: &str) {
    let server = plain().await;
    let before = server.quay.calls().len();
    let mut request = request(&server.quay.subject_token(ISSUER, SUBJECT, REGISTRY));
    request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    provide(&at(server.quay.address()), &request).await.refused(2, expected);
    assert_eq!(server.quay.calls().len(), before);
}

#[tokio::test]
async fn the_robot_of_the_flag_is_for_those_without_the_annotation() {
    let server = plain().await;
    server.robot("nodes").await;
    bind(&server, "nodes", &[(ISSUER, SUBJECT)]).await;
    let flags = [at(server.quay.address()), vec!["--robot".to_owned(), "hyperfleet+nodes".to_owned()]].concat();
    let mut request = request(&server.quay.subject_token(ISSUER, SUBJECT, REGISTRY));
    let response = provide(&flags, &request).await.response();
    assert_eq!(response["auth"][REGISTRY]["username"], ROBOT);
    request.as_object_mut().unwrap().remove("serviceAccountAnnotations");
    let response = provide(&flags, &request).await.response();
    assert_eq!(response["auth"][REGISTRY]["username"], "hyperfleet+nodes");
}
