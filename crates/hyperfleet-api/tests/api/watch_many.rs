//! Concurrent writers on two servers with one database: nothing is lost, and streams send each event once, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::rig::stream::{Stream, number};
use crate::rig::{DONE, Kind, Rig, report};

rules! {
    shared: ;
    own: events_come_once_and_in_order concurrent_writers_lose_nothing a_name_is_assigned_once;
}

const WRITERS: usize = 8;
const CHANGES: usize = 15;

/// Two servers on one PostgreSQL; one on SQLite, where a file has one server.
async fn servers(kind: Kind) -> Vec<Rig> {
    let first = Rig::start(kind, "").await;
    if kind == Kind::Sqlite {
        return vec![first];
    }
    let second = Rig::start_on(Arc::clone(&first.database), "").await;
    vec![first, second]
}

async fn events_come_once_and_in_order(kind: Kind) {
    let rigs = servers(kind).await;
    let mut streams = Vec::new();
    for rig in &rigs {
        let mut stream = Stream::open(rig, "/channels", &[]).await;
        // From here on every change is an event: the initial state, read by now, is empty.
        stream.until_bookmark().await;
        streams.push(stream);
    }
    let writers = (0..WRITERS).map(|writer| {
        let rig = &rigs[writer % rigs.len()];
        async move {
            let body =
                json!({ "kind": "Channel", "name": format!("w{writer}"), "spec": {}, "id": format!("w{writer}") });
            rig.create("/channels", body).await;
            for n in 0..CHANGES {
                rig.ask(&format!("PATCH /channels/w{writer}"), json!({ "spec": { "n": n } })).await.is(200);
            }
            rig.ask(&format!("DELETE /channels/w{writer}"), None).await.is(202);
        }
    });
    futures_util::future::join_all(writers).await;
    let mut all = Vec::new();
    for stream in &mut streams {
        let (mut received, mut last) = (BTreeMap::<String, Vec<String>>::new(), 0);
        for _ in 0..WRITERS * (CHANGES + 2) {
            let event = loop {
                let event = stream.next().await.unwrap();
                if event["type"] != "BOOKMARK" {
                    break event;
                }
            };
            let version = number(event["resource_version"].as_str().unwrap());
            assert!(version > last, "{version} after {last}");
            last = version;
            let of = format!("{} {}", event["type"].as_str().unwrap(), event["object"]["generation"]);
            received.entry(event["object"]["id"].as_str().unwrap().to_owned()).or_default().push(of);
        }
        all.push(received);
    }
    let mut expected = vec!["ADDED 1".to_owned()];
    expected.extend((0..CHANGES).map(|n| format!("MODIFIED {}", n + 2)));
    expected.push(format!("DELETED {}", CHANGES + 2));
    for received in all {
        assert_eq!(received.len(), WRITERS);
        for (id, events) in received {
            assert_eq!(events, expected, "{id}");
        }
    }
}

async fn concurrent_writers_lose_nothing(kind: Kind) {
    let rigs = servers(kind).await;
    rigs[0].create("/clusters", json!({ "kind": "Cluster", "name": "one", "spec": {}, "id": "one" })).await;
    let adapters = ["validation", "dns", "pullsecret", "hypershift"];
    let writers = (0..WRITERS).map(|writer| {
        let rig = &rigs[writer % rigs.len()];
        async move {
            for n in 0..CHANGES {
                if writer < adapters.len() {
                    let body = report(adapters[writer], 1, DONE);
                    let status = rig.report("/clusters/one", body).await.status;
                    assert!([201, 204].contains(&status), "{status}");
                } else {
                    rig.ask("PATCH /clusters/one", json!({ "spec": { "writer": writer, "n": n } })).await.is(200);
                }
            }
        }
    });
    futures_util::future::join_all(writers).await;
    let one = rigs[0].get("/clusters/one").await.is(200).body();
    let changes = (WRITERS - adapters.len()) * CHANGES;
    assert_eq!(one["generation"], changes + 1, "every change counts once");
    assert_eq!(one["status"]["adapters"].as_object().unwrap().len(), adapters.len());
    assert_eq!(one["status"]["conditions"][0]["observed_generation"], one["generation"]);
    assert_eq!(one["status"]["conditions"][0]["status"], "False");
    // Of several writers with the same `If-Match`, one succeeds.
    let generation = format!("\"{}\"", one["generation"]);
    let writers = (0..WRITERS).map(|writer| {
        let (rig, generation) = (&rigs[writer % rigs.len()], generation.clone());
        async move {
            let body = json!({ "spec": { "winner": writer } }).to_string();
            rig.send("PATCH /clusters/one", &[("if-match", &generation)], body).await.status
        }
    });
    let mut statuses = futures_util::future::join_all(writers).await;
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (200, [412; WRITERS - 1].as_slice()));
}

async fn a_name_is_assigned_once(kind: Kind) {
    let rigs = servers(kind).await;
    let writers = (0..WRITERS).map(|writer| {
        let rig = &rigs[writer % rigs.len()];
        async move { rig.ask("POST /clusters", json!({ "kind": "Cluster", "name": "same", "spec": {} })).await.status }
    });
    let mut statuses = futures_util::future::join_all(writers).await;
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (201, [409; WRITERS - 1].as_slice()));
    // A parent that is deleted concurrently leaves no child behind.
    rigs[0].create("/clusters", json!({ "kind": "Cluster", "name": "parent", "spec": {}, "id": "parent" })).await;
    let last = &rigs[rigs.len() - 1];
    let pools = (0..WRITERS).map(|n| async move {
        let body = json!({ "kind": "NodePool", "name": format!("pool-{n}"), "spec": {} });
        last.ask("POST /clusters/parent/nodepools", body).await.status
    });
    let deletion = rigs[0].ask("DELETE /clusters/parent", None);
    let (statuses, deleted) = tokio::join!(futures_util::future::join_all(pools), deletion);
    deleted.is(202);
    assert!(statuses.iter().all(|status| [201, 409].contains(status)), "{statuses:?}");
    let living = last.list("/clusters/parent/nodepools", &[("search", "deleted_time is null")]).await.is(200).body();
    assert_eq!(living["total"], 0, "{living}");
}
