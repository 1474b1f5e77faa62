//! The adapter on HyperFleet's own server, whose resources have no `status.adapters`.

use hyperfleet_client::Status;
use serde_json::json;
use testkit::go_api::GoApi;

use crate::environment::Kind;
use crate::world::{World, message};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_on_an_api_without_a_view_of_adapters() {
    let mut world = World::new(Kind::Emulator).await.unwrap();
    world.proxy = Some(GoApi::before(&world.api).await);
    let adapter = world.adapter("").await;
    world.api.create("cls-1").await;
    for other in ["validation", "dns"] {
        world.api.report("cls-1", other, Status::True, json!({})).await;
    }
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "PreconditionsNotMet").await;
    let why = message(&report, "Available");
    assert!(why.contains("waiting for placement: not reported yet") && !why.contains("waiting for dns"), "{why}");
    // Its namespace is in the data of placement's report, which only the list of statuses has.
    let data = json!({"namespace": world.environment.management});
    world.api.report("cls-1", "placement", Status::True, data).await;
    world.publish_event("cls-1").await;
    let report = world.until_available("cls-1", 1).await;
    assert_eq!(report.data["secretVersion"], 1);
    assert_eq!(world.node.started("cls-1", 1), 1);
    // A new generation, and the deletion, which needs what this adapter itself has reported.
    world.api.rotate("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 2).await;
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| crate::world::is(report, "Finalized", Status::True)).await;
    adapter.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_asked_for_only_where_the_resource_does_not_have_them() {
    for is_go in [true, false] {
        let mut world = World::new(Kind::Emulator).await.unwrap();
        world.ready("cls-1").await;
        let proxy = if is_go { GoApi::before(&world.api).await } else { GoApi::transparent(&world.api).await };
        world.proxy = Some(proxy);
        let adapter = world.adapter("").await;
        world.publish_event("cls-1").await;
        world.until_available("cls-1", 1).await;
        let asked = world.proxy.as_ref().unwrap().count("GET /clusters/cls-1", "/statuses");
        assert_eq!(asked > 0, is_go, "{:?}", world.proxy.as_ref().unwrap().asked());
        adapter.stop().await;
        world.end().await;
    }
}
