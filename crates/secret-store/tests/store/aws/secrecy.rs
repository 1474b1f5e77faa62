//! Neither content nor credentials in what is shown, whatever a server repeats.

use rstest::rstest;
use secret_store::{Operation, StoreError};

use super::between::refusal_text;
use super::moto::SECRET_KEY;
use super::requests::{described, operation_of, store_at};
use crate::rig::{CONTENT, OPERATIONS, attempt};
use testkit::fake::{Fake, Received, json as document, page};

#[track_caller]
fn shows_no_secret(error: &StoreError) {
    let shown = format!("{error} {error:?} {error:#?} {:?}", error.hint());
    for secret in [CONTENT, SECRET_KEY, "m4rker", "Signature="] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[rstest]
#[case("ValidationException")]
#[case("InvalidParameterException")]
#[case("InvalidRequestException")]
#[case("InvalidSignatureException")]
#[case("AccessDeniedException")]
#[case("EncryptionFailure")]
#[case("LimitExceededException")]
#[case("InternalServiceError")]
#[case("SomethingNewException")]
#[tokio::test]
async fn what_echoes_the_request_is_not_repeated(#[case] code: &'static str) {
    let echoing = move |request: &Received| {
        let echo = format!("Value '{}' failed: {}", request.body, request.headers["authorization"].to_str().unwrap());
        match operation_of(request) {
            "DescribeSecret" => document(200, &serde_json::json!({"ARN": "arn", "Name": "n"})),
            "PutSecretValue" if code == "SomethingNewException" => page(400, &echo),
            "PutSecretValue" => refusal_text(400, code, &echo),
            _ => document(200, &described()),
        }
    };
    let fake = Fake::start(echoing).await;
    let error = attempt(&store_at(&fake).await, Operation::AddVersion).await.unwrap_err();
    assert_eq!(error.operation, Operation::AddVersion);
    shows_no_secret(&error);
    assert!(fake.received().iter().any(|request| request.body.to_string().contains(CONTENT)));
}

#[tokio::test]
async fn a_message_about_a_signature_is_not_repeated() {
    let echoing = |request: &Received| {
        let echo = format!("The Canonical String should have been {:?}", request.headers);
        refusal_text(403, "InvalidSignatureException", &echo)
    };
    let fake = Fake::start(echoing).await;
    let store = store_at(&fake).await;
    for operation in OPERATIONS {
        if let Err(error) = attempt(&store, operation).await {
            shows_no_secret(&error);
            assert_eq!(error.detail.as_deref(), Some("InvalidSignatureException"));
        }
    }
    let shown = format!("{store:?} {store:#?} {:?}", super::moto::settings("http://127.0.0.1:1"));
    assert!(shown.contains("pull-secrets") && !shown.contains("m4rker"), "{shown}");
}
