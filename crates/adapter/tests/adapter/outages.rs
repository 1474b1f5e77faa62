//! Outages of the API, of Kubernetes and of the adapter itself: no event is lost.

use emulators::kubernetes::Settings;
use hyperfleet_client::Status;
use jiff::Timestamp;
use message_broker::Event;
use rstest::rstest;
use serde_json::json;
use testkit::go_api::GoApi;
use testkit::hyperfleet::budget;

use crate::environment::{Environment, Kind};
use crate::node::PodResult;
use crate::world::{World, eventually, is, message, topic};

/// An outage of the API spends no attempt, however often a pass fails: nothing is dead-lettered that succeeds afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_api_dead_letters_nothing() {
    let mut world = World::new(Kind::Emulator).await.unwrap();
    world.max_attempts = 2;
    let adapter = world.adapter("").await;
    for id in ["cls-1", "cls-2"] {
        world.ready(id).await;
    }
    let back = world.api.stop().await;
    for id in ["cls-1", "cls-2"] {
        let event = Event::new("s", "t", Timestamp::now(), json!({"id": id, "kind": "Cluster"}));
        world.broker.publish(&topic(), &event, &budget()).await.unwrap();
    }
    // More passes over each than it has attempts.
    eventually(async || adapter.count("hyperfleet_adapter_errors_total", "transient").await >= 8).await;
    world.api = back.await;
    for id in ["cls-1", "cls-2"] {
        world.until_available(id, 1).await;
    }
    assert_eq!(adapter.count("hyperfleet_adapter_dlq_messages_total", "").await, 0);
    adapter.stop().await;
}

/// A delivery that is held, or whose pass fails during the shutdown, goes back to the broker without having spent an attempt.
#[tokio::test(flavor = "multi_thread")]
async fn restarts_during_an_outage_dead_letter_nothing() {
    let mut world = World::new(Kind::Emulator).await.unwrap();
    world.max_attempts = 2;
    world.ready("cls-1").await;
    let proxy = GoApi::transparent(&world.api).await;
    proxy.fail("/clusters");
    world.proxy = Some(proxy);
    let mut adapter = world.adapter("").await;
    world.publish_event("cls-1").await;
    for _ in 0..4 {
        eventually(async || adapter.count("hyperfleet_adapter_errors_total", "transient").await >= 1).await;
        adapter.stop().await;
        adapter = world.adapter("").await;
    }
    world.proxy.as_ref().unwrap().recover();
    world.until_available("cls-1", 1).await;
    assert_eq!(adapter.count("hyperfleet_adapter_dlq_messages_total", "").await, 0);
    adapter.stop().await;
}

/// A resource that fails while others succeed spends its attempts, and does not hold up the others.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_fails_alone_is_a_dead_letter() {
    let mut world = World::new(Kind::Emulator).await.unwrap();
    let proxy = GoApi::transparent(&world.api).await;
    proxy.fail("/clusters/cls-1");
    world.proxy = Some(proxy);
    world.max_attempts = 2;
    let adapter = world.adapter("").await;
    for id in ["cls-1", "cls-2"] {
        world.ready(id).await;
    }
    world.publish_event("cls-1").await;
    eventually(async || {
        world.publish_event("cls-2").await;
        adapter.count("hyperfleet_adapter_dlq_messages_total", "").await == 1
    })
    .await;
    let letter = world.dead_letters().await.next().await.unwrap();
    assert_eq!(letter.event().unwrap().json().unwrap()["id"], "cls-1");
    letter.ack().await.unwrap();
    world.until_available("cls-2", 1).await;
    adapter.stop().await;
}

#[rstest]
#[case::lists("list/jobs:503*3")]
#[case::a_lost_answer("create/jobs:commit-then-cut*1")]
#[case::throttled("create/secrets:429(retry-after=1s)*1")]
#[case::cut_while_watching("watch/jobs:cut*2")]
#[case::slow_reads("get/secrets:503*2")]
#[tokio::test(flavor = "multi_thread")]
async fn failures_of_kubernetes_are_retried(#[case] fault: &str) {
    let settings = Settings { faults: vec![fault.parse().unwrap()], ..Settings::default() };
    let world = World::at(Environment::with(Kind::Emulator, settings).await.unwrap()).await;
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    assert_eq!(world.node.started("cls-1", 1), 1);
    adapter.stop().await;
}

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_adapter_reports_the_end_of_a_job(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    world.node.end_pods_with(PodResult::Never).await;
    let first = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_reason("cls-1", "WorkloadInProgress").await;
    eventually(async || world.node.started("cls-1", 1) == 1).await;
    first.kill().await;
    world.node.end_pods_with(PodResult::Success).await;
    let second = world.adapter("").await;
    world.until_available("cls-1", 1).await;
    assert_eq!(world.node.started("cls-1", 1), 1);
    second.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_without_a_job_is_used_by_the_next_run() {
    let settings = Settings { faults: vec!["create/jobs:hang*1".parse().unwrap()], ..Settings::default() };
    let world = World::at(Environment::with(Kind::Emulator, settings).await.unwrap()).await;
    let first = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    eventually(async || world.environment.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_some())
        .await;
    first.kill().await;
    let second = world.adapter("").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    eventually(async || world.environment.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_none())
        .await;
    second.stop().await;
}

/// An adapter that cannot work is not ready, whatever works with the broker, and says so of each resource.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_covers_the_api_and_kubernetes() {
    let mut world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    eventually(async || adapter.readiness().await.0).await;
    let back = world.api.stop().await;
    eventually(async || adapter.readiness().await.1.contains("the HyperFleet API does not let")).await;
    world.api = back.await;
    eventually(async || adapter.readiness().await.0).await;
    adapter.stop().await;
    let settings = Settings { faults: vec!["list/jobs:503*0".parse().unwrap()], ..Settings::default() };
    let world = World::at(Environment::with(Kind::Emulator, settings).await.unwrap()).await;
    let adapter = world.adapter("").await;
    eventually(async || adapter.readiness().await.1.contains("Kubernetes does not let this adapter work")).await;
    adapter.stop().await;
}

/// A probe that asks for something that does not exist fills logs and metrics with errors.
#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn readiness_is_probed_without_errors(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    eventually(async || adapter.readiness().await.0).await;
    let metrics = world.api.metrics().await;
    assert!(metrics.contains(r#"code="200""#) && !metrics.contains(r#"code="404""#), "{metrics}");
    if !world.environment.server.is_real() {
        let calls = world.environment.server.emulator().calls();
        assert!(calls.iter().all(|call| call.verb != "get"), "{calls:?}");
    }
    adapter.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_that_fail_again_and_again_are_reported() {
    let settings = Settings { faults: vec!["create/jobs:503*0".parse().unwrap()], ..Settings::default() };
    let world = World::at(Environment::with(Kind::Emulator, settings).await.unwrap()).await;
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    let report = world.until("cls-1", |report| is(report, "Health", Status::False)).await;
    assert!(message(&report, "Health").contains("create job"), "{}", message(&report, "Health"));
    // The copies that were recorded stay so.
    assert_eq!(report.data["copies"].as_array().map(Vec::len), Some(2));
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_job_is_counted_once_whatever_restarts() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let first = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    eventually(async || first.count("pullsecret_job_total", "success").await == 1).await;
    first.stop().await;
    let second = world.adapter("").await;
    world.publish_event("cls-1").await;
    eventually(async || second.count("hyperfleet_adapter_decisions", "ResourcesExist").await > 0).await;
    assert_eq!(second.count("pullsecret_job_total", "success").await, 0);
    second.stop().await;
}
