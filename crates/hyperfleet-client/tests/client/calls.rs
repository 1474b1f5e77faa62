//! What is asked, and how the answers are understood.

use hyperfleet_client::{Error, Generation, NewResource, Patch, TraceContext};
use secrecy::ExposeSecret as _;
use serde_json::json;

use crate::server::{Reply, Server, budget};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn a_resource_is_read_by_id() {
    let server = Server::start([Reply::new(200, json!({"id": "a", "generation": 3}))]).await;
    let trace: TraceContext = TRACE.parse().unwrap();
    let client = server.client();
    let cluster = client.within(&budget()).traced(Some(&trace)).get("clusters", "a").await.unwrap().unwrap();
    assert_eq!(cluster.generation, Generation::from(3));
    let asked = server.asked().remove(0);
    assert_eq!(asked.line, "GET /clusters/a");
    assert_eq!(asked.headers["traceparent"], TRACE);
    assert_eq!(asked.headers["user-agent"], "hyperfleet-client/0.1.0");
    assert!(!asked.headers.contains_key("authorization"));
}

#[tokio::test]
async fn absence_is_an_answer_and_a_wrong_address_is_not() {
    let server = Server::start([
        Reply::problem(404, "NTF-001"),
        Reply::problem(404, "NTF-000"),
        Reply::new(404, "404 page not found"),
        Reply::problem(404, "NTF-001"),
    ])
    .await;
    let (client, budget) = (server.client(), budget());
    let calls = client.within(&budget);
    assert_eq!(calls.get("clusters", "a").await.unwrap(), None);
    for _ in 0..2 {
        assert_eq!(calls.get("clusters", "a").await.unwrap_err().status(), Some(404));
    }
    assert_eq!(calls.delete("clusters", "a").await.unwrap(), None);
}

#[tokio::test]
async fn the_pull_secret_is_kept_apart() {
    let spec = json!({"pullSecret": {"data": "hunter2"}});
    let server = Server::start([Reply::new(200, json!({"id": "a", "spec": spec}))]).await;
    let client = server.client();
    let cluster = client.within(&budget()).get_with_pull_secret("clusters", "a").await.unwrap().unwrap();
    assert_eq!(cluster.pull_secret.as_ref().unwrap().expose_secret(), "hunter2");
    assert!(!format!("{cluster:?} {}", cluster.resource.spec).contains("hunter2"));
    assert_eq!(server.lines(), ["GET /clusters/a?include=pullSecret"]);
}

#[tokio::test]
async fn resources_are_created_changed_and_deleted() {
    let server = Server::start([
        Reply::new(201, json!({"id": "a", "generation": 1})),
        Reply::new(201, json!({"id": "p", "generation": 1})),
        Reply::new(200, json!({"id": "a", "generation": 2})),
        Reply::problem(412, "CNF-002"),
        Reply::new(202, json!({"id": "a", "generation": 3, "deleted_time": "2026-01-01T00:00:00Z"})),
    ])
    .await;
    let (client, budget) = (server.client(), budget());
    let calls = client.within(&budget);
    let new = |kind: &str| NewResource { kind: kind.into(), name: "one".into(), ..NewResource::default() };
    assert_eq!(calls.create("clusters", &new("Cluster")).await.unwrap().id, "a");
    assert_eq!(calls.create_child("clusters", "a", "nodepools", &new("NodePool")).await.unwrap().id, "p");
    let patch = Patch { labels: Some([("a".into(), "b".into())].into()), ..Patch::default() };
    assert_eq!(
        calls.patch("clusters", "a", &patch, Some(Generation::FIRST)).await.unwrap().generation,
        Generation::from(2)
    );
    let error = calls.patch("clusters", "a", &patch, Some(Generation::FIRST)).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(412), Some("HYPERFLEET-CNF-002")));
    assert!(calls.delete("clusters", "a").await.unwrap().unwrap().is_deleting());

    let asked = server.asked();
    assert_eq!(asked[0].body, json!({"kind": "Cluster", "name": "one", "spec": {}}));
    assert_eq!(asked[1].line, "POST /clusters/a/nodepools");
    assert_eq!(asked[2].body, json!({"labels": {"a": "b"}}));
    assert_eq!(asked[2].headers["if-match"], "\"1\"");
    assert_eq!(asked[4].line, "DELETE /clusters/a");
}

#[tokio::test]
async fn no_answer_s_body_is_quoted_unless_it_is_a_problem() {
    let server = Server::start([
        Reply::new(200, r#"{"id": "hunter2", "generation": "hunter2"}"#),
        Reply::new(200, "<html>hunter2"),
        Reply::new(403, "<html>hunter2"),
        Reply::status(302).with("location", "http://hunter2/"),
    ])
    .await;
    let (client, budget) = (server.client(), budget());
    for _ in 0..4 {
        let error = client.within(&budget).get("clusters", "a").await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(!told.contains("hunter2"), "{told}");
        assert!(!error.transient());
    }
    assert_eq!(server.lines().len(), 4, "no redirection is followed");
}

#[tokio::test]
async fn what_cannot_be_sent_is_not_sent() {
    let server = Server::start([]).await;
    let client = server.client();
    let error = client.within(&budget()).get("clusters", "..").await.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }));
    assert_eq!(server.lines(), [""; 0]);
}

#[tokio::test]
async fn calls_can_be_carried_out_on_any_thread() {
    let server = Server::start([Reply::new(200, json!({"id": "a"})), Reply::new(201, json!({"adapter": "dns"}))]).await;
    let client = server.client();
    let work = async move {
        let budget = budget();
        let calls = client.within(&budget);
        let report = crate::reports::report();
        calls.get("clusters", "a").await.unwrap();
        calls.report("clusters", "a", &report).await.unwrap();
    };
    tokio::spawn(work).await.unwrap();
}
