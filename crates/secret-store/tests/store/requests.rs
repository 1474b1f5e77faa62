//! The requests to Google for each operation.

use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use secret_store::{GoogleSecretManager, Operation, Permission, Replica, Replication, SecretStore as _, Settings};
use serde_json::{Value, json};

use crate::rig::{attempt, new_secret, secret_id, settings, store_at};
use testkit::fake::{Fake, Received, json as document};

const KEY: &str = "projects/p/locations/global/keyRings/r/cryptoKeys/k";

/// Undoes the escapes of signs that a query may hold as they are.
fn readable(target: &str) -> String {
    target.replace("%2C", ",").replace("%24", "$").replace("%3B", ";").replace("%3D", "=")
}

#[rstest]
#[case(Operation::Find, Method::GET, "", json!(null))]
#[case(Operation::Delete, Method::DELETE, "?etag=e1", json!(null))]
#[case(Operation::ReadVersion, Method::GET, "/versions/1:access", json!(null))]
#[case(Operation::FindVersion, Method::GET, "/versions/latest", json!(null))]
#[case(Operation::ListVersions, Method::GET, "/versions", json!(null))]
#[case(Operation::DestroyVersion, Method::POST, "/versions/1:destroy", json!({}))]
#[case(
    Operation::CheckPermissions, Method::POST, ":testIamPermissions",
    json!({"permissions": ["secretmanager.secrets.get", "secretmanager.versions.add"]})
)]
#[case(
    Operation::AddVersion, Method::POST, ":addVersion",
    json!({"payload": {"data": "bTRya2VyLW9mLWEtc2VjcmV0", "dataCrc32c": crc32c::crc32c(b"m4rker-of-a-secret").to_string()}})
)]
#[case(
    Operation::Update, Method::PATCH, "?updateMask=labels,annotations",
    json!({"name": "projects/fleet-dev/secrets/pull-secret", "etag": "e1", "labels": {"team": "fleet"}})
)]
#[tokio::test]
async fn an_operation_is_one_request(
    #[case] operation: Operation,
    #[case] method: Method,
    #[case] target: &str,
    #[case] body: Value,
) {
    let fake = Fake::answering(document(200, &json!({}))).await;
    drop(attempt(&store_at(fake.address).await, operation).await);
    let request = fake.only();
    assert_eq!((request.method, request.body), (method, body));
    let (path, wanted) = target.split_once('?').unwrap_or((target, ""));
    let sent = readable(&request.target);
    let (sent_path, query) = sent.split_once('?').unwrap();
    assert_eq!(sent_path, format!("/v1/projects/fleet-dev/secrets/pull-secret{path}"));
    assert!(wanted.is_empty() || query.split('&').any(|sent| sent == wanted), "{query}");
}

#[rstest]
#[case(Replication::Automatic { kms_key: None }, json!({"replication": {"automatic": {}}}))]
#[case(
    Replication::Automatic { kms_key: Some(KEY.to_owned()) },
    json!({"replication": {"automatic": {"customerManagedEncryption": {"kmsKeyName": KEY}}}})
)]
#[case(
    Replication::Locations(vec![
        Replica { location: "europe-west1".parse().unwrap(), kms_key: None },
        Replica { location: "europe-west4".parse().unwrap(), kms_key: Some(KEY.to_owned()) },
    ]),
    json!({"replication": {"userManaged": {"replicas": [
        {"location": "europe-west1"},
        {"location": "europe-west4", "customerManagedEncryption": {"kmsKeyName": KEY}},
    ]}}})
)]
#[case(Replication::Regional { kms_key: None }, json!({}))]
#[case(
    Replication::Regional { kms_key: Some(KEY.to_owned()) },
    json!({"customerManagedEncryption": {"kmsKeyName": KEY}})
)]
#[tokio::test]
async fn a_new_secret_says_where_it_rests(#[case] replication: Replication, #[case] expected: Value) {
    let fake = Fake::answering(document(200, &json!({}))).await;
    store_at(fake.address).await.create(&secret_id(), &new_secret(replication)).await.unwrap();
    let request = fake.only();
    assert_eq!(request.method, Method::POST);
    assert!(request.target.starts_with("/v1/projects/fleet-dev/secrets?"), "{}", request.target);
    assert!(request.target.contains("secretId=pull-secret"), "{}", request.target);
    let mut body = request.body;
    let written = body.as_object_mut().unwrap();
    assert_eq!(written.remove("labels"), Some(json!({"team": "fleet"})));
    assert_eq!(written.remove("annotations"), Some(json!({"note": "A note"})));
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_regional_secret_is_asked_for_in_its_location() {
    let fake = Fake::answering(document(200, &json!({}))).await;
    let settings = Settings { location: Some("europe-west1".parse().unwrap()), ..settings(fake.address) };
    let store = GoogleSecretManager::connect(&settings).await.unwrap();
    assert_eq!(store.path(&secret_id()), "projects/fleet-dev/locations/europe-west1/secrets/pull-secret");
    drop(attempt(&store, Operation::Find).await);
    let target = fake.only().target;
    assert!(target.starts_with("/v1/projects/fleet-dev/locations/europe-west1/secrets/pull-secret?"), "{target}");
}

#[tokio::test]
async fn creation_is_not_asked_about_at_a_secret() {
    let fake = Fake::answering(document(200, &json!({"permissions": ["secretmanager.secrets.get"]}))).await;
    let wanted = BTreeSet::from([Permission::Create, Permission::Find]);
    let held = store_at(fake.address).await.permissions(&secret_id(), &wanted).await.unwrap();
    assert_eq!((held.missing, held.unknown), (BTreeSet::new(), BTreeSet::from([Permission::Create])));
    assert_eq!(fake.only().body, json!({"permissions": ["secretmanager.secrets.get"]}));
}

/// A fleet of 100,000 clusters in one project is read with four calls.
#[tokio::test]
async fn a_list_is_one_call_a_page_of_the_largest_size() {
    let pages = |request: &Received| {
        let is_first = !request.target.contains("pageToken=p2");
        let secret = |name: &str| json!({"name": format!("projects/1/secrets/{name}"), "etag": "e"});
        let page = if is_first {
            json!({"secrets": [secret("a"), secret("b")], "nextPageToken": "p2"})
        } else {
            json!({"secrets": [secret("c")]})
        };
        document(200, &page)
    };
    let fake = Fake::start(pages).await;
    let store = store_at(fake.address).await.of_project("other-project".parse().unwrap());
    let (mut names, mut page) = (Vec::new(), None);
    loop {
        let listed = store.list(&[("managed-by", "fleet")], page.as_deref()).await.unwrap();
        names.extend(listed.secrets.keys().map(ToString::to_string));
        page = listed.next;
        if page.is_none() {
            break;
        }
    }
    assert_eq!(names, ["a", "b", "c"]);
    let targets: Vec<_> = fake.received().into_iter().map(|request| readable(&request.target)).collect();
    assert_eq!(targets.len(), 2, "{targets:?}");
    for target in targets {
        assert!(target.starts_with("/v1/projects/other-project/secrets?"), "{target}");
        assert!(target.contains("pageSize=25000") && target.contains("filter=labels.managed-by=fleet"), "{target}");
    }
}
