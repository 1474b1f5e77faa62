//! Neither content nor tokens in what is shown, whatever a server repeats.

use rstest::rstest;
use secret_store::{Operation, StoreError};
use serde_json::json;

use super::fake_vault::{ASSERTION, FakeVault, TOKEN, refusal, versions};
use crate::rig::{CONTENT, OPERATIONS, attempt};
use testkit::fake::{Fake, Received, json as document, page};

#[track_caller]
fn shows_no_secret(error: &StoreError) {
    let shown = format!("{error} {error:?} {error:#?} {:?}", error.hint());
    for secret in [CONTENT, TOKEN, ASSERTION, "m4rker"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[rstest]
#[case(400, "BadParameter")]
#[case(401, "Unauthorized")]
#[case(403, "Forbidden")]
#[case(404, "SecretNotFound")]
#[case(409, "Conflict")]
#[case(429, "Throttled")]
#[case(500, "InternalServerError")]
#[case(400, "SomethingNew")]
#[tokio::test]
async fn what_echoes_the_request_is_not_repeated(#[case] status: u16, #[case] code: &'static str) {
    for is_page in [false, true] {
        let echoing = move |request: &Received| {
            let content = request.body["value"].as_str().unwrap_or_default();
            let echo = format!("Rejected {content} of {:?}", request.headers["authorization"]);
            let mut placeholder = versions();
            placeholder["value"].as_array_mut().unwrap().pop();
            match request.method.as_str() {
                "GET" => document(200, &placeholder),
                _ if is_page => page(status, &echo),
                _ => refusal(status, code, "", &echo),
            }
        };
        let vault = FakeVault::start(echoing).await;
        let error = attempt(&vault.store(), Operation::AddVersion).await.unwrap_err();
        assert_eq!(error.operation, Operation::AddVersion);
        shows_no_secret(&error);
        assert!(vault.received().iter().any(|request| request.body["value"] == CONTENT));
    }
}

#[tokio::test]
async fn what_echoes_a_token_is_not_repeated() {
    let echoing = |request: &Received| {
        refusal(403, "Forbidden", "ForbiddenByRbac", &format!("Caller with {:?}", request.headers["authorization"]))
    };
    let vault = FakeVault::start(echoing).await;
    for operation in OPERATIONS {
        if let Err(error) = attempt(&vault.store(), operation).await {
            shows_no_secret(&error);
        }
    }
    let store = vault.store();
    let shown = format!("{store:?} {store:#?} {:?}", vault.settings());
    assert!(shown.contains("127.0.0.1") && !shown.contains("m4rker"), "{shown}");
}

#[tokio::test]
async fn what_the_service_for_tokens_echoes_is_not_repeated() {
    let echoing = |request: &Received| {
        if request.target.ends_with("/oauth2/v2.0/token") {
            let description = format!("AADSTS50013: Assertion {ASSERTION} failed signature validation.");
            return document(401, &json!({"error": "invalid_client", "error_description": description}));
        }
        let mut answer = refusal(401, "Unauthorized", "", ASSERTION);
        answer.headers_mut().insert("www-authenticate", "Bearer resource=\"https://vault.azure.net\"".parse().unwrap());
        answer
    };
    let vault = FakeVault::before(Fake::start(echoing).await).await;
    let error = attempt(&vault.store(), Operation::Find).await.unwrap_err();
    shows_no_secret(&error);
    assert!(error.to_string().contains("AADSTS50013"), "{error}");
}
