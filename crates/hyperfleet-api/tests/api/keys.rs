//! Rotation of the keys that encrypt pull secrets.

use std::path::Path;
use std::sync::Arc;

use hyperfleet_api::decide::change::RequestInfo;
use hyperfleet_api::entity::Registry;
use hyperfleet_api::rekey;
use hyperfleet_api::service::Service;
use hyperfleet_api::spec_schema::SpecSchemas;
use serde_json::{Value, json};

use crate::rig::{Answer, Database, Kind, Rig, cluster, file, merged, path_of, refused_start, unique, until};

rules! {
    shared: ;
    own: a_key_is_rotated_out a_server_does_not_start_without_a_used_key content_of_a_lost_key_is_given_up
        keys_are_replaced_without_a_restart the_digest_key_is_replaced_without_a_restart;
}

/// Settings with these keys; the first encrypts.
fn keys(folder: &Path, ids: &[&str]) -> String {
    let items = ids.iter().map(|id| {
        let byte = id.bytes().fold(0_u8, u8::wrapping_add);
        format!("{{ id: {id}, file: '{}' }}", file(folder, id, [byte; 32]).display())
    });
    let token = file(folder, "token", "reader-token\n");
    let (items, token) = (items.collect::<Vec<_>>().join(", "), token.display());
    format!("pull_secret:\n  keys: [{items}]\n  reader_token_file: '{token}'\n")
}

fn document() -> Value {
    json!({ "auths": { "quay.io": { "auth": "dXNlcjpwYXNzd29yZA==" } } })
}

async fn create(rig: &Rig) -> String {
    let spec = json!({ "spec": { "pullSecret": { "data": document() } } });
    path_of(&rig.ask("POST /clusters", merged(cluster(&unique("c")), spec)).await.is(201).body())
}

async fn content(rig: &Rig, path: &str) -> Answer {
    rig.send(&format!("GET {path}?include=pullSecret"), &[("authorization", "Bearer reader-token")], "").await
}

/// The keys of the stored pull secrets, with their numbers.
async fn in_use(rig: &Rig) -> Vec<(String, u64)> {
    let store = rig.database.store();
    let used = rekey::keys_in_use(&store).await.unwrap();
    store.database().close().await;
    used.into_iter().collect()
}

async fn a_key_is_rotated_out(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::create(kind).await);
    let old = Rig::start_on(Arc::clone(&database), &keys(folder.path(), &["old"])).await;
    let mut paths = Vec::new();
    for _ in 0..5 {
        paths.push(create(&old).await);
    }
    let before = old.get(&paths[0]).await.body();
    assert_eq!(in_use(&old).await, [("old".to_owned(), 5)]);
    old.stopped().await;
    // Both keys: the server encrypts anew by itself.
    let both = Rig::start_on(Arc::clone(&database), &keys(folder.path(), &["new", "old"])).await;
    while in_use(&both).await != [("new".to_owned(), 5)] {
        tokio::task::yield_now().await;
    }
    assert_eq!(both.get(&paths[0]).await.body(), before, "readers see no change");
    both.stopped().await;
    // The old key is not needed any more.
    let new = Rig::start_on(database, &keys(folder.path(), &["new"])).await;
    for path in paths {
        assert_eq!(content(&new, &path).await.is(200).body()["spec"]["pullSecret"]["data"], document());
    }
}

async fn a_server_does_not_start_without_a_used_key(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::create(kind).await);
    let old = Rig::start_on(Arc::clone(&database), &keys(folder.path(), &["old"])).await;
    create(&old).await;
    old.stopped().await;
    let fault = refused_start(&database, &keys(folder.path(), &["new"])).await;
    assert!(fault.contains("`old` (1 resources)") && fault.contains("pull_secret.keys"), "{fault}");
    let again = Rig::start_on(database, &keys(folder.path(), &["old"])).await;
    assert_eq!(again.get("/clusters").await.is(200).body()["total"], 1);
}

