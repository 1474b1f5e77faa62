//! The change stream: the current state, then every change, resumed by a version.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::rig::stream::{Stream, number, short};
use crate::rig::{BASE, DONE, FINALIZED, Kind, Rig, path_of, report, unique};

rules! {
    shared: invalid_parameters;
    own: state_then_changes resuming searches_move_resources_in_and_out searches_after_resuming children_of_one_parent
        bookmarks_are_sent_without_changes too_old versions_of_the_future requests_without_effect_send_no_event ends_with_the_server
        a_resource_that_comes_back cascaded_deletions_are_sent;
}

const QUICK: &str = "changes: { bookmark_interval: 100ms }";

async fn channel(rig: &Rig, name: &str, labels: Value) -> String {
    path_of(&rig.create("/channels", json!({ "kind": "Channel", "name": name, "spec": {}, "labels": labels })).await)
}

async fn state_then_changes(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    for name in ["aaa", "bbb"] {
        rig.create("/clusters", json!({ "kind": "Cluster", "name": name, "spec": {}, "id": format!("id-{name}") }))
            .await;
    }
    channel(&rig, "other", json!({})).await;
    let mut stream = Stream::open(&rig, "/clusters", &[]).await;
    let mut state = stream.until_bookmark().await;
    state.sort();
    assert_eq!(state, ["ADDED aaa@1", "ADDED bbb@1"]);
    let begin = number(&stream.version);
    channel(&rig, "unheard", json!({})).await;
    rig.ask("PATCH /clusters/id-aaa", json!({ "labels": { "a": "b" } })).await.is(200);
    let event = stream.next_change().await;
    assert_eq!(short(&event), "MODIFIED aaa@2");
    assert_eq!(event["object"], rig.get("/clusters/id-aaa").await.is(200).body(), "as GET shows it");
    assert!(number(&stream.version) > begin);
    rig.report("/clusters/id-aaa", report("dns", 2, DONE)).await.is(201);
    let event = stream.next_change().await;
    assert_eq!(short(&event), "MODIFIED aaa@2");
    assert_eq!(event["object"]["status"]["adapters"]["dns"]["available"], "True");
    rig.create("/clusters", json!({ "kind": "Cluster", "name": "ccc", "spec": {} })).await;
    assert_eq!(stream.next_short().await, "ADDED ccc@1");
    rig.ask("DELETE /clusters/id-bbb", None).await.is(202);
    let event = stream.next_change().await;
    assert_eq!(short(&event), "MODIFIED bbb@2", "soft-deleted is still there");
    assert!(event["object"]["deleted_time"].is_string());
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        rig.report("/clusters/id-bbb", report(adapter, 2, FINALIZED)).await.is(201);
    }
    for _ in 0..3 {
        assert_eq!(stream.next_short().await, "MODIFIED bbb@2");
    }
    let event = stream.next_change().await;
    assert_eq!((short(&event), &event["object"]["id"]), ("DELETED bbb@2".to_owned(), &json!("id-bbb")));
}

async fn resuming(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let one = channel(&rig, "one", json!({})).await;
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    assert_eq!(stream.until_bookmark().await, ["ADDED one@1"]);
    let begin = stream.version.clone();
    drop(stream);
    let two = channel(&rig, "two", json!({})).await;
    rig.ask(&format!("PATCH {one}"), json!({ "spec": { "n": 1 } })).await.is(200);
    rig.ask(&format!("DELETE {two}"), None).await.is(202);
    let expected = ["ADDED two@1", "MODIFIED one@2", "DELETED two@2"];
    let mut stream = Stream::open(&rig, "/channels", &[("resource_version", &begin)]).await;
    let mut versions = Vec::new();
    for received in expected {
        assert_eq!(stream.next_short().await, received);
        versions.push(stream.version.clone());
    }
    // Resuming from each version returns exactly the later changes.
    for (skipped, version) in versions.iter().enumerate() {
        let mut stream = Stream::open(&rig, "/channels", &[("resource_version", version)]).await;
        for received in expected.iter().skip(skipped + 1) {
            assert_eq!(stream.next_short().await, *received);
        }
        rig.ask(&format!("PATCH {one}"), json!({ "spec": { "n": skipped + 2 } })).await.is(200);
        for n in 0..=skipped {
            assert_eq!(stream.next_short().await, format!("MODIFIED one@{}", n + 3));
        }
    }
}

