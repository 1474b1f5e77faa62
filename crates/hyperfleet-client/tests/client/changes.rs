//! The change stream over a connection: what the loop's own tests cannot see.

use hyperfleet_client::{Client, Health, Watch, WatchKind, WatchQuery};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server};

fn line(kind: &str, version: u32, id: &str) -> Value {
    json!({"type": kind, "resource_version": version.to_string(), "object": {"id": id, "generation": 1}})
}

fn bookmark(version: u32) -> Value {
    json!({"type": "BOOKMARK", "resource_version": version.to_string(), "object": {}})
}

fn page(ids: &[&str]) -> Reply {
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "generation": 1})).collect();
    Reply::new(200, json!({"page": 1, "size": items.len(), "total": items.len(), "items": items}))
}

fn watch(server: &Server) -> Watch {
    server.client().watch("clusters", WatchQuery::default(), CancellationToken::new())
}

async fn next(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    for _ in 0..count {
        let event = watch.next().await.unwrap();
        let object = event.object.map_or_else(|| "-".to_owned(), |object| object.id);
        events.push(format!("{:?} {object} {}", event.kind, event.resource_version.as_deref().unwrap_or("-")));
    }
    events
}

#[tokio::test]
async fn changes_come_as_they_happen_and_after_a_cut_go_on() {
    let broken = Reply::lines(&[line("ADDED", 1, "a"), bookmark(2), json!({"type": "MODI"})]).broken();
    let server = Server::start([broken, Reply::lines(&[line("DELETED", 3, "a")])]).await;
    let stop = CancellationToken::new();
    let query = WatchQuery { search: Some("name = 'a'".into()), ..WatchQuery::default() };
    let mut watch = server.client().watch("clusters", query, stop.clone());
    assert_eq!(next(&mut watch, 3).await, ["Added a -", "Bookmark - 2", "Deleted a 3"]);
    assert!(matches!(*watch.health().borrow(), Health::Streaming));
    let query = "GET /clusters?watch=true&search=name+%3D+%27a%27";
    assert_eq!(server.lines(), [query.to_owned(), format!("{query}&resource_version=2")]);
    stop.cancel();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_connection_that_breaks_within_a_line_is_resumed() {
    let partial = format!("{}\n{}\n{{\"type\": \"ADDED\", \"obj", line("ADDED", 1, "a"), bookmark(2));
    let server = Server::start([
        Reply::new(200, partial).with("content-type", "application/x-ndjson").broken(),
        Reply::status(503),
        Reply::lines(&[line("ADDED", 3, "b")]),
    ])
    .await;
    assert_eq!(next(&mut watch(&server), 3).await, ["Added a -", "Bookmark - 2", "Added b 3"]);
}

#[tokio::test]
async fn a_version_that_is_too_old_starts_over() {
    let fresh = Reply::lines(&[line("ADDED", 9, "b"), bookmark(9)]);
    let server = Server::start([Reply::problem(410, "CNF-004"), fresh]).await;
    let query = WatchQuery { from_version: Some("1".into()), ..WatchQuery::default() };
    let mut watch = server.client().watch("clusters", query, CancellationToken::new());
    assert_eq!(next(&mut watch, 3).await, ["Restarted - -", "Added b -", "Bookmark - 9"]);
    assert_eq!(server.lines(), ["GET /clusters?watch=true&resource_version=1", "GET /clusters?watch=true"]);
}

#[tokio::test]
async fn an_api_that_does_not_know_the_parameter_is_polled() {
    let server =
        Server::start([page(&["a"]), page(&["a", "b"]), Reply::status(503), page(&["a", "b"]), page(&["b"])]).await;
    let mut watch = watch(&server);
    assert_eq!(next(&mut watch, 4).await, ["Added a -", "Added b -", "Bookmark - -", "Deleted a -"]);
    assert!(matches!(*watch.health().borrow(), Health::Polling));
    let lines = server.lines();
    assert_eq!(lines[..2], ["GET /clusters?watch=true", "GET /clusters?order=id+asc&page=1&size=100"]);
}

#[tokio::test]
async fn an_endless_line_is_not_read_to_its_end() {
    let server = Server::start([
        Reply::lines(&[line("ADDED", 1, "a"), bookmark(2), line("ADDED", 3, &"x".repeat(10_000))]),
        Reply::lines(&[line("ADDED", 4, "b")]),
    ])
    .await;
    let mut settings = server.settings();
    settings.watch.max_line = 1000;
    let client = Client::new(settings).unwrap();
    let mut watch = client.watch("clusters", WatchQuery::default(), CancellationToken::new());
    assert_eq!(next(&mut watch, 3).await, ["Added a -", "Bookmark - 2", "Added b 4"]);
}

#[tokio::test]
async fn a_next_that_is_given_up_loses_nothing() {
    let server = Server::start([Reply::lines(&[line("ADDED", 1, "a"), bookmark(2)])]).await;
    let mut watch = watch(&server);
    // Polled once and dropped, as `select!` does when another branch is ready.
    tokio::select! {
        biased;
        _event = watch.next() => panic!("nothing can have come yet"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(watch.next().await.unwrap().kind, WatchKind::Added);
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn nothing_that_a_watch_shows_quotes_what_is_wanted() {
    let object = json!({"id": "a", "spec": {"pullSecret": {"data": "hunter2"}}});
    let server = Server::start([Reply::lines(&[json!({"type": "ADDED", "object": object})])]).await;
    let mut watch = watch(&server);
    let event = watch.next().await;
    assert!(!format!("{event:?} {watch:?}").contains("hunter2"));
}
