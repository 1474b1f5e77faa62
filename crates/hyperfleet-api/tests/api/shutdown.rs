//! Shutdown, and the state after a restart.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::rig::raw::head;
use crate::rig::{BASE, DONE, Kind, Rig, cluster, path_of, report, until};

rules! {
    shared: ;
    own: stored_resources_survive_a_restart open_requests_are_completed idle_connections_do_not_delay;
}

async fn stored_resources_survive_a_restart(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let path = path_of(&rig.cluster(json!({ "labels": { "a": "b" }, "spec": { "n": u64::MAX } })).await);
    rig.report(&path, report("dns", 1, DONE)).await.is(201);
    let before = rig.get(&path).await.is(200).body();
    let statuses = rig.get(&format!("{path}/statuses")).await.is(200).body();
    let history = rig.get(&format!("{path}/statuses/history")).await.is(200).body();
    let database = Arc::clone(&rig.database);
    rig.stopped().await;
    let rig = Rig::start_on(database, "").await;
    assert_eq!(rig.get(&path).await.is(200).body(), before);
    assert_eq!(rig.get(&format!("{path}/statuses")).await.is(200).body(), statuses);
    assert_eq!(rig.get(&format!("{path}/statuses/history")).await.is(200).body(), history);
}

async fn open_requests_are_completed(kind: Kind) {
    let rig = Rig::start(kind, "server: { timeouts: { read: 60s } }").await;
    let body = cluster("last").to_string();
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let length = format!("Content-Length: {}\r\n", body.len());
    stream.write_all(&head(&format!("POST {BASE}/clusters"), length.as_bytes())).await.unwrap();
    stream.write_all(&body.as_bytes()[..5]).await.unwrap();
    // The request is under way once a second one, sent later, is answered.
    rig.get("/clusters").await.is(200);
    rig.begin_stop();
    let readiness = format!("http://{}/readyz", rig.health);
    let is_unready = async || rig.client.get(&readiness).send().await.is_ok_and(|ready| ready.status() == 503);
    until("the end of readiness", is_unready).await;
    stream.write_all(&body.as_bytes()[5..]).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    // No new ones are taken; readiness may have said so first.
    until("the listener's end", async || TcpStream::connect(rig.address).await.is_err()).await;
    rig.stopped().await;
}

async fn idle_connections_do_not_delay(kind: Kind) {
    // A silent client may stay for a minute, and an open request for two.
    let rig = Rig::start(kind, "server: { timeouts: { read: 60s } }\nhealth: { shutdown_timeout: 120s }\n").await;
    let mut idle = Vec::new();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        stream.write_all(format!("GET {BASE}/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        let mut some = [0; 64];
        assert!(stream.read(&mut some).await.unwrap() > 0);
        idle.push(stream);
    }
    tokio::time::timeout(Duration::from_secs(20), rig.stopped()).await.expect("idle connections delay the end");
}