async fn searches_move_resources_in_and_out(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let one = channel(&rig, "one", json!({ "shard": "1" })).await;
    channel(&rig, "two", json!({ "shard": "2" })).await;
    let mut stream = Stream::open(&rig, "/channels", &[("search", "labels.shard = '1'")]).await;
    assert_eq!(stream.until_bookmark().await, ["ADDED one@1"]);
    let patch = async |path: &str, shard: &str, n: i64| {
        rig.ask(&format!("PATCH {path}"), json!({ "labels": { "shard": shard }, "spec": { "n": n } })).await.is(200);
    };
    let three = channel(&rig, "three", json!({ "shard": "2" })).await;
    patch(&three, "2", 1).await;
    patch(&one, "1", 1).await;
    assert_eq!(stream.next_short().await, "MODIFIED one@2");
    patch(&three, "1", 2).await;
    assert_eq!(stream.next_short().await, "ADDED three@3");
    patch(&one, "2", 2).await;
    assert_eq!(stream.next_short().await, "DELETED one@3");
    patch(&one, "2", 3).await;
    patch(&one, "1", 4).await;
    assert_eq!(stream.next_short().await, "ADDED one@5");
    rig.ask(&format!("DELETE {three}"), None).await.is(202);
    assert_eq!(stream.next_short().await, "DELETED three@4");
}

async fn searches_after_resuming(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let one = channel(&rig, "one", json!({ "shard": "1" })).await;
    let search = ("search", "labels.shard = '1'");
    let mut stream = Stream::open(&rig, "/channels", &[search]).await;
    assert_eq!(stream.until_bookmark().await, ["ADDED one@1"]);
    let version = stream.version.clone();
    drop(stream);
    rig.ask(&format!("PATCH {one}"), json!({ "labels": { "shard": "2" } })).await.is(200);
    let mut stream = Stream::open(&rig, "/channels", &[search, ("resource_version", &version)]).await;
    assert_eq!(stream.next_short().await, "DELETED one@2", "a reader that held it must learn that it has left");
    rig.ask(&format!("PATCH {one}"), json!({ "labels": { "shard": "1" } })).await.is(200);
    let event = stream.next_short().await;
    assert_eq!(event, "ADDED one@3");
}

async fn children_of_one_parent(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let (mine, other) = (path_of(&rig.cluster(json!({})).await), path_of(&rig.cluster(json!({})).await));
    let pool = |name: &str| json!({ "kind": "NodePool", "name": name, "spec": {} });
    rig.create(&format!("{mine}/nodepools"), pool("aaa")).await;
    rig.create(&format!("{other}/nodepools"), pool("bbb")).await;
    let mut stream = Stream::open(&rig, &format!("{mine}/nodepools"), &[]).await;
    assert_eq!(stream.until_bookmark().await, ["ADDED aaa@1"]);
    rig.create(&format!("{other}/nodepools"), pool("ccc")).await;
    rig.create(&format!("{mine}/nodepools"), pool("ddd")).await;
    assert_eq!(stream.next_short().await, "ADDED ddd@1");
    rig.list(&format!("/clusters/{}/nodepools", unique("absent")), &[("watch", "true")]).await.problem("404 NTF-001");
}

async fn bookmarks_are_sent_without_changes(kind: Kind) {
    let rig = Rig::start(kind, QUICK).await;
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    for _ in 0..3 {
        let event = stream.next().await.unwrap();
        assert_eq!(event["type"], "BOOKMARK");
        assert!(event["resource_version"].is_string());
    }
    // A stream can be resumed from a bookmark.
    let version = stream.version.clone();
    channel(&rig, "one", json!({})).await;
    for parameters in [vec![("resource_version", version.as_str())], vec![]] {
        assert_eq!(Stream::open(&rig, "/channels", &parameters).await.next_short().await, "ADDED one@1");
    }
}

