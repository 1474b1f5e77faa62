//! Writers of one number at once, and versions that other programs add.

use std::sync::Arc;

use secret_store::{
    AzureStore, ErrorKind, NewVersion, Replication, SecretStore as _, StoreError, Version, VersionNumber, VersionState,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::key_vault::FastVault;
use crate::rig::{bytes, new_secret, number, secret_id, texts};

/// Adds a version with a record that names the content.
pub(super) async fn add(store: &AzureStore, version: u64, content: &str) -> Result<VersionNumber, StoreError> {
    let (bytes, record) = (bytes(content.as_bytes()), texts(&[("digest", content)]));
    let new = NewVersion { number: number(version), content: &bytes, record: &record };
    store.add_version(&secret_id(), &new).await
}

/// A store with a secret that has a version.
pub(super) async fn with_a_version(vault: &FastVault) -> AzureStore {
    let store = vault.store();
    store.create(&secret_id(), &new_secret(Replication::Automatic { kms_key: None })).await.unwrap();
    add(&store, 1, "content-1").await.unwrap();
    store
}

/// Checks that a version is live and what its content is.
pub(super) async fn reads(store: &AzureStore, version: u64, content: &str, case: &str) {
    match store.read_version(&secret_id(), number(version)).await.unwrap() {
        Version::Live(live) => assert_eq!(live.record, texts(&[("digest", content)]), "{case}"),
        other => panic!("{case}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_of_one_number_one_wins_and_readers_get_its_version() {
    let vault = FastVault::new().await;
    let store = Arc::new(with_a_version(&vault).await);
    for (round, is_same) in [(2, false), (3, true)] {
        let mut writers = JoinSet::new();
        for writer in 0..20 {
            let store = Arc::clone(&store);
            let content = if is_same { "same".to_owned() } else { format!("writer-{writer}") };
            writers.spawn(async move { add(&store, round, &content).await.map(|_number| content) });
        }
        let (added, refused): (Vec<_>, Vec<_>) = writers.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!(added.len(), if is_same { 20 } else { 1 });
        let kinds: Vec<_> = refused.into_iter().map(|error| error.unwrap_err().kind).collect();
        assert!(kinds.iter().all(|kind| *kind == ErrorKind::Changed), "{kinds:?}");
        let winner = added.into_iter().next().unwrap().unwrap();
        assert_eq!(vault.current(&secret_id()).await.as_ref(), Some(&winner));
        reads(&store, round, &winner, "winner").await;
    }
}

/// Its writer has looked before the newer number was there, and has written after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_version_of_a_former_number_leaves_the_newest_with_readers() {
    let vault = FastVault::new().await;
    let store = with_a_version(&vault).await;
    add(&store, 2, "content-2").await.unwrap();
    vault.put(&secret_id(), json!({"value": "late", "tags": {"hyperfleet-version": "1"}})).await;
    assert_eq!(vault.current(&secret_id()).await.as_deref(), Some("late"));
    let newest = store.newest_version(&secret_id()).await.unwrap().unwrap();
    assert_eq!((newest.number, newest.state), (number(2), VersionState::Disabled));
    reads(&store, 1, "content-1", "the first one has the number").await;
    // The run that has added it completes it.
    add(&store, 2, "content-2").await.unwrap();
    assert_eq!(vault.current(&secret_id()).await.as_deref(), Some("content-2"));
    reads(&store, 2, "content-2", "led back").await;
}

/// A version that was seen as disabled is not read, so a writer that passes it over does not know its record.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_passed_over_is_not_covered_once_readers_get_it() {
    let vault = FastVault::new().await;
    let (store, other) = (with_a_version(&vault).await, vault.store());
    add(&other, 2, "content-2").await.unwrap();
    vault.put(&secret_id(), json!({"value": "late", "tags": {"hyperfleet-version": "2"}})).await;
    assert!(matches!(store.read_version(&secret_id(), number(2)).await.unwrap(), Version::Disabled));
    add(&other, 2, "content-2").await.unwrap();
    assert_eq!(add(&store, 3, "content-3").await.unwrap_err().kind, ErrorKind::Changed);
    reads(&store, 2, "content-2", "looked at anew").await;
    add(&store, 3, "content-3").await.unwrap();
    reads(&store, 3, "content-3", "on top").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_versions_of_a_number_are_destroyed_but_those_that_readers_get() {
    let vault = FastVault::new().await;
    let store = with_a_version(&vault).await;
    vault.put(&secret_id(), json!({"value": "late", "tags": {"hyperfleet-version": "1"}})).await;
    add(&store, 1, "content-1").await.unwrap();
    let error = store.destroy_version(&secret_id(), number(1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    assert!(error.hint().unwrap().contains("add another version first"), "{error:?}");
    reads(&store, 1, "content-1", "not destroyed").await;
    add(&store, 2, "content-2").await.unwrap();
    store.destroy_version(&secret_id(), number(1)).await.unwrap();
    let versions = vault.versions(&secret_id()).await;
    let of_number = |version: &&Value| version["tags"]["hyperfleet-version"] == "1";
    let first: Vec<_> = versions.iter().filter(of_number).collect();
    assert_eq!(first.len(), 3, "the winner, the late one, a copy");
    for version in first {
        assert_eq!(version["attributes"]["enabled"], false, "{version}");
        assert!(version["tags"]["hyperfleet-record"].is_null(), "{version}");
    }
    reads(&store, 2, "content-2", "kept").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tags_of_people_are_taken_over_and_their_versions_are_covered() {
    let vault = FastVault::new().await;
    let store = with_a_version(&vault).await;
    let before = store.find(&secret_id()).await.unwrap().unwrap();
    vault.put(&secret_id(), json!({"value": "by hand", "tags": {"owner": "someone"}})).await;
    assert_eq!(store.find(&secret_id()).await.unwrap().unwrap(), before);
    let newest = store.newest_version(&secret_id()).await.unwrap().unwrap();
    assert_eq!((newest.number, newest.state), (number(1), VersionState::Disabled));
    add(&store, 2, "content-2").await.unwrap();
    assert_eq!(vault.current(&secret_id()).await.as_deref(), Some("content-2"));
    assert_eq!(store.find(&secret_id()).await.unwrap().unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_people_is_taken_over_with_its_tags() {
    let vault = FastVault::new().await;
    let store = vault.store();
    vault.put(&secret_id(), json!({"value": "by hand", "tags": {"owner": "someone"}})).await;
    let mut metadata = store.find(&secret_id()).await.unwrap().unwrap().metadata;
    assert!(metadata.labels.is_empty() && metadata.annotations.is_empty());
    let new = new_secret(Replication::Automatic { kms_key: None });
    assert_eq!(store.create(&secret_id(), &new).await.unwrap_err().kind, ErrorKind::AlreadyExists);
    metadata.labels = new.labels;
    metadata.etag = store.update(&secret_id(), &metadata).await.unwrap();
    assert_eq!(store.newest_version(&secret_id()).await.unwrap(), None);
    add(&store, 1, "content-1").await.unwrap();
    assert_eq!(store.find(&secret_id()).await.unwrap().unwrap().metadata, metadata);
    let newest = vault.versions(&secret_id()).await.pop().unwrap();
    assert_eq!(newest["tags"]["owner"], "someone");
}
