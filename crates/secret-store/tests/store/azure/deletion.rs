//! Deletions, which take their time, and purges.

use std::time::Duration;

use emulators::key_vault::Settings as Emulator;
use rstest::rstest;
use secret_store::{AzureSettings, AzureStore, ErrorKind, Replication, SecretStore as _, StoreError};

use super::key_vault::FastVault;
use crate::rig::{new_secret, secret_id};

async fn create(store: &AzureStore) -> Result<(), StoreError> {
    store.create(&secret_id(), &new_secret(Replication::Automatic { kms_key: None })).await
}

async fn etag(store: &AzureStore) -> String {
    store.find(&secret_id()).await.unwrap().unwrap().metadata.etag
}

/// As at Azure, where the deleted secret shows after a minute; ten, as a busy machine may need some of that.
fn slow() -> Emulator {
    Emulator { transition: Duration::from_mins(10), ..Emulator::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_waits_for_the_deletion() {
    let vault = FastVault::start(slow()).await;
    let store = vault.store();
    create(&store).await.unwrap();
    assert!(store.delete(&secret_id(), &etag(&store).await).await.unwrap());
    let error = create(&store).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PendingDeletion, "the purge takes its time too: {error}");
    vault.server.advance_clock(Duration::from_mins(20));
    create(&store).await.unwrap();
}

#[rstest]
#[case::deleted(0)]
#[case::being_deleted(1)]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_deletion_has_left_is_purged_by_the_next_one(#[case] minutes: u64) {
    let transition = Duration::from_mins(minutes);
    let vault = FastVault::start(Emulator { transition, ..Emulator::default() }).await;
    let store = vault.store();
    create(&store).await.unwrap();
    vault.inject("deleteSecret:commit-then-timeout");
    let error = store.delete(&secret_id(), &etag(&store).await).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
    assert!(!store.delete(&secret_id(), "whatever").await.unwrap());
    vault.server.advance_clock(Duration::from_mins(2));
    create(&store).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_purge_the_name_stays_taken() {
    let vault = FastVault::new().await;
    let store = AzureStore::connect(&AzureSettings { purge: false, ..vault.settings() }).unwrap();
    create(&store).await.unwrap();
    assert!(store.delete(&secret_id(), &etag(&store).await).await.unwrap());
    assert_eq!(store.find(&secret_id()).await.unwrap(), None);
    assert!(!store.delete(&secret_id(), "whatever").await.unwrap());
    let error = create(&store).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PendingDeletion, "{error}");
    assert!(error.hint().unwrap().contains("az keyvault secret recover"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_that_is_refused_says_why() {
    let vault = FastVault::start(Emulator { purge_protection: true, ..Emulator::default() }).await;
    let store = vault.store();
    create(&store).await.unwrap();
    let error = store.delete(&secret_id(), &etag(&store).await).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied, "{error}");
    assert!(error.hint().unwrap().contains("purge protection"), "{error:?}");
    assert_eq!(store.find(&secret_id()).await.unwrap(), None);
}