/// Otherwise no server would ever start again.
async fn content_of_a_lost_key_is_given_up(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::create(kind).await);
    let first = Rig::start_on(Arc::clone(&database), &keys(folder.path(), &["lost"])).await;
    let (lost, other) = (create(&first).await, path_of(&first.cluster(json!({})).await));
    first.stopped().await;
    let second = Rig::start_on(Arc::clone(&database), &keys(folder.path(), &["kept", "lost"])).await;
    let kept = create(&second).await;
    // What is encrypted with the lost key stays so: it must not be touched meanwhile.
    while in_use(&second).await != [("kept".to_owned(), 2)] {
        tokio::task::yield_now().await;
    }
    second.stopped().await;
    let again = Rig::start_on(Arc::clone(&database), &keys(folder.path(), &["lost", "kept"])).await;
    let lost_too = create(&again).await;
    while in_use(&again).await != [("lost".to_owned(), 3)] {
        tokio::task::yield_now().await;
    }
    again.stopped().await;
    let fault = refused_start(&database, &keys(folder.path(), &["kept"])).await;
    assert!(fault.contains("`lost` (3 resources)") && fault.contains("--remove-lost-key"), "{fault}");
    let store = database.store();
    let service = Service::new(store.clone(), Registry::standard(), SpecSchemas::default(), None).unwrap();
    let operator = RequestInfo::of_operator(jiff::Timestamp::now());
    let removed = |key: &'static str| rekey::remove_lost(&service, key, &operator);
    assert_eq!(removed("other").await.unwrap(), Vec::<String>::new());
    assert_eq!(removed("lost").await.unwrap().len(), 3);
    assert_eq!(removed("lost").await.unwrap(), Vec::<String>::new());
    store.database().close().await;
    let rig = Rig::start_on(database, &keys(folder.path(), &["kept"])).await;
    for path in [&lost, &lost_too, &kept] {
        let found = content(&rig, path).await.is(200).body();
        assert_eq!((&found["spec"]["pullSecret"], &found["generation"]), (&Value::Null, &json!(2)));
        let reconciled = &found["status"]["conditions"][0];
        assert_eq!((&reconciled["status"], &reconciled["observed_generation"]), (&json!("False"), &json!(2)));
        let again = json!({ "spec": { "pullSecret": { "data": document() } } });
        rig.ask(&format!("PATCH {path}"), again).await.is(200);
        assert_eq!(content(&rig, path).await.is(200).body()["spec"]["pullSecret"]["data"], document());
    }
    assert_eq!(rig.get(&other).await.is(200).body()["generation"], 1);
}

async fn keys_are_replaced_without_a_restart(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &keys(folder.path(), &["old"])).await;
    let path = create(&rig).await;
    rig.reconfigure(&keys(folder.path(), &["new", "old"]));
    until("the new key", async || in_use(&rig).await == [("new".to_owned(), 1)]).await;
    rig.reconfigure(&keys(folder.path(), &["new"]));
    // A key that is still needed cannot be withdrawn.
    rig.reconfigure(&keys(folder.path(), &["other"]));
    until("the refusal", async || rig.is_stale().await).await;
    assert_eq!(content(&rig, &path).await.is(200).body()["spec"]["pullSecret"]["data"], document());
    create(&rig).await;
    assert_eq!(in_use(&rig).await, [("new".to_owned(), 2)]);
    rig.reconfigure(&keys(folder.path(), &["other", "new"]));
    until("the other key", async || in_use(&rig).await == [("other".to_owned(), 2)]).await;
    assert!(!rig.is_stale().await);
    assert_eq!(content(&rig, &path).await.is(200).body()["spec"]["pullSecret"]["data"], document());
}

/// The digest of the same content, written by a PATCH.
async fn digest_of_another_write(rig: &Rig, path: &str) -> Value {
    let spec = json!({ "spec": { "note": unique("n"), "pullSecret": { "data": document() } } });
    rig.ask(&format!("PATCH {path}"), spec).await.is(200).body()["spec"]["pullSecret"]["data"]["digest"].take()
}

async fn the_digest_key_is_replaced_without_a_restart(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let path_of_key = folder.path().join("digest");
    let without = keys(folder.path(), &["one"]);
    let rig = Rig::start(kind, &without).await;
    let path = create(&rig).await;
    let derived = digest_of_another_write(&rig, &path).await;
    // The configuration comes first, and its file later, as kubelet brings them.
    rig.reconfigure(&format!("{without}  digest_key_file: '{}'\n", path_of_key.display()));
    until("the refusal", async || rig.is_stale().await).await;
    assert_eq!(digest_of_another_write(&rig, &path).await, derived);
    let mut before = derived;
    for content in [[1; 32], [2; 32]] {
        file(folder.path(), "digest", content);
        until("another digest", async || digest_of_another_write(&rig, &path).await != before).await;
        assert!(!rig.is_stale().await);
        before = digest_of_another_write(&rig, &path).await;
    }
    // Not a key: the last good one stays.
    file(folder.path(), "digest", "short");
    until("the refusal", async || rig.is_stale().await).await;
    assert_eq!(digest_of_another_write(&rig, &path).await, before);
}
