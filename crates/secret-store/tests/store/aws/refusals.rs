//! Answers of AWS and of what stands before it: kind, detail and remedy of each.

use std::time::Duration;

use daemon::retry::Transient as _;
use rstest::rstest;
use secret_store::{AwsStore, ErrorKind, Operation};

use super::between::refusal_text;
use super::moto::settings;
use super::requests::{described, operation_of, store_at};
use crate::rig::{OPERATIONS, attempt};
use testkit::fake::{Fake, Received, json as document, page};

/// The operations that send requests.
fn operations() -> impl Iterator<Item = Operation> {
    OPERATIONS.into_iter().filter(|operation| *operation != Operation::CheckPermissions)
}

#[rstest]
#[case(400, "AccessDeniedException", ErrorKind::PermissionDenied, "allow the role secretsmanager:")]
#[case(400, "DecryptionFailure", ErrorKind::Invalid, "KMS key")]
#[case(400, "EncryptionFailure", ErrorKind::Invalid, "KMS key")]
#[case(400, "ExpiredTokenException", ErrorKind::Unauthenticated, "AWS_WEB_IDENTITY_TOKEN_FILE")]
#[case(400, "InternalServiceError", ErrorKind::Internal, "")]
#[case(500, "InternalServiceError", ErrorKind::Internal, "")]
#[case(400, "InvalidParameterException", ErrorKind::Invalid, "")]
#[case(400, "InvalidRequestException", ErrorKind::Invalid, "")]
#[case(403, "InvalidSignatureException", ErrorKind::Unauthenticated, "AWS_ROLE_ARN")]
#[case(400, "LimitExceededException", ErrorKind::QuotaExceeded, "20 labels")]
#[case(400, "RequestExpired", ErrorKind::Unauthenticated, "clock")]
#[case(503, "ServiceUnavailable", ErrorKind::Unavailable, "")]
#[case(400, "ThrottlingException", ErrorKind::QuotaExceeded, "fewer Jobs")]
#[case(400, "UnrecognizedClientException", ErrorKind::Unauthenticated, "AWS_ROLE_ARN")]
#[case(400, "ValidationException", ErrorKind::Invalid, "")]
#[case(400, "SomethingNewException", ErrorKind::Invalid, "")]
#[case(502, "SomethingNewException", ErrorKind::Unavailable, "")]
#[tokio::test]
async fn every_answer_has_its_meaning(
    #[case] status: u16,
    #[case] code: &str,
    #[case] kind: ErrorKind,
    #[case] hint: &str,
) {
    let fake = Fake::answering(refusal_text(status, code, "No.")).await;
    let store = store_at(&fake).await;
    for operation in operations() {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind), (operation, kind), "{error}");
        assert!(error.detail.as_deref().is_some_and(|detail| detail.contains(code)), "{error}");
        let given = error.hint().unwrap_or_default();
        assert!(given.contains(hint) && given.is_empty() == hint.is_empty(), "{given}");
    }
}

/// The action is that of the request that was refused, as a policy has it.
#[rstest]
#[case(Operation::Create, "CreateSecret", "secretsmanager:CreateSecret")]
#[case(Operation::AddVersion, "DescribeSecret", "secretsmanager:DescribeSecret")]
#[case(Operation::AddVersion, "PutSecretValue", "secretsmanager:PutSecretValue")]
#[case(Operation::AddVersion, "GetSecretValue", "secretsmanager:GetSecretValue")]
#[case(Operation::AddVersion, "UpdateSecretVersionStage", "secretsmanager:UpdateSecretVersionStage")]
#[case(Operation::ListVersions, "ListSecretVersionIds", "secretsmanager:ListSecretVersionIds")]
#[case(Operation::List, "ListSecrets", "secretsmanager:ListSecrets")]
#[tokio::test]
async fn a_denial_names_the_action(#[case] operation: Operation, #[case] refused: &'static str, #[case] action: &str) {
    let answer = move |request: &Received| match operation_of(request) {
        operation if operation == refused => refusal_text(400, "AccessDeniedException", "not authorized"),
        "GetSecretValue" => document(
            200,
            &serde_json::json!({"SecretString": "content-2", "VersionStages": ["hyperfleet-record-2-1.1-"]}),
        ),
        _ => document(200, &described()),
    };
    let fake = Fake::start(answer).await;
    let store = store_at(&fake).await;
    let error = match operation {
        Operation::AddVersion => {
            let content = crate::rig::bytes(b"content-2");
            let new = secret_store::NewVersion::without_record(crate::rig::number(2), &content);
            secret_store::SecretStore::add_version(&store, &crate::rig::secret_id(), &new).await.map(drop).unwrap_err()
        }
        _ => attempt(&store, operation).await.unwrap_err(),
    };
    assert_eq!(error.kind, ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains(&format!("needs {action};")), "{error}");
}

/// Nothing of such a page is repeated, and its 404 says nothing about secrets.
#[rstest]
#[case(400, ErrorKind::Invalid)]
#[case(401, ErrorKind::Unauthenticated)]
#[case(404, ErrorKind::Invalid)]
#[case(407, ErrorKind::Invalid)]
#[case(429, ErrorKind::QuotaExceeded)]
#[case(500, ErrorKind::Internal)]
#[case(502, ErrorKind::Unavailable)]
#[case(504, ErrorKind::TimedOut)]
#[tokio::test]
async fn a_page_in_the_services_place_is_identified_by_its_status(#[case] status: u16, #[case] kind: ErrorKind) {
    let fake = Fake::answering(page(status, "ResourceNotFoundException")).await;
    let store = store_at(&fake).await;
    for operation in operations() {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.kind, error.detail), (kind, Some(format!("HTTP status {status}"))), "{operation:?}");
    }
}

#[rstest]
#[case("7", Some(7))]
#[case("soon", None)]
#[case("18446744073709551615", Some(24 * 60 * 60))]
#[tokio::test]
async fn the_delay_that_a_header_asks_for_is_reported(#[case] header: &str, #[case] seconds: Option<u64>) {
    let mut answer = refusal_text(400, "ThrottlingException", "Rate exceeded");
    answer.headers_mut().insert("retry-after", header.parse().unwrap());
    let fake = Fake::answering(answer).await;
    let error = attempt(&store_at(&fake).await, Operation::Find).await.unwrap_err();
    assert_eq!(error.retry_after(), seconds.map(Duration::from_secs));
}

#[rstest]
#[case::nothing("")]
#[case::half_a_head("HTTP/1.1 200 OK\r\ncontent-le")]
#[case::half_a_document("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{\"Name\": \"")]
#[case::half_a_body("HTTP/1.1 400 Bad Request\r\ncontent-length: 1000\r\n\r\n{\"__type\": ")]
#[case::another_protocol("SSH-2.0-OpenSSH_9.9\r\n")]
#[tokio::test]
async fn an_answer_that_breaks_off_may_be_a_success(#[case] bytes: &'static str) {
    let fake = Fake::speaking(bytes).await;
    let store = store_at(&fake).await;
    for operation in operations() {
        let error = attempt(&store, operation).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Internal) && error.is_transient(), "{error}");
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unavailable() {
    // It stays bound, so that no other test gets the address.
    let unheard = tokio::net::TcpSocket::new_v4().unwrap();
    unheard.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = format!("http://{}", unheard.local_addr().unwrap());
    let store = AwsStore::connect(&settings(&address)).await.unwrap();
    let error = attempt(&store, Operation::Find).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TimedOut), "{error}");
}
