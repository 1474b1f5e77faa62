//! Runs that wait for the quota of their project.

use crate::environment::Kind;
use crate::world::{World, message};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_quota_is_reported() {
    let world = World::new(Kind::Emulator).await.unwrap();
    // One run at first, and another one per minute.
    let adapter = world.adapter("limits: {writesPerMinute: 60, writesPerRun: 60}").await;
    for id in ["cls-1", "cls-2"] {
        world.ready(id).await;
    }
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.publish_event("cls-2").await;
    let report = world.until_reason("cls-2", "WaitingForQuota").await;
    assert!(message(&report, "Available").contains("redhat-prod-1"));
    assert!(adapter.count("hyperfleet_adapter_decisions", "WaitingForQuota").await > 0);
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_starts_without_an_event() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("limits: {writesPerMinute: 1200, writesPerRun: 600}").await;
    for id in ["cls-1", "cls-2", "cls-3"] {
        world.ready(id).await;
        world.publish_event(id).await;
    }
    for id in ["cls-1", "cls-2", "cls-3"] {
        world.until_available(id, 1).await;
    }
    adapter.stop().await;
}
