//! Rotation of the keys that encrypt pull secrets.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::rig::{Answer, Database, Kind, Rig, cluster, file, merged, path_of, refused_start, unique};

rules! {
    shared: ;
    own: a_key_is_rotated_out a_server_does_not_start_without_a_used_key;
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
async fn in_use(rig: &Rig) -> Vec<(String, i64)> {
    let store = rig.database.store();
    let used = hyperfleet_api::rekey::keys_in_use(&store).await.unwrap();
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
