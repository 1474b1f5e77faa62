//! The version that readers get, and the versions that people add.

use std::collections::BTreeSet;

use secrecy::ExposeSecret as _;
use secret_store::{
    ErrorKind, NewVersion, Permission, Permissions, Replica, Replication, SecretStore as _, Version, VersionState,
};
use serde_json::{Value, json};

use super::moto::{Moto, id};
use crate::rig::{bytes, new_secret, number, secret_id};

async fn add(store: &secret_store::AwsStore, version: u64, content: &str) -> Result<(), ErrorKind> {
    let content = bytes(content.as_bytes());
    let new = NewVersion::without_record(number(version), &content);
    store.add_version(&secret_id(), &new).await.map(drop).map_err(|error| error.kind)
}

async fn create(moto: &Moto) -> secret_store::AwsStore {
    let store = moto.store().await;
    store.create(&secret_id(), &new_secret(Replication::Automatic { kms_key: None })).await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_that_readers_get_is_not_destroyed() {
    let Some(moto) = Moto::new() else { return };
    let store = create(&moto).await;
    add(&store, 1, "a").await.unwrap();
    let error = store.destroy_version(&secret_id(), number(1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    assert!(error.hint().unwrap().contains("add another version"));
    add(&store, 2, "b").await.unwrap();
    store.destroy_version(&secret_id(), number(1)).await.unwrap();
    store.destroy_version(&secret_id(), number(1)).await.unwrap();
    assert!(matches!(store.read_version(&secret_id(), number(1)).await.unwrap(), Version::Destroyed));
    assert_eq!(moto.labels(&secret_id()).await[id(1)], json!([]), "AWSPREVIOUS is gone too");
    assert_eq!(add(&store, 1, "c").await, Err(ErrorKind::Changed), "its number is not given again");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_versions_make_room() {
    let Some(moto) = Moto::new() else { return };
    let store = create(&moto).await;
    for version in 1..=30 {
        add(&store, version, &format!("content-{version}")).await.unwrap();
    }
    let versions = store.list_versions(&secret_id()).await.unwrap();
    let live =
        versions.iter().filter(|version| version.state == VersionState::Live).map(|version| version.number.get());
    let live: Vec<_> = live.collect();
    assert_eq!(live, [30, 29, 28, 27, 26, 25, 24, 23]);
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("content-30"));
}

/// As at other stores: a person's version counts as the next one, and the next addition is on top of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_persons_version_counts_as_the_next_one() {
    let Some(moto) = Moto::new() else { return };
    let store = create(&moto).await;
    let put = async |content: &str| {
        let token = uuid::Uuid::now_v7().to_string();
        moto.admin(&secret_id(), "PutSecretValue", json!({"SecretString": content, "ClientRequestToken": token})).await
    };
    put("theirs").await;
    for (expected, content) in [(1, "theirs"), (3, "theirs again")] {
        let newest = store.newest_version(&secret_id()).await.unwrap().unwrap();
        assert_eq!((newest.number.get(), newest.state), (expected, VersionState::Live));
        let Version::Live(live) = store.read_version(&secret_id(), number(expected)).await.unwrap() else { panic!() };
        assert_eq!(live.content.expose_secret(), content.as_bytes());
        assert!(matches!(store.read_version(&secret_id(), number(expected + 1)).await.unwrap(), Version::Absent));
        assert_eq!(add(&store, expected, "ours").await, Err(ErrorKind::Changed), "its number is taken");
        add(&store, expected + 1, "ours").await.unwrap();
        assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("ours"));
        assert!(matches!(store.read_version(&secret_id(), number(expected)).await.unwrap(), Version::Destroyed));
        put("theirs again").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_were_led_back_are_led_on_by_the_next_addition() {
    let Some(moto) = Moto::new() else { return };
    let store = create(&moto).await;
    add(&store, 1, "a").await.unwrap();
    add(&store, 2, "b").await.unwrap();
    moto.lead_readers_back_from(&secret_id(), 2).await;
    assert!(matches!(store.read_version(&secret_id(), number(2)).await.unwrap(), Version::Disabled));
    add(&store, 3, "c").await.unwrap();
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("c"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_permission_is_known_without_trying() {
    let Some(moto) = Moto::new() else { return };
    let wanted = BTreeSet::from([Permission::Find, Permission::AddVersion]);
    let held = moto.store().await.permissions(&secret_id(), &wanted).await.unwrap();
    assert_eq!(held, Permissions { missing: BTreeSet::new(), unknown: wanted });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_created_with_its_key_and_its_replicas() {
    let Some(moto) = Moto::new() else { return };
    let store = moto.store().await;
    let replica = |location: &str, kms_key: Option<&str>| Replica {
        location: location.parse().unwrap(),
        kms_key: kms_key.map(str::to_owned),
    };
    let elsewhere = Replication::Locations(vec![replica("us-east-1", None)]);
    let error = store.create(&secret_id(), &new_secret(elsewhere)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.to_string().contains("eu-central-1"), "{error}");

    let places = vec![replica("us-east-1", Some("alias/there")), replica("eu-central-1", Some("alias/here"))];
    store.create(&secret_id(), &new_secret(Replication::Locations(places))).await.unwrap();
    let described: Value = moto.admin(&secret_id(), "DescribeSecret", json!({})).await;
    assert_eq!(described["KmsKeyId"], "alias/here");
    let replicas = described["ReplicationStatus"].as_array().unwrap();
    assert_eq!((replicas.len(), &replicas[0]["Region"]), (1, &json!("us-east-1")), "{replicas:?}");
    // A secret with replicas is not deleted before them.
    let etag = store.find(&secret_id()).await.unwrap().unwrap().metadata.etag;
    assert!(store.delete(&secret_id(), &etag).await.unwrap());
    assert_eq!(store.find(&secret_id()).await.unwrap(), None);
}
