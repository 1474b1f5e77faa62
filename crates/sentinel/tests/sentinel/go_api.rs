//! The Sentinel on HyperFleet's own server: no change stream, and resources without `status.adapters`.

use hyperfleet_client::{NewReport, Status};
use sentinel::leader::Election;
use serde_json::json;
use testkit::go_api::GoApi;
use testkit::hyperfleet::{HyperFleetApi, report};

use crate::changes::QUIET;
use crate::rig::{broker, next, received, reconcile, sentinel_at};

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_reads_reports_that_resources_do_not_have() {
    let (api, (to, mut events)) = (HyperFleetApi::start().await, broker().await);
    let go = GoApi::before(&api).await;
    // Neither adapter is required, so that no condition of the cluster shows their reports.
    let rule = r#"status.adapters[placement].data.namespace != nil && status.adapters[landing].available == "True""#;
    let settings = format!("{QUIET}, poll_interval: 1s, publish_when: {{pullsecret: '{rule}'}}");
    api.create("cls-1").await;
    api.create("cls-2").await;
    let sentinel = sentinel_at(&go.address, &settings, to, Election::Alone).await.complete().await;
    let placement = NewReport {
        data: json!({"namespace": "clusters-a"}).as_object().unwrap().clone(),
        ..report("placement", 1, Status::True)
    };
    api.report("cls-1", &placement).await;
    api.report("cls-1", &report("landing", 1, Status::True)).await;
    let event = next(&mut events).await;
    assert_eq!(event.subject.as_deref(), Some("cls-1"));
    assert_eq!(event.extensions.get("adapters").map(String::as_str), Some("pullsecret"));
    // The other cluster has never met the rule.
    api.delete("cls-2").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-2", 2)]);
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_no_reports_are_read() {
    let (api, (to, mut events)) = (HyperFleetApi::start().await, broker().await);
    let go = GoApi::before(&api).await;
    let settings = format!("{QUIET}, poll_interval: 1s");
    let sentinel = sentinel_at(&go.address, &settings, to, Election::Alone).await.complete().await;
    api.create("cls-1").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    assert_eq!(go.count("GET /clusters/", "/statuses"), 0, "{:?}", go.asked());
    sentinel.stop().await;
}

/// The change stream does not begin here, so that the fleet is not read: a new leader does not wait for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_needs_an_event_is_published_before_the_fleet_is_read() {
    let (api, (to, mut events)) = (HyperFleetApi::start().await, broker().await);
    api.create("cls-1").await;
    // It forwards whole answers only.
    let proxy = GoApi::transparent(&api).await;
    let sentinel = sentinel_at(&proxy.address, QUIET, to, Election::Alone).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    assert!(!sentinel.progress.borrow().is_complete);
    sentinel.kill().await;
}
