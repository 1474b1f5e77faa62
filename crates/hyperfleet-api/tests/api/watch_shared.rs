//! Many readers of the change stream share what is read from the database.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::rig::stream::{Stream, short};
use crate::rig::{Kind, Rig, cluster, merged};
use crate::tenancy::SETTINGS;

rules! {
    shared: ;
    own: readers_add_no_reads memory_and_database_deliver_the_same readers_of_all_positions_end_with_their_epoch
        a_search_evaluates_what_others_evaluate;
}

const READERS: usize = 50;
const CHANGES: usize = 20;

/// The number of statements that have read changes or the newest version: of the readers' own, and of the follower.
async fn reads(rig: &Rig) -> (u64, u64) {
    let metrics = rig.client.get(format!("http://{}/metrics", rig.metrics)).send().await.unwrap().text().await.unwrap();
    let of = |table: &str| {
        let name = "hyperfleet_db_query_duration_seconds_count{";
        let is_it = |line: &&str| line.starts_with(name) && line.contains("\"select\"") && line.contains(table);
        metrics.lines().find(is_it).map_or(0, |line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
    };
    (of("table=\"changes\""), of("table=\"change_counter\""))
}

async fn readers_add_no_reads(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    rig.create("/channels", json!({ "kind": "Channel", "name": "one", "spec": {}, "id": "one" })).await;
    let mut streams = Vec::new();
    for number in 0..READERS {
        let search = [("search", "name = 'one'")];
        let mut stream = Stream::open(&rig, "/channels", if number % 5 == 0 { &search } else { &[] }).await;
        assert_eq!(stream.until_bookmark().await, ["ADDED one@1"]);
        streams.push(stream);
    }
    let before = reads(&rig).await;
    for n in 0..CHANGES {
        rig.ask("PATCH /channels/one", json!({ "spec": { "n": n } })).await.is(200);
        let expected = format!("MODIFIED one@{}", n + 2);
        for stream in &mut streams {
            assert_eq!(stream.next_short().await, expected);
        }
    }
    let after = reads(&rig).await;
    assert_eq!(after.0 - before.0, 0, "all readers are served from memory");
    let most = u64::try_from(READERS * CHANGES / 2).unwrap();
    assert!(after.1 - before.1 < most, "{} reads for {CHANGES} changes", after.1 - before.1);
}

/// All events of a stream up to the deletion of `last`.
async fn events(stream: &mut Stream) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event = stream.next().await.unwrap();
        let is_last = event["type"] == "DELETED" && event["object"]["name"] == "last";
        if event["type"] != "BOOKMARK" {
            events.push(event);
        }
        if is_last {
            return events;
        }
    }
}

/// Creates a cluster and a channel of a tenant, changes the channel, and deletes some.
async fn change(rig: &Rig, tenant: &str, step: u32) {
    let ask = async |line: &str, body: Value| rig.send(line, &[("x-hyperfleet-org", tenant)], body.to_string()).await;
    let body = merged(cluster(&format!("c-{step}")), json!({ "labels": { "l": (step % 2).to_string() } }));
    ask("POST /clusters", body.clone()).await.is(201);
    let created = ask("POST /channels", merged(body, json!({ "kind": "Channel" }))).await.is(201).body();
    let path = format!("/channels/{}", created["id"].as_str().unwrap());
    let label = json!({ "labels": { "l": (step / 2 % 2).to_string() } });
    ask(&format!("PATCH {path}"), label).await.is(200);
    if step.is_multiple_of(3) {
        ask(&format!("DELETE {path}"), json!({})).await.is(202);
    }
}

/// Creates the last cluster and the last channel of a tenant, and deletes them.
async fn create_and_delete_last(rig: &Rig, tenant: &str) {
    let ask = async |line: &str, body: String| rig.send(line, &[("x-hyperfleet-org", tenant)], body).await;
    for (kind, plural) in [("Cluster", "clusters"), ("Channel", "channels")] {
        let body = merged(cluster("last"), json!({ "kind": kind, "labels": { "l": "1" } })).to_string();
        let created = ask(&format!("POST /{plural}"), body).await.is(201).body();
        let path = format!("/{plural}/{}", created["id"].as_str().unwrap());
        ask(&format!("DELETE {path}"), String::new()).await.is(202);
        if kind == "Cluster" {
            let reason = json!({ "reason": "test" }).to_string();
            ask(&format!("POST {path}/force-delete"), reason).await.is(204);
        }
    }
}

