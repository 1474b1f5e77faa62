//! The restore of the database from a backup: neither positions of the change stream nor generations are mistaken.

use std::sync::Arc;

use hyperfleet_api::entity::Registry;
use hyperfleet_api::restore::{Restored, UNFINISHED, restored};
use hyperfleet_api::service::Service;
use hyperfleet_api::spec_schema::SpecSchemas;
use serde_json::{Value, json};

use crate::rig::stream::{Stream, number};
use crate::rig::{DONE, Database, FINALIZED, Kind, Rig, cluster, path_of, refused_start, report};

rules! {
    shared: ;
    own: a_restored_database_is_ahead_of_everything_before_it a_deletion_is_completed_after_a_restore
        positions_of_before_the_restore_are_too_old a_running_stream_ends_with_its_epoch an_unfinished_restore_is_refused;
}

/// All adapters that a cluster needs.
const ADAPTERS: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];

async fn act(database: &Database) -> Restored {
    let store = database.store();
    let service = Service::new(store.clone(), Registry::standard(), SpecSchemas::default(), None).unwrap();
    let done = restored(&service, &format!("{:08x}", rand::random::<u32>()), jiff::Timestamp::now()).await.unwrap();
    store.database().close().await;
    done
}

async fn reported(rig: &Rig, path: &str, generation: i64) {
    for adapter in ADAPTERS {
        rig.report(path, report(adapter, generation, DONE)).await.is(201);
    }
}

fn reconciled(resource: &Value) -> &Value {
    &resource["status"]["conditions"][0]["status"]
}

/// A cluster at generation 2 in the backup, which is at generation 4 in the database that is lost.
async fn backed_up(kind: Kind) -> (Arc<Database>, String, Database) {
    let database = Arc::new(Database::create(kind).await);
    let rig = Rig::start_on(Arc::clone(&database), "").await;
    let path = path_of(&rig.create("/clusters", cluster("one")).await);
    rig.ask(&format!("PATCH {path}"), json!({ "spec": { "region": "two" } })).await.is(200);
    reported(&rig, &path, 2).await;
    assert_eq!(reconciled(&rig.get(&path).await.body()), "True");
    rig.stopped().await;
    let backup = database.back_up().await;
    (database, path, backup)
}

async fn a_restored_database_is_ahead_of_everything_before_it(kind: Kind) {
    let (database, path, backup) = backed_up(kind).await;
    let rig = Rig::start_on(Arc::clone(&database), "").await;
    for (region, generation) in [("three", 3), ("four", 4)] {
        rig.ask(&format!("PATCH {path}"), json!({ "spec": { "region": region } })).await.is(200);
        reported(&rig, &path, generation).await;
    }
    rig.create("/clusters", cluster("younger")).await;
    rig.stopped().await;
    database.restore(&backup).await;
    assert_eq!(act(&database).await.raised, 1);
    let rig = Rig::start_on(database, "").await;
    let restored = rig.get(&path).await.is(200).body();
    assert_eq!((&restored["generation"], &restored["spec"]["region"]), (&json!(1_000_002), &json!("two")));
    assert_eq!(reconciled(&restored), "False", "no adapter has reported the restored state");
    // A report that was under way when the database was lost counts for the generation that it names, and for no other.
    rig.report(&path, report("dns", 4, DONE)).await.is(201);
    assert_eq!(reconciled(&rig.get(&path).await.body()), "False");
    reported(&rig, &path, 1_000_002).await;
    assert_eq!(reconciled(&rig.get(&path).await.body()), "True");
    let patched = rig.ask(&format!("PATCH {path}"), json!({ "spec": { "region": "five" } })).await.is(200).body();
    assert_eq!(patched["generation"], 1_000_003);
}

async fn a_deletion_is_completed_after_a_restore(kind: Kind) {
    let database = Arc::new(Database::create(kind).await);
    let rig = Rig::start_on(Arc::clone(&database), "").await;
    let path = path_of(&rig.create("/clusters", cluster("one")).await);
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    rig.report(&path, report("dns", 2, FINALIZED)).await.is(201);
    rig.stopped().await;
    act(&database).await;
    let rig = Rig::start_on(database, "").await;
    for adapter in ADAPTERS {
        rig.report(&path, report(adapter, 2, FINALIZED)).await;
    }
    rig.get(&path).await.is(200);
    for adapter in ADAPTERS {
        rig.report(&path, report(adapter, 1_000_002, FINALIZED)).await.is(201);
    }
    rig.get(&path).await.is(404);
}

async fn positions_of_before_the_restore_are_too_old(kind: Kind) {
    let (database, path, backup) = backed_up(kind).await;
    let rig = Rig::start_on(Arc::clone(&database), "").await;
    let mut stream = Stream::open(&rig, "/clusters", &[]).await;
    stream.until_bookmark().await;
    rig.ask(&format!("PATCH {path}"), json!({ "spec": { "region": "three" } })).await.is(200);
    stream.next_short().await;
    let lost = stream.version.clone();
    drop(stream);
    rig.stopped().await;
    database.restore(&backup).await;
    let begins = act(&database).await.begins;
    let rig = Rig::start_on(database, "").await;
    // The restored database has given as many versions again, for other changes.
    rig.ask(&format!("PATCH {path}"), json!({ "spec": { "region": "other" } })).await.is(200);
    assert!(number(&lost) <= begins.number + 2);
    let resumed =
        async |version: &str| rig.list("/clusters", &[("watch", "true"), ("resource_version", version)]).await;
    for version in [lost.as_str(), &number(&lost).to_string(), "1"] {
        let problem = resumed(version).await.is(410).body();
        assert_eq!(problem["code"], "HYPERFLEET-CNF-004");
        assert!(problem["detail"].as_str().unwrap().contains("restored"), "{problem}");
    }
    // From the restore on nothing is missing.
    let mut stream = Stream::open(&rig, "/clusters", &[("resource_version", &begins.to_string())]).await;
    assert_eq!(stream.next_short().await, "MODIFIED one@1000002");
    assert_eq!(stream.next_short().await, "MODIFIED one@1000003");
}

async fn a_running_stream_ends_with_its_epoch(kind: Kind) {
    let rig = Rig::start(kind, "changes: { bookmark_interval: 100ms }").await;
    rig.create("/clusters", cluster("one")).await;
    let mut stream = Stream::open(&rig, "/clusters", &[]).await;
    stream.until_bookmark().await;
    act(&rig.database).await;
    let event = loop {
        let event = stream.next().await.unwrap();
        if event["type"] != "BOOKMARK" {
            break event;
        }
    };
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!("HYPERFLEET-CNF-004")));
    assert!(stream.next().await.is_none());
}

async fn an_unfinished_restore_is_refused(kind: Kind) {
    let (database, path, _backup) = backed_up(kind).await;
    let store = database.store();
    store.begin_epoch("0badcafe").await.unwrap();
    store.database().close().await;
    assert_eq!(refused_start(&database, "").await, UNFINISHED);
    act(&database).await;
    let rig = Rig::start_on(database, "").await;
    assert_eq!(rig.get(&path).await.is(200).body()["generation"], 1_000_002);
}
