//! The deletion of a cluster: everything that was created for it is removed first.

use std::time::Duration;

use emulators::kubernetes::Settings;
use hyperfleet_client::{Generation, Status};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use rstest::rstest;
use serde_json::json;

use crate::environment::{Environment, Kind};
use crate::node::PodResult;
use crate::world::{World, eventually, is, message};

/// A world in which these calls of the API server take so long that a busy test does everything else meanwhile.
async fn delayed(calls: &str) -> World {
    let faults = vec![format!("{calls}:slow(25s)*0").parse().unwrap()];
    let environment = Environment::with(Kind::Emulator, Settings { faults, ..Settings::default() }).await.unwrap();
    World::at(environment.with_call_timeout(Duration::from_mins(1))).await
}

/// Reports `Finalized` for the other adapters.
async fn others_finish(world: &World, id: &str) {
    let generation = world.api.get(id).await.unwrap().generation;
    for adapter in ["validation", "dns", "placement", "hypershift"] {
        world.api.report_finalized(id, adapter, generation).await;
    }
}

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn everything_is_removed_before_the_cluster(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    let report = world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    assert_eq!(report.observed_generation, Generation::from(2));
    assert!(world.environment.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_none());
    assert_eq!(world.node.started("cls-1", 2), 1);
    eventually(async || world.environment.job("pullsecret-cls-1-gen1").await.is_none()).await;
    // Later events change nothing.
    world.publish_event("cls-1").await;
    adapter.stop().await;
    world.end().await;
}

/// The Jobs of the first cluster still exist, with the names that those of the second one have.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_the_id_of_a_former_one_is_removed_too() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    for round in 1..=2 {
        world.ready("cls-1").await;
        world.publish_event("cls-1").await;
        world.until_available("cls-1", 1).await;
        assert!(world.environment.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_some());
        world.api.delete("cls-1").await;
        world.publish_event("cls-1").await;
        world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
        assert!(world.environment.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_none());
        assert_eq!(world.node.started("cls-1", 2), round);
        others_finish(&world, "cls-1").await;
        world.until_gone("cls-1").await;
    }
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_during_a_run_leaves_nothing_behind() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.node.end_pods_with(PodResult::Never).await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    eventually(async || world.node.started("cls-1", 1) == 1).await;
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    eventually(async || world.environment.job("pullsecret-cls-1-gen1").await.is_none()).await;
    world.node.end_pods_with(PodResult::Success).await;
    world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    assert!(world.environment.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_none());
    assert!(world.environment.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_none());
    adapter.stop().await;
}

/// A replica that has observed the cluster before its deletion is still about to start a run when another has finished the
/// clean-up. Its run would write what no clean-up deletes any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_late_does_not_start_after_a_deletion() {
    let world = delayed("create/secrets").await;
    let late = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    // It has reported where the pull secret will be, and creates the input of its run.
    world.until_reason("cls-1", "DestinationsRecorded").await;
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    assert_eq!(late.count("pullsecret_adapter_jobs_created", "").await, 1, "the clean-up Job alone");
    assert_eq!((world.node.started("cls-1", 1), world.node.started("cls-1", 2)), (0, 1));
    let input = world.environment.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap();
    assert!(input.is_none());
    late.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_a_deleted_cluster_are_removed() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    others_finish(&world, "cls-1").await;
    world.until_gone("cls-1").await;
    world.publish_event("cls-1").await;
    eventually(async || world.environment.jobs().list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    assert!(world.dead_letters().await.in_flight() == 0);
    adapter.stop().await;
}

/// Between the API's answer that the cluster is gone and the list of what it has left, it is created again, and another replica
/// has started its run.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_cluster_that_was_created_again_is_no_leftover() {
    let world = delayed("list/jobs").await;
    let adapter = world.adapter("").await;
    let id = "cls-1";
    world.publish_event(id).await;
    eventually(async || world.api.metrics().await.contains(r#"code="404""#)).await;
    let created = world.api.create(id).await;
    let labels = json!({
        "hyperfleet.io/adapter": "pullsecret", "hyperfleet.io/resource-id": id, "hyperfleet.io/generation": "1",
        "hyperfleet.io/purpose": "apply",
    });
    let annotations = json!({"hyperfleet.io/resource-created": created.created_time});
    let input = json!({"metadata": {"name": "cluster-cls-1-pullsecret-data", "labels": labels}});
    world.environment.server.create::<Secret>(&world.environment.namespace, input).await;
    let job = json!({
        "metadata": {"name": "pullsecret-cls-1-gen1", "labels": labels, "annotations": annotations},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "pull-secret", "image": "x"}],
        }}},
    });
    world.environment.server.create::<Job>(&world.environment.namespace, job).await;
    world.until_reason(id, "WorkloadInProgress").await;
    assert!(world.environment.job("pullsecret-cls-1-gen1").await.is_some());
    assert!(world.environment.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_some());
    assert_eq!(adapter.count("hyperfleet_adapter_decisions", "ResourceGone").await, 0);
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_clean_up_is_reported() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("retry: {transientAfter: 1s, permanentAfter: 1s}").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.node.end_pods_with(PodResult::Failure(4, "PermissionDenied")).await;
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "PermissionDenied").await;
    assert!(is(&report, "Finalized", Status::False) && is(&report, "Health", Status::False));
    assert!(message(&report, "Finalized").contains("a scripted failure"));
    world.node.end_pods_with(PodResult::Success).await;
    world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_never_had_a_run_is_finalized_at_once() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    let new = hyperfleet_client::NewResource {
        id: Some("cls-1".to_owned()),
        kind: "Cluster".to_owned(),
        name: "cls-1".to_owned(),
        spec: json!({"provider": "aws"}).as_object().unwrap().clone(),
        ..Default::default()
    };
    world.api.client().within(&testkit::hyperfleet::budget()).create("clusters", &new).await.unwrap();
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    assert_eq!(world.node.started("cls-1", 2), 0);
    adapter.stop().await;
}
