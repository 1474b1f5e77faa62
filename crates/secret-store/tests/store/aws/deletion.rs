//! Secrets that are scheduled for deletion: with moto, and with AWS's own answers where moto's are others.

use http::Response;
use secret_store::{
    AwsSettings, AwsStore, ErrorKind, Metadata, NewVersion, Operation, Replication, SecretStore as _, StoreError,
    Version, VersionNumber,
};
use serde_json::json;

use super::between::refusal_text;
use super::moto::{Moto, settings};
use super::requests::{described, operation_of};
use crate::rig::{OPERATIONS, attempt, bytes, new_secret, number, secret_id};
use testkit::fake::{Fake, Received, json as document};

#[track_caller]
fn is_pending(error: &StoreError) {
    assert_eq!(error.kind, ErrorKind::PendingDeletion, "{error}");
    assert!(error.hint().unwrap().contains("restore-secret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_can_be_restored_within_the_window() {
    let Some(moto) = Moto::new() else { return };
    let store = AwsStore::connect(&AwsSettings { recovery_days: Some(7), ..moto.settings() }).await.unwrap();
    store.create(&secret_id(), &new_secret(Replication::Automatic { kms_key: None })).await.unwrap();
    let content = bytes(b"kept");
    let first = NewVersion::without_record(VersionNumber::FIRST, &content);
    store.add_version(&secret_id(), &first).await.unwrap();
    let etag = store.find(&secret_id()).await.unwrap().unwrap().metadata.etag;
    assert!(store.delete(&secret_id(), &etag).await.unwrap());

    assert_eq!(store.find(&secret_id()).await.unwrap(), None);
    assert!(matches!(store.read_version(&secret_id(), number(1)).await.unwrap(), Version::Absent));
    assert_eq!(store.newest_version(&secret_id()).await.unwrap(), None);
    assert!(!store.delete(&secret_id(), &etag).await.unwrap());
    is_pending(&store.add_version(&secret_id(), &first).await.unwrap_err());
    is_pending(&store.update(&secret_id(), &Metadata { etag, ..Metadata::default() }).await.unwrap_err());
    is_pending(&store.destroy_version(&secret_id(), number(1)).await.unwrap_err());
    assert_eq!(store.list(&[], None).await.unwrap().secrets.len(), 0);

    moto.admin(&secret_id(), "RestoreSecret", json!({})).await;
    assert!(matches!(store.read_version(&secret_id(), number(1)).await.unwrap(), Version::Live(_)));
}

/// As AWS answers; moto says that the name is taken, and writes.
#[tokio::test]
async fn a_name_that_is_scheduled_for_deletion_is_not_created() {
    let refused = refusal_text(
        400,
        "InvalidRequestException",
        "You can't create this secret because a secret with this name is already scheduled for deletion.",
    );
    let fake = Fake::answering(refused).await;
    let store = AwsStore::connect(&settings(&format!("http://{}", fake.address))).await.unwrap();
    is_pending(&attempt(&store, Operation::Create).await.unwrap_err());
}

/// The deletion comes between the look and the write.
#[tokio::test]
async fn a_write_that_finds_the_secret_scheduled_says_so() {
    let answer = |request: &Received| -> Response<String> {
        let message = "You can't perform this operation on the secret because it was marked for deletion.";
        match operation_of(request) {
            "DescribeSecret" => document(200, &described()),
            _ => refusal_text(400, "InvalidRequestException", message),
        }
    };
    let fake = Fake::start(answer).await;
    let store = AwsStore::connect(&settings(&format!("http://{}", fake.address))).await.unwrap();
    let etag = store.find(&secret_id()).await.unwrap().unwrap().metadata.etag;
    is_pending(&store.update(&secret_id(), &Metadata { etag, ..Metadata::default() }).await.unwrap_err());
    for operation in OPERATIONS {
        match operation {
            Operation::AddVersion | Operation::Create => {
                is_pending(&attempt(&store, operation).await.unwrap_err());
            }
            Operation::ReadVersion => {
                let read = store.read_version(&secret_id(), number(1)).await.unwrap();
                assert!(matches!(read, Version::Absent));
            }
            _ => {}
        }
    }
}
