//! Changes of a cluster and the events that they cause.

use hyperfleet_client::Status;
use sentinel::leader::Election;
use serde_json::json;

use crate::rig::{broker, next, received, reconcile, start_sentinel};
use testkit::api_server::until_contains;
use testkit::hyperfleet::{HyperFleetApi, report};

/// Settings without repetitions: every received event publishes a change.
pub(crate) const QUIET: &str = "decision: {min_interval: 10m, max_interval: 10m, resync: 1h}";

#[tokio::test(flavor = "multi_thread")]
async fn each_change_of_a_cluster_becomes_an_event() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let sentinel = start_sentinel(&api, QUIET, to, Election::Alone).await.complete().await;
    api.create("cls-1").await;
    let event = next(&mut events).await;
    assert_eq!(event.kind, "com.redhat.hyperfleet.cluster.reconcile");
    assert_eq!((event.source.as_str(), event.subject.as_deref()), ("hyperfleet-sentinel", Some("cls-1")));
    assert!(event.time.is_some());
    let href = "/api/hyperfleet/v1/clusters/cls-1";
    assert_eq!(event.json().unwrap(), &json!({"id": "cls-1", "kind": "Cluster", "href": href, "generation": 1}));
    api.patch("cls-1", json!({"a": 1})).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 2)]);
    api.report("cls-1", &report("validation", 2, Status::Unknown)).await;
    api.report("cls-1", &report("validation", 2, Status::True)).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 2)]);
    api.delete("cls-1").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 3)]);
    // An event may arrive before the Sentinel learns that it was published.
    let lines = [
        r#"reason="New"} 1"#,
        r#"reason="GenerationChanged"} 1"#,
        r#"reason="DependencyAvailable"} 1"#,
        r#"reason="DeletionRequested"} 1"#,
        r#"hyperfleet_sentinel_pending_resources{component="sentinel",version="test",resource_type="clusters",resource_selector="all",shard="1/1"} 0"#,
        "hyperfleet_sentinel_publish_lag_seconds_count",
    ];
    until_contains(&lines, async || sentinel.metrics().await).await;
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_may_be_named_as_the_specification_does() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    api.create("cls-1").await;
    let settings = format!("{QUIET}, event_type: specification, message_data: {{clusterId: resource.id, why: reason}}");
    let sentinel = start_sentinel(&api, &settings, to, Election::Alone).await;
    let created = next(&mut events).await;
    assert_eq!(
        (created.kind.as_str(), created.json()),
        ("cluster.create", Some(&json!({"clusterId": "cls-1", "why": "New"})))
    );
    api.patch("cls-1", json!({"a": 1})).await;
    assert_eq!(next(&mut events).await.kind, "cluster.update");
    api.delete("cls-1").await;
    assert_eq!(next(&mut events).await.kind, "cluster.delete");
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_specifications_rule_delays_an_event_until_its_dependencies_are_available() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let rule = ["validation", "dns"].map(|name| format!("status.adapters[{name}].available == \"True\"")).join(" && ");
    let settings = format!("{QUIET}, publish_when: {{pullsecret: '{rule}'}}");
    let sentinel = start_sentinel(&api, &settings, to, Election::Alone).await.complete().await;
    api.create("cls-1").await;
    api.report("cls-1", &report("validation", 1, Status::Unknown)).await;
    api.report("cls-1", &report("validation", 1, Status::True)).await;
    api.create("cls-2").await;
    // A deletion is published whatever the rule says, as adapters must clean up.
    api.delete("cls-2").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-2", 2)]);
    api.report("cls-1", &report("dns", 1, Status::Unknown)).await;
    api.report("cls-1", &report("dns", 1, Status::True)).await;
    let event = next(&mut events).await;
    assert_eq!(event.subject.as_deref(), Some("cls-1"));
    assert_eq!(event.extensions.get("adapters").map(String::as_str), Some("pullsecret"));
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_not_reconciled_is_published_again() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    api.create("cls-1").await;
    let settings = "decision: {min_interval: 1s, max_interval: 1s, resync: 1h}";
    let sentinel = start_sentinel(&api, settings, to, Election::Alone).await;
    assert_eq!(received(&mut events, 3).await, [reconcile("cls-1", 1), reconcile("cls-1", 1), reconcile("cls-1", 1)]);
    let metrics = sentinel.metrics().await;
    assert!(metrics.contains(r#"reason="RepublishDue"}"#), "{metrics}");
    sentinel.stop().await;
}
