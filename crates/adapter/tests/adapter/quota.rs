//! Runs wait for their project's quota, and say so.

use crate::place::Kind;
use crate::world::{World, message};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_its_turn() {
    let world = World::new(Kind::Emulator).await.unwrap();
    // One run at first, and another one every three seconds.
    let adapter = world.adapter("limits: {writesPerMinute: 60, writesPerRun: 60}").await;
    for id in ["cls-1", "cls-2"] {
        world.ready(id).await;
    }
    world.tell("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.tell("cls-2").await;
    let told = world.until_reason("cls-2", "WaitingForQuota").await;
    assert!(message(&told, "Available").contains("redhat-prod-1"));
    assert!(adapter.count("hyperfleet_adapter_decisions", "WaitingForQuota").await > 0);
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_by_itself() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("limits: {writesPerMinute: 1200, writesPerRun: 600}").await;
    for id in ["cls-1", "cls-2", "cls-3"] {
        world.ready(id).await;
        world.tell(id).await;
    }
    for id in ["cls-1", "cls-2", "cls-3"] {
        world.until_available(id, 1).await;
    }
    adapter.stop().await;
}
