//! Requests as Azure's interface has them, and their number.

use daemon::calls::CallLog;
use emulators::key_vault::Settings as Emulator;
use secret_store::{
    AzureSettings, AzureStore, ErrorKind, NewSecret, NewVersion, Operation, Replication, SecretStore as _,
    VersionNumber,
};
use serde_json::json;

use super::fake_vault::{FakeVault, refusal, versions};
use super::key_vault::FastVault;
use super::writers::{add, with_a_version};
use crate::rig::{OPERATIONS, attempt, bytes, new_secret, number, secret_id, texts};
use testkit::fake::json as document;

#[tokio::test(flavor = "multi_thread")]
async fn a_version_has_number_record_and_metadata_in_tags() {
    let vault = FastVault::new().await;
    let store = with_a_version(&vault).await;
    assert_eq!(store.path(&secret_id()), format!("{}/secrets/pull-secret", vault.server.url()));
    assert_eq!(store.path(&secret_id()), store.latest_path(&secret_id()));
    let found = vault.versions(&secret_id()).await;
    let [placeholder, version] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(placeholder["tags"]["hyperfleet-version"], "0");
    assert_eq!(placeholder["attributes"]["enabled"], false);
    assert_eq!(version["tags"]["hyperfleet-version"], "1");
    assert_eq!(version["tags"]["hyperfleet-record"], "{\"digest\":\"content-1\"}");
    assert_eq!(version["tags"]["hyperfleet-metadata"], placeholder["tags"]["hyperfleet-metadata"]);
    let metadata: serde_json::Value =
        serde_json::from_str(version["tags"]["hyperfleet-metadata"].as_str().unwrap()).unwrap();
    assert_eq!(metadata["labels"], json!({"team": "fleet"}));
    assert_eq!(metadata["annotations"], json!({"note": "A note"}));
}

/// With a token; an addition may list the versions more than once until its second is over.
#[tokio::test(flavor = "multi_thread")]
async fn an_operation_sends_so_many_requests() {
    let vault = FastVault::new().await;
    let log = CallLog::default();
    let store = AzureStore::connect(&AzureSettings { calls: Some(log.clone()), ..vault.settings() }).unwrap();
    let mut seen = 0;
    let mut requests = || {
        let mut calls: Vec<_> = log.calls().split_off(seen).iter().map(|call| call.operation.to_string()).collect();
        seen += calls.len();
        calls.dedup();
        calls
    };
    store.find(&secret_id()).await.unwrap();
    assert_eq!(requests(), ["get_secret", "token", "get_secret"], "without a token, and with the first");
    store.create(&secret_id(), &new_secret(Replication::Automatic { kms_key: None })).await.unwrap();
    assert_eq!(requests(), ["get_secret", "create_secret", "list_secret_versions"]);
    add(&store, 1, "content").await.unwrap();
    assert_eq!(requests(), ["list_secret_versions", "add_secret_version", "list_secret_versions"]);
    let mut metadata = store.find(&secret_id()).await.unwrap().unwrap().metadata;
    assert_eq!(requests(), ["get_secret"]);
    metadata.etag = store.update(&secret_id(), &metadata).await.unwrap();
    assert_eq!(requests(), ["get_secret", "update_secret"]);
    store.read_version(&secret_id(), VersionNumber::FIRST).await.unwrap();
    assert_eq!(requests(), ["list_secret_versions", "access_secret_version"]);
    store.newest_version(&secret_id()).await.unwrap();
    assert_eq!(requests(), ["get_secret_version"]);
    store.list_versions(&secret_id()).await.unwrap();
    assert_eq!(requests(), ["list_secret_versions"]);
    store.list(&[], None).await.unwrap();
    assert_eq!(requests(), ["list_secrets"]);
    add(&store, 2, "content").await.unwrap();
    requests();
    store.destroy_version(&secret_id(), VersionNumber::FIRST).await.unwrap();
    assert_eq!(requests(), ["get_secret_version", "destroy_secret_version"]);
    store.delete(&secret_id(), &metadata.etag).await.unwrap();
    assert_eq!(requests(), ["list_secret_versions", "delete_secret", "get_secret", "delete_secret"]);
}

#[tokio::test]
async fn no_request_is_repeated() {
    for (status, code) in [(500, "InternalServerError"), (429, "Throttled"), (503, "ServiceUnavailable")] {
        for operation in OPERATIONS.into_iter().filter(|operation| *operation != Operation::CheckPermissions) {
            let vault = FakeVault::answering(refusal(status, code, "", "later")).await;
            attempt(&vault.store(), operation).await.unwrap_err();
            assert_eq!(vault.received().len(), 1, "{operation:?}");
            let agent = vault.received()[0].headers["user-agent"].to_str().unwrap().to_owned();
            assert!(agent.starts_with("pull-secret/"), "{agent}");
        }
    }
}

/// No request is made for what Azure would refuse.
#[tokio::test]
async fn what_cannot_be_stored_is_not_sent() {
    let vault = FakeVault::answering(document(200, &versions())).await;
    let store = vault.store();
    for content in [vec![], vec![b'x'; 25_001]] {
        let content = content.into();
        let new = NewVersion::without_record(VersionNumber::FIRST, &content);
        assert_eq!(store.add_version(&secret_id(), &new).await.unwrap_err().kind, ErrorKind::Invalid);
    }
    for name in ["under_score", &"s".repeat(128)] {
        let error = store.find(&name.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    }
    let long =
        NewSecret { labels: texts(&[("a", &"x".repeat(4000))]), ..new_secret(Replication::Regional { kms_key: None }) };
    assert_eq!(store.create(&secret_id(), &long).await.unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(vault.fake.received().len(), 0);
    let (content, record) = (bytes(b"content"), texts(&[("long", &"x".repeat(4000))]));
    let new = NewVersion { number: number(2), content: &content, record: &record };
    let error = store.add_version(&secret_id(), &new).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    assert!(vault.received().iter().all(|request| request.method == "GET"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_goes_on_where_its_page_ends() {
    let vault = FastVault::start(Emulator::default()).await;
    let store = vault.store();
    for secret in 0..30 {
        let tags = json!({"hyperfleet-metadata": "{\"labels\":{\"team\":\"fleet\"}}"});
        vault.put(&format!("secret-{secret:02}").parse().unwrap(), json!({"value": "x", "tags": tags})).await;
    }
    let first = store.list(&[("team", "fleet")], None).await.unwrap();
    let second = store.list(&[("team", "fleet")], first.next.as_deref()).await.unwrap();
    assert_eq!((first.secrets.len(), second.secrets.len(), second.next), (25, 5, None));
    let error = store.list(&[], Some("no address")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
}
