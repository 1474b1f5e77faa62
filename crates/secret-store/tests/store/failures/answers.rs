//! Answers of success that are none.

use daemon::retry::Transient as _;
use rstest::rstest;
use secret_store::{ErrorKind, NewVersion, Operation, SecretStore as _, Version, VersionNumber};
use serde_json::{Value, json};

use crate::rig::{CONTENT, OPERATIONS, attempt, number, secret_id, store_at};
use testkit::fake::{Fake, json as document, page};

const SECRET: &str = "projects/1/secrets/pull-secret";

#[tokio::test]
async fn a_page_of_success_is_no_answer() {
    let fake = Fake::answering(page(200, &format!("Please log in to go on, {CONTENT}"))).await;
    let store = store_at(fake.address).await;
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind, error.is_transient()), (operation, ErrorKind::Internal, true));
        assert_eq!(error.detail.as_deref(), Some("the answer cannot be read"));
    }
}

/// A JSON parser's message about a wrong type quotes the value; it must not be shown.
#[rstest]
#[case(json!({"name": 7, "etag": [CONTENT], "payload": CONTENT, "versions": CONTENT, "permissions": CONTENT}))]
#[case(json!({"labels": CONTENT, "payload": {"data": {CONTENT: CONTENT}}, "versions": [CONTENT], "permissions": [{CONTENT: 1}]}))]
#[case(json!({"labels": [CONTENT], "payload": {"data": format!("!{CONTENT}")}, "versions": {CONTENT: 1}, "permissions": 1}))]
#[case(json!({"labels": {"a": [CONTENT]}, "payload": {"data": "", "dataCrc32c": CONTENT}, "versions": [{"name": [CONTENT]}], "permissions": [[CONTENT]]}))]
#[tokio::test]
async fn an_answer_of_the_wrong_shape_is_not_quoted(#[case] answer: Value) {
    let fake = Fake::answering(document(200, &answer)).await;
    let store = store_at(fake.address).await;
    let reading = [
        Operation::Find,
        Operation::Update,
        Operation::ReadVersion,
        Operation::ListVersions,
        Operation::CheckPermissions,
    ];
    for operation in reading {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Internal, true), "{error}");
        assert!(!format!("{error} {error:?}").contains("m4rker"), "{error:?}");
    }
}

#[rstest]
#[case::right_checksum(json!({"payload": {"data": "aGVsbG8=", "dataCrc32c": "2591144780"}}), None)]
#[case::right_checksum_as_number(json!({"payload": {"data": "aGVsbG8=", "dataCrc32c": 2_591_144_780_u32}}), None)]
#[case::no_checksum(json!({"payload": {"data": "aGVsbG8="}}), None)]
#[case::wrong_checksum(json!({"payload": {"data": "aGVsbG8=", "dataCrc32c": "1"}}), Some(ErrorKind::Corrupt))]
#[case::negative_checksum(json!({"payload": {"data": "aGVsbG8=", "dataCrc32c": "-1703822516"}}), Some(ErrorKind::Corrupt))]
#[case::cut_content(json!({"payload": {"data": "aGVsbA==", "dataCrc32c": "2591144780"}}), Some(ErrorKind::Corrupt))]
#[case::no_content(json!({"payload": {"dataCrc32c": "2591144780"}}), Some(ErrorKind::Corrupt))]
#[case::no_payload(json!({}), Some(ErrorKind::Corrupt))]
#[tokio::test]
async fn content_that_does_not_fit_its_checksum_is_not_given_out(
    #[case] answer: Value,
    #[case] kind: Option<ErrorKind>,
) {
    let fake = Fake::answering(document(200, &answer)).await;
    let read = store_at(fake.address).await.read_version(&secret_id(), number(1)).await;
    match kind {
        None => assert!(matches!(read.unwrap(), Version::Live(_))),
        Some(kind) => {
            let error = read.unwrap_err();
            assert_eq!((error.kind, error.is_transient()), (kind, true));
            assert!(error.resource.ends_with("/versions/1"), "{error}");
        }
    }
}

#[rstest]
#[case(json!({"name": format!("{SECRET}/versions/7")}), Some(7))]
#[case(json!({"name": "projects/1/locations/europe-west1/secrets/pull-secret/versions/7"}), Some(7))]
#[case(json!({"name": format!("{SECRET}/versions/latest")}), None)]
#[case(json!({"name": format!("{SECRET}/versions/0")}), None)]
#[case(json!({"name": format!("{SECRET}/versions/-1")}), None)]
#[case(json!({"name": format!("{SECRET}/versions/")}), None)]
#[case(json!({"name": SECRET}), None)]
#[case(json!({}), None)]
#[tokio::test]
async fn an_added_version_has_a_number(#[case] answer: Value, #[case] expected: Option<u64>) {
    let fake = Fake::answering(document(200, &answer)).await;
    let content = b"hello".to_vec().into();
    let new = NewVersion::without_record(VersionNumber::FIRST, &content);
    let added = store_at(fake.address).await.add_version(&secret_id(), &new).await;
    if let Some(version) = expected {
        assert_eq!(added.unwrap(), number(version));
        return;
    }
    let error = added.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::Internal, true));
    assert_eq!(error.detail.as_deref(), Some("the answer names no version"));
}

#[tokio::test]
async fn a_secret_without_an_etag_is_none() {
    let fake = Fake::answering(document(200, &json!({"name": SECRET, "labels": {"team": "fleet"}}))).await;
    let error = attempt(&store_at(fake.address).await, Operation::Find).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::Internal, true));
    assert_eq!(error.detail.as_deref(), Some("the answer has no etag"));
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let fake = Fake::start(|request| {
        let token = request.target.split_once("pageToken=").and_then(|(_, rest)| rest.split('&').next());
        let page: u64 = token.filter(|token| !token.is_empty()).map_or(0, |token| token.parse().unwrap());
        let version = |number| json!({"name": format!("{SECRET}/versions/{number}"), "state": 1});
        // The second page is empty, as pages may be.
        let versions: Vec<_> =
            [vec![6, 5, 4], vec![], vec![3, 2], vec![1]][usize::try_from(page).unwrap()].iter().map(version).collect();
        let next = if page < 3 { (page + 1).to_string() } else { String::new() };
        document(200, &json!({"versions": versions, "nextPageToken": next, "totalSize": 6}))
    })
    .await;
    let listed = store_at(fake.address).await.list_versions(&secret_id()).await.unwrap();
    assert!(listed.iter().map(|version| version.number.get()).eq((1..=6).rev()), "{listed:?}");
    assert_eq!(fake.received().len(), 4);
}

#[tokio::test]
async fn a_list_that_fails_at_its_second_page_fails() {
    let fake = Fake::start(|request| {
        if request.target.contains("pageToken=2") {
            return page(503, "busy");
        }
        let versions = json!([{"name": format!("{SECRET}/versions/9"), "state": 1}]);
        document(200, &json!({"versions": versions, "nextPageToken": "2"}))
    })
    .await;
    let error = attempt(&store_at(fake.address).await, Operation::ListVersions).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
}
