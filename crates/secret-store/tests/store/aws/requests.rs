//! Requests as AWS's interface has them, and the answers of a fake.

use daemon::calls::CallLog;
use secret_store::{AwsSettings, AwsStore, NewVersion, Operation, SecretStore as _, VersionNumber};
use serde_json::{Value, json};

use super::between::refusal_text;
use super::moto::{KEY_ID, id, settings};
use crate::rig::{OPERATIONS, attempt, bytes, number, secret_id, texts};
use testkit::fake::{Fake, Received, json as document};

pub(super) const ARN: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:pull-secrets/pull-secret-AbCdEf";

/// A secret with one version.
pub(super) fn described() -> Value {
    json!({"ARN": ARN, "Name": "pull-secrets/pull-secret", "VersionIdsToStages": {id(1): ["AWSCURRENT", "hyperfleet-record-1-1.1-"]}})
}

pub(super) fn operation_of(request: &Received) -> &str {
    request.headers["x-amz-target"].to_str().unwrap().strip_prefix("secretsmanager.").unwrap()
}

pub(super) async fn store_at(fake: &Fake) -> AwsStore {
    AwsStore::connect(&settings(&format!("http://{}", fake.address))).await.unwrap()
}

#[tokio::test]
async fn a_version_is_put_with_its_number_and_its_record_and_then_made_current() {
    let answer = |request: &Received| match operation_of(request) {
        "DescribeSecret" => document(200, &described()),
        "GetSecretValue" => {
            let labels = ["hyperfleet-record-2-1.1-digest@a=2Fb"];
            document(200, &json!({"SecretString": "content", "VersionId": id(2), "VersionStages": labels}))
        }
        _ => document(200, &json!({})),
    };
    let fake = Fake::start(answer).await;
    let log = CallLog::default();
    let settings = AwsSettings { calls: Some(log.clone()), ..settings(&format!("http://{}", fake.address)) };
    let store = AwsStore::connect(&settings).await.unwrap();
    let (content, record) = (bytes(b"content"), texts(&[("digest", "a/b")]));
    let new = NewVersion { number: number(2), content: &content, record: &record };
    store.add_version(&secret_id(), &new).await.unwrap();
    let sent: Vec<_> =
        fake.received().iter().map(|request| (operation_of(request).to_owned(), request.body.clone())).collect();
    let name = "pull-secrets/pull-secret";
    let expected = [
        ("DescribeSecret", json!({"SecretId": name})),
        (
            "PutSecretValue",
            json!({"SecretId": name, "ClientRequestToken": id(2), "SecretString": "content",
            "VersionStages": ["hyperfleet-record-2-1.1-digest@a=2Fb"]}),
        ),
        ("GetSecretValue", json!({"SecretId": name, "VersionId": id(2)})),
        (
            "UpdateSecretVersionStage",
            json!({"SecretId": name, "VersionStage": "AWSCURRENT",
            "RemoveFromVersionId": id(1), "MoveToVersionId": id(2)}),
        ),
        ("GetSecretValue", json!({"SecretId": name, "VersionId": id(2)})),
    ];
    assert_eq!(sent, expected.map(|(operation, body)| (operation.to_owned(), body)));
    let calls: Vec<_> =
        log.calls().into_iter().map(|call| format!("{} {}", call.operation, call.status_code)).collect();
    assert_eq!(
        calls,
        [
            "get_secret 200",
            "add_secret_version 200",
            "access_secret_version 200",
            "add_secret_version 200",
            "access_secret_version 200"
        ]
    );
    let authorization = fake.received()[0].headers["authorization"].to_str().unwrap().to_owned();
    assert!(authorization.contains(&format!("{KEY_ID}/")), "{authorization}");
    assert!(authorization.contains("/eu-central-1/secretsmanager/aws4_request"), "{authorization}");
}

#[tokio::test]
async fn no_request_is_repeated() {
    for (status, code) in [(500, "InternalServiceError"), (400, "ThrottlingException"), (503, "ServiceUnavailable")] {
        for operation in OPERATIONS.into_iter().filter(|operation| *operation != Operation::CheckPermissions) {
            let fake = Fake::answering(refusal_text(status, code, "later")).await;
            attempt(&store_at(&fake).await, operation).await.unwrap_err();
            assert_eq!(fake.received().len(), 1, "{operation:?}");
        }
    }
}

#[tokio::test]
async fn a_deletion_is_at_once_or_with_the_window() {
    for (recovery_days, expected) in
        [(None, json!({"ForceDeleteWithoutRecovery": true})), (Some(30), json!({"RecoveryWindowInDays": 30}))]
    {
        let fake = Fake::answering(document(200, &described())).await;
        let settings = AwsSettings { recovery_days, ..settings(&format!("http://{}", fake.address)) };
        let store = AwsStore::connect(&settings).await.unwrap();
        let etag = store.find(&secret_id()).await.unwrap().unwrap().metadata.etag;
        assert!(store.delete(&secret_id(), &etag).await.unwrap());
        let mut body = fake.received().pop().unwrap().body;
        assert_eq!(body.as_object_mut().unwrap().remove("SecretId"), Some(json!("pull-secrets/pull-secret")));
        assert_eq!(body, expected);
    }
}

/// No request is made for what AWS would refuse, or would store in part.
#[tokio::test]
async fn what_cannot_be_stored_is_not_sent() {
    let fake = Fake::answering(document(200, &described())).await;
    let store = store_at(&fake).await;
    let record = texts(&[("long", &"x".repeat(600))]);
    for (content, record) in [(vec![], texts(&[])), (vec![b'x'; 64 * 1024 + 1], texts(&[])), (b"x".to_vec(), record)] {
        let content = content.into();
        let new = NewVersion { number: VersionNumber::FIRST, content: &content, record: &record };
        let error = store.add_version(&secret_id(), &new).await.unwrap_err();
        assert_eq!(error.kind, secret_store::ErrorKind::Invalid, "{error}");
    }
    assert_eq!(fake.received().len(), 0);
}
