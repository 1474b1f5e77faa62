//! Outages of the API and of the broker: no change is lost.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use sentinel::leader::Election;
use serde_json::json;

use crate::changes::QUIET;
use crate::rig::{FlakyBroker, broker, received, reconcile, sentinel_at, start_sentinel};
use testkit::hyperfleet::HyperFleetApi;

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_continues_after_a_restart_of_the_api() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    api.create("cls-1").await;
    let mut sentinel = start_sentinel(&api, QUIET, to, Election::Alone).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    let back = api.stop().await;
    sentinel.until(|progress| progress.api.is_some()).await;
    sentinel.until_readyz(503).await;
    assert_eq!(sentinel.probe("/healthz").await.0, 200);
    let api = back.await;
    api.patch("cls-1", json!({"a": 1})).await;
    api.create("cls-2").await;
    let mut published = received(&mut events, 2).await;
    published.sort();
    assert_eq!(published, [reconcile("cls-1", 2), reconcile("cls-2", 1)]);
    sentinel.until(|progress| progress.api.is_none()).await;
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_waits_for_an_api_that_is_not_up_yet() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let (address, back) = (api.address.clone(), api.stop().await);
    let mut sentinel = sentinel_at(&address, QUIET, to, Election::Alone).await;
    sentinel.until(|progress| progress.api.is_some()).await;
    let api = back.await;
    api.create("cls-1").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_events_are_published_when_the_broker_is_back() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let doubtful = FlakyBroker::new(to);
    let mut sentinel = start_sentinel(&api, QUIET, doubtful.clone(), Election::Alone).await.complete().await;
    doubtful.set_down(true);
    api.create("cls-1").await;
    doubtful.refused_one().await;
    sentinel.until(|progress| progress.broker.is_some()).await;
    sentinel.until_readyz(503).await;
    assert_eq!(sentinel.probe("/healthz").await.0, 200);
    // Several changes of one resource during the outage cause one event.
    api.patch("cls-1", json!({"a": 1})).await;
    api.create("cls-2").await;
    api.patch("cls-1", json!({"a": 2})).await;
    let newest = [reconcile("cls-1", 3), reconcile("cls-2", 1)];
    doubtful.refused(&newest).await;
    doubtful.set_down(false);
    let mut published = received(&mut events, 2).await;
    published.sort();
    assert_eq!(published, newest);
    sentinel.until(|progress| progress.broker.is_none()).await;
    let metrics = sentinel.metrics().await;
    assert!(metrics.contains("hyperfleet_sentinel_broker_errors_total{"), "{metrics}");
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_for_the_first_subscription() {
    let api = HyperFleetApi::start().await;
    let broker = message_broker::Broker::Memory(message_broker::memory::Memory::new());
    let to = sentinel::publisher::TopicPublisher { broker: broker.clone(), topic: crate::rig::TOPIC.parse().unwrap() };
    api.create("cls-1").await;
    let mut sentinel = start_sentinel(&api, QUIET, to, Election::Alone).await;
    sentinel.until(|progress| progress.broker.as_deref().is_some_and(|why| why.contains("no subscription"))).await;
    let mut events = crate::rig::listen(&broker, "late").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    sentinel.stop().await;
}

/// Starts a proxy that refuses the parameter `watch`, as HyperFleet's own server does, and returns its address.
async fn without_stream(api: &str) -> String {
    let api = api.to_owned();
    let answer = move |request: Request| {
        let uri = request.uri().to_string();
        let url = format!("http://{api}{uri}");
        async move {
            if uri.contains("watch=true") {
                return (StatusCode::BAD_REQUEST, String::new());
            }
            (StatusCode::OK, reqwest::get(url).await.unwrap().text().await.unwrap())
        }
    };
    let listener = tokio::net::TcpListener::bind("localhost:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_without_a_change_stream_is_polled() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let address = without_stream(&api.address).await;
    let settings = format!("{QUIET}, poll_interval: 1s");
    let sentinel = sentinel_at(&address, &settings, to, Election::Alone).await.complete().await;
    api.create("cls-1").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    api.patch("cls-1", json!({"a": 1})).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 2)]);
    let metrics = sentinel.metrics().await;
    assert!(metrics.lines().any(|line| line.contains("change_stream{") && line.ends_with(" 0")), "{metrics}");
    sentinel.stop().await;
}