async fn too_old(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    channel(&rig, "first", json!({})).await;
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    stream.until_bookmark().await;
    let begin = stream.version.clone();
    drop(stream);
    for n in 0..5 {
        channel(&rig, &format!("channel-{n}"), json!({})).await;
    }
    // A server with a small history discards old changes at start.
    let database = Arc::clone(&rig.database);
    rig.stopped().await;
    let rig = Rig::start_on(database, "changes: { max_events: 2 }").await;
    let url = rig.url(&format!("{BASE}/channels?watch=true&resource_version={begin}"));
    let gone = loop {
        let response = rig.client.get(&url).send().await.unwrap();
        if response.status() != 200 {
            break crate::rig::Answer::of("GET /channels", response).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let problem = gone.problem("410 CNF-004");
    assert!(problem["detail"].as_str().unwrap().contains("resource_version"), "{problem}");
    // A new stream gets the whole state, and a version that is still kept can be resumed.
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    assert_eq!(stream.until_bookmark().await.len(), 6);
    let (epoch, last) = stream.version.split_once('-').unwrap();
    let version = format!("{epoch}-{}", last.parse::<i64>().unwrap() - 2);
    let mut stream = Stream::open(&rig, "/channels", &[("resource_version", &version)]).await;
    assert_eq!(
        (stream.next_short().await, stream.next_short().await),
        ("ADDED channel-3@1".into(), "ADDED channel-4@1".into())
    );
}

async fn versions_of_the_future(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    stream.until_bookmark().await;
    let (epoch, _) = stream.version.split_once('-').unwrap();
    for number in ["999999", "9223372036854775807"] {
        for version in [format!("{epoch}-{number}"), format!("00000000-{number}"), number.to_owned()] {
            let answer = rig.list("/channels", &[("watch", "true"), ("resource_version", &version)]).await;
            answer.problem("410 CNF-004");
        }
    }
}

async fn invalid_parameters(rig: &Rig) {
    for version in ["x", "-1", "1.5", "99999999999999999999", "1 or 1=1", "\0", "0x1"] {
        let answer = rig.list("/clusters", &[("watch", "true"), ("resource_version", version)]).await;
        answer.problem("400 VAL-000");
    }
    for watch in ["yes", "TRUE?", "2", "\0"] {
        rig.list("/clusters", &[("watch", watch)]).await.problem("400 VAL-000");
    }
    rig.list("/clusters", &[("watch", "true"), ("search", "nonsense = 1")]).await.problem("400 VAL-005");
    rig.list("/clusters", &[("watch", "false")]).await.is(200);
}

async fn requests_without_effect_send_no_event(kind: Kind) {
    let rig = Rig::start(kind, QUICK).await;
    let path = path_of(&rig.cluster(json!({ "spec": { "a": 1 } })).await);
    let body = report("dns", 1, DONE);
    rig.report(&path, body.clone()).await.is(201);
    let mut stream = Stream::open(&rig, "/clusters", &[]).await;
    stream.until_bookmark().await;
    rig.ask(&format!("PATCH {path}"), json!({ "spec": { "a": 1 } })).await.is(200);
    rig.report(&path, report("dns", 9, DONE)).await.is(204);
    rig.ask(&format!("PATCH {path}"), json!({ "spec": [] })).await.is(400);
    rig.ask("POST /clusters", json!({ "kind": "Cluster", "name": "x", "spec": {} })).await.is(400);
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    assert!(stream.next_short().await.ends_with("@2"));
    assert!(stream.until_bookmark().await.is_empty());
}

async fn ends_with_the_server(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    stream.until_bookmark().await;
    rig.begin_stop();
    assert_eq!(stream.next().await, None);
    rig.stopped().await;
}

async fn a_resource_that_comes_back(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let mut stream = Stream::open(&rig, "/channels", &[]).await;
    stream.until_bookmark().await;
    for _ in 0..2 {
        let body = json!({ "kind": "Channel", "name": "same", "spec": {}, "id": "same" });
        rig.create("/channels", body).await;
        rig.ask("DELETE /channels/same", None).await.is(202);
        assert_eq!(stream.next_short().await, "ADDED same@1");
        assert!(stream.next_short().await.starts_with("DELETED same@"));
    }
}

async fn cascaded_deletions_are_sent(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let parent = path_of(&rig.cluster(json!({})).await);
    for name in ["aaa", "bbb"] {
        let body = json!({ "kind": "NodePool", "name": name, "spec": {} });
        rig.create(&format!("{parent}/nodepools"), body).await;
    }
    let mut stream = Stream::open(&rig, "/nodepools", &[]).await;
    assert_eq!(stream.until_bookmark().await.len(), 2);
    rig.ask(&format!("DELETE {parent}"), None).await.is(202);
    let mut received = [stream.next_short().await, stream.next_short().await];
    received.sort();
    assert_eq!(received, ["MODIFIED aaa@2", "MODIFIED bbb@2"]);
    rig.ask(&format!("POST {parent}/force-delete"), json!({ "reason": "x" })).await.is(204);
    let mut received = [stream.next_short().await, stream.next_short().await];
    received.sort();
    assert_eq!(received, ["DELETED aaa@2", "DELETED bbb@2"]);
}
