//! Retries: the calls that are repeated, and those that are not.

use std::time::Duration;

use daemon::retry::{Budget, Interrupted};
use hyperfleet_client::{Client, Error, NewResource, Patch};
use rstest::rstest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server, budget};

#[rstest]
#[case(Reply::problem(503, "SVC-001"))]
#[case(Reply::status(500))]
#[case(Reply::status(408))]
#[case(Reply::status(429).with("retry-after", 0))]
#[case(Reply::status(503).with("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"))]
#[case(Reply::new(200, r#"{"id": "#).broken())]
#[tokio::test]
async fn what_may_pass_is_tried_again(#[case] fault: Reply) {
    let server = Server::start([fault.clone(), fault.clone(), fault, Reply::new(200, json!({"id": "a"}))]).await;
    let cluster = server.client().within(&budget()).get("clusters", "a").await.unwrap();
    assert_eq!(cluster.unwrap().id, "a");
    assert_eq!(server.lines().len(), 4);
}

#[rstest]
#[case(400)]
#[case(403)]
#[case(409)]
#[case(422)]
#[tokio::test]
async fn what_will_not_pass_is_not(#[case] status: u16) {
    let server = Server::start([Reply::status(status)]).await;
    let error = server.client().within(&budget()).get("clusters", "a").await.unwrap_err();
    assert_eq!(error.status(), Some(status));
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn after_the_last_retry_the_failure_stands() {
    let server = Server::start([]).await;
    let error = server.client().within(&budget()).get("clusters", "a").await.unwrap_err();
    assert_eq!(error.status(), Some(500));
    assert!(error.transient());
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test]
async fn what_may_not_be_done_twice_is_not_tried_again() {
    let server = Server::start([]).await;
    let (client, budget) = (server.client(), budget());
    let calls = client.within(&budget);
    assert!(calls.create("clusters", &NewResource::default()).await.unwrap_err().transient());
    assert!(calls.patch("clusters", "a", &Patch::default(), None).await.unwrap_err().transient());
    assert!(calls.delete("clusters", "a").await.unwrap_err().transient());
    assert_eq!(server.lines(), ["POST /clusters", "PATCH /clusters/a", "DELETE /clusters/a"]);
}

#[tokio::test]
async fn a_wait_longer_than_the_budget_is_not_begun() {
    let server = Server::start([Reply::status(503).with("retry-after", 3600)]).await;
    let error = server.client().within(&budget()).get("clusters", "a").await.unwrap_err();
    let Error::Refused { retry_after, .. } = error else { panic!("{error}") };
    assert_eq!(retry_after, Some(Duration::from_hours(1)));
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let server = Server::start([Reply::never()]).await;
    let mut settings = server.settings();
    settings.attempt_timeout = Duration::from_millis(50);
    settings.retry.max_retries = 0;
    let error = Client::new(settings).unwrap().within(&budget()).get("clusters", "a").await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_is_away_is_reported_without_its_address() {
    let mut settings = Server::start([]).await.settings();
    settings.base_url = "http://127.0.0.1:1".parse().unwrap();
    let error = Client::new(settings).unwrap().within(&budget()).get("clusters", "a").await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(!format!("{error:?}").contains("/api/hyperfleet"));
}

#[tokio::test]
async fn a_spent_budget_ends_the_call() {
    let server = Server::start([Reply::never()]).await;
    let stop = CancellationToken::new();
    stop.cancel();
    let budget = Budget::new(Duration::from_mins(1), stop);
    let error = server.client().within(&budget).get("clusters", "a").await.unwrap_err();
    assert!(matches!(error, Error::Interrupted { interrupted: Interrupted::Stopped, source: None, .. }), "{error}");
}
