//! Bounds of everything that a caller can grow: reports, change streams, and the batches of a stream.

use serde_json::{Value, json};

use crate::rig::stream::Stream;
use crate::rig::tokens::{Issuer, granted};
use crate::rig::{DONE, Kind, Rig, cluster, merged, path_of, report, unique};

rules! {
    shared: a_report_is_small adapters_have_short_names;
    own: a_resource_has_room_for_64_adapters all_reports_together_are_bounded streams_are_bounded
        an_identity_has_a_share_of_the_streams large_resources_come_one_by_one a_stalled_reader_is_cut;
}

/// A report with so many bytes of data.
fn large(adapter: &str, bytes: usize) -> Value {
    merged(report(adapter, 1, DONE), json!({ "data": { "text": "x".repeat(bytes) } }))
}

async fn a_report_is_small(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let of = |size: usize| {
        // The time's text is not always of the same length.
        let mut report = large("dns", 0);
        report["data"]["text"] = json!("x".repeat(size - report.to_string().len()));
        report
    };
    rig.report(&path, of(64 * 1024)).await.is(201);
    rig.report(&path, of(64 * 1024 + 1)).await.problem("413 LMT-002");
    rig.report(&path, large("dns", 900_000)).await.problem("413 LMT-002");
}

async fn adapters_have_short_names(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    rig.report(&path, report(&"ä".repeat(63), 1, DONE)).await.is(201);
    rig.report(&path, report(&"x".repeat(64), 1, DONE)).await.problem("400 VAL-000");
}

async fn a_resource_has_room_for_64_adapters(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let path = path_of(&rig.cluster(json!({})).await);
    for n in 0..64 {
        rig.report(&path, report(&format!("adapter-{n}"), 1, DONE)).await.is(201);
    }
    let refused = rig.report(&path, report("one-more", 1, DONE)).await.problem("400 VAL-000");
    assert_eq!(refused["errors"][0]["field"], "adapter");
    rig.report(&path, report("adapter-7", 1, DONE)).await.is(201);
    assert_eq!(rig.get(&format!("{path}/statuses")).await.body()["total"], 64);
}

async fn all_reports_together_are_bounded(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let path = path_of(&rig.cluster(json!({})).await);
    for n in 0..8 {
        rig.report(&path, large(&format!("adapter-{n}"), 60_000)).await.is(201);
    }
    let refused = rig.report(&path, large("one-more", 60_000)).await.problem("400 VAL-000");
    assert_eq!(refused["errors"][0]["field"], "data");
    rig.report(&path, report("adapter-0", 1, DONE)).await.is(201);
    rig.report(&path, large("one-more", 50_000)).await.is(201);
}

async fn streams_are_bounded(kind: Kind) {
    let rig = Rig::start(kind, "changes: { max_streams: 3, max_streams_per_identity: 1 }").await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(Stream::open(&rig, "/clusters", &[]).await);
    }
    let refused = rig.get("/clusters?watch=true").await.problem("503 SVC-001");
    assert!(refused["detail"].as_str().unwrap().contains("changes.max_streams"), "{refused}");
    open.pop();
    // The server notices the end of a connection by itself.
    while rig.client.get(rig.url("/clusters?watch=true")).send().await.unwrap().status() == 503 {
        tokio::task::yield_now().await;
    }
    rig.get("/clusters").await.is(200);
}

async fn an_identity_has_a_share_of_the_streams(kind: Kind) {
    let issuer = Issuer::start("k").await;
    let grants = ["one", "two"].map(|subject| issuer.grant(subject, "kinds: [Cluster], verbs: [list, watch]"));
    let yaml = granted(&[issuer.settings(", identity_claim: sub")], &grants);
    let rig = Rig::start(kind, &format!("{yaml}changes: {{ max_streams_per_identity: 1 }}\n")).await;
    let watch = async |subject: &str| {
        let token = issuer.bearer(json!({ "sub": subject }));
        rig.client.get(rig.url("/clusters?watch=true")).header("authorization", token).send().await.unwrap()
    };
    let _first = watch("one").await.error_for_status().unwrap();
    assert_eq!(watch("one").await.status(), 503);
    assert_eq!(watch("two").await.status(), 200);
}

/// A batch is bounded in bytes, and a resource that is larger than a batch still arrives.
async fn large_resources_come_one_by_one(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let spec = json!({ "spec": { "text": "ä".repeat(200_000) } });
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(rig.cluster(spec.clone()).await["id"].clone());
    }
    let mut stream = Stream::open(&rig, "/clusters", &[]).await;
    let state = stream.until_bookmark().await;
    assert_eq!(state.len(), 4);
    for id in &ids {
        rig.ask(&format!("PATCH /clusters/{}", id.as_str().unwrap()), json!({ "labels": { "a": "b" } })).await.is(200);
    }
    for id in ids {
        assert_eq!(stream.next_change().await["object"]["id"], id);
    }
}

/// A client that does not read loses the stream, and with it what the server keeps for it.
async fn a_stalled_reader_is_cut(kind: Kind) {
    use tokio::io::AsyncWriteExt as _;
    let rig = Rig::start(kind, "changes: { max_streams: 1, stall_timeout: 200ms }").await;
    let mut stalled = tokio::net::TcpStream::connect(rig.address).await.unwrap();
    let request = format!("GET {}/clusters?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n", crate::rig::BASE);
    stalled.write_all(request.as_bytes()).await.unwrap();
    stalled.readable().await.unwrap();
    // More than fits into the sockets, until the only stream is free again.
    let large = json!({ "spec": { "text": "x".repeat(400_000) } });
    while rig.client.get(rig.url("/clusters?watch=true")).send().await.unwrap().status() == 503 {
        rig.ask("POST /clusters", merged(cluster(&unique("c")), large.clone())).await.is(201);
    }
    drop(stalled);
}