async fn memory_and_database_deliver_the_same(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    let tenants = ["acme", "Acme", "beta"];
    let selections =
        [("/channels", ""), ("/channels", "labels.l = '1'"), ("/clusters", ""), ("/clusters", "name = 'last'")];
    let mut open = Vec::new();
    for tenant in tenants {
        for (path, search) in selections {
            let headers = [("x-hyperfleet-org", tenant)];
            let mut stream = Stream::open_as(&rig, &headers, path, &[("search", search)]).await;
            assert!(stream.until_bookmark().await.is_empty());
            let begin = stream.version.clone();
            open.push((tenant, path, search, begin, stream));
        }
    }
    for step in 0..6 {
        for tenant in tenants {
            change(&rig, tenant, step).await;
        }
    }
    for tenant in tenants {
        create_and_delete_last(&rig, tenant).await;
    }
    let mut shared = Vec::new();
    for (tenant, path, search, begin, mut stream) in open {
        shared.push((tenant, path, search, begin, events(&mut stream).await));
    }
    // A server that has just started has nothing in memory.
    let database = Arc::clone(&rig.database);
    rig.stopped().await;
    let rig = Rig::start_on(database, SETTINGS).await;
    for (tenant, path, search, begin, shared) in shared {
        let parameters = [("search", search), ("resource_version", begin.as_str())];
        let mut stream = Stream::open_as(&rig, &[("x-hyperfleet-org", tenant)], path, &parameters).await;
        let own = events(&mut stream).await;
        let names: Vec<String> = shared.iter().map(short).collect();
        assert!(!names.is_empty() && shared.iter().all(|event| event["object"]["tenancy"]["org"] == tenant));
        if search.is_empty() {
            assert_eq!(shared, own, "{tenant} {path}");
        } else {
            // A client that resumes also gets deletions of what it never had.
            let kept = own.into_iter().filter(|event| event["type"] != "DELETED" || shared.contains(event));
            assert_eq!(shared, kept.collect::<Vec<_>>(), "{tenant} {path} {search}");
        }
    }
    assert!(reads(&rig).await.0 > 0);
}

async fn readers_of_all_positions_end_with_their_epoch(kind: Kind) {
    let rig = Rig::start(kind, "changes: { bookmark_interval: 100ms }").await;
    let mut first = Stream::open(&rig, "/channels", &[]).await;
    first.until_bookmark().await;
    let mut versions = vec![first.version.clone()];
    for name in ["aaa", "bbb", "ccc"] {
        rig.create("/channels", json!({ "kind": "Channel", "name": name, "spec": {} })).await;
        first.next_short().await;
        versions.push(first.version.clone());
    }
    let mut streams = vec![first];
    for version in &versions {
        for search in ["", "name = 'ccc'"] {
            let parameters = [("resource_version", version.as_str()), ("search", search)];
            streams.push(Stream::open(&rig, "/channels", &parameters).await);
        }
    }
    // Each is at the end, whatever it began with.
    for stream in &mut streams {
        stream.until_bookmark().await;
    }
    let store = rig.database.store();
    store.begin_epoch("other").await.unwrap();
    store.end_restore().await.unwrap();
    store.database().close().await;
    for mut stream in streams {
        let event = loop {
            let event = stream.next().await.unwrap();
            if event["type"] != "BOOKMARK" {
                break event;
            }
        };
        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!("HYPERFLEET-CNF-004")));
        assert!(stream.next().await.is_none());
    }
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    assert_eq!(stream.until_bookmark().await.len(), 3);
    assert!(stream.version.starts_with("other-"), "{}", stream.version);
}

/// More streams with a search than are evaluated at the same time: each gets what its own search selects.
async fn a_search_evaluates_what_others_evaluate(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let mut streams = Vec::new();
    for number in 0..40 {
        let search = format!("labels.shard = '{}'", number % 4);
        let mut stream = Stream::open(&rig, "/channels", &[("search", &search)]).await;
        assert!(stream.until_bookmark().await.is_empty());
        streams.push(stream);
    }
    let channel = |shard: usize| json!({ "kind": "Channel", "name": "one", "spec": {}, "id": "one", "labels": { "shard": shard.to_string() } });
    rig.create("/channels", channel(0)).await;
    for turn in 1..9 {
        rig.ask("PATCH /channels/one", json!({ "labels": { "shard": (turn % 4).to_string() } })).await.is(200);
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        for turn in (0..8).filter(|turn| turn % 4 == number % 4) {
            assert_eq!(stream.next_short().await, format!("ADDED one@{}", turn + 1));
            assert_eq!(stream.next_short().await, format!("DELETED one@{}", turn + 2));
        }
    }
}
