//! A cluster goes, and what was made for it goes before.

use hyperfleet_client::{Generation, Status};
use kube::api::ListParams;
use rstest::rstest;
use serde_json::json;

use crate::node::Ending;
use crate::place::Kind;
use crate::world::{World, eventually, is, message};

/// The other adapters have cleaned up.
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
async fn what_was_made_is_removed_and_the_cluster_goes(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.tell("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.api.delete("cls-1").await;
    world.tell("cls-1").await;
    let told = world.until("cls-1", |told| is(told, "Finalized", Status::True)).await;
    assert_eq!(told.observed_generation, Generation::from(2));
    assert!(world.place.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_none());
    assert_eq!(world.node.begun("cls-1", 2), 1);
    eventually(async || world.place.job("pullsecret-cls-1-gen1").await.is_none()).await;
    // Whatever is told of it later changes nothing.
    world.tell("cls-1").await;
    adapter.stop().await;
    world.end().await;
}

/// The Jobs of the first one are still there, under the names of the second one's.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_gets_the_id_of_a_former_one_is_removed_too() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    for round in 1..=2 {
        world.ready("cls-1").await;
        world.tell("cls-1").await;
        world.until_available("cls-1", 1).await;
        assert!(world.place.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_some());
        world.api.delete("cls-1").await;
        world.tell("cls-1").await;
        world.until("cls-1", |told| is(told, "Finalized", Status::True)).await;
        assert!(world.place.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_none());
        assert_eq!(world.node.begun("cls-1", 2), round);
        others_finish(&world, "cls-1").await;
        world.until_gone("cls-1").await;
    }
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_deleted_in_the_middle_ends_clean() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.node.will(Ending::Never).await;
    world.ready("cls-1").await;
    world.tell("cls-1").await;
    eventually(async || world.node.begun("cls-1", 1) == 1).await;
    world.api.delete("cls-1").await;
    world.tell("cls-1").await;
    eventually(async || world.place.job("pullsecret-cls-1-gen1").await.is_none()).await;
    world.node.will(Ending::Success).await;
    world.until("cls-1", |told| is(told, "Finalized", Status::True)).await;
    assert!(world.place.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_none());
    assert!(world.place.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_none());
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_a_cluster_that_is_gone_goes_too() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.tell("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.api.delete("cls-1").await;
    world.tell("cls-1").await;
    world.until("cls-1", |told| is(told, "Finalized", Status::True)).await;
    others_finish(&world, "cls-1").await;
    world.until_gone("cls-1").await;
    world.tell("cls-1").await;
    eventually(async || world.place.jobs().list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    assert!(world.dead_letters().await.in_flight() == 0);
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_fails_is_told() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("retry: {transientAfter: 1s, permanentAfter: 1s}").await;
    world.ready("cls-1").await;
    world.tell("cls-1").await;
    world.until_available("cls-1", 1).await;
    world.node.will(Ending::Failure(4, "PermissionDenied")).await;
    world.api.delete("cls-1").await;
    world.tell("cls-1").await;
    let told = world.until_reason("cls-1", "PermissionDenied").await;
    assert!(is(&told, "Finalized", Status::False) && is(&told, "Health", Status::False));
    assert!(message(&told, "Finalized").contains("it went wrong"));
    world.node.will(Ending::Success).await;
    world.until("cls-1", |told| is(told, "Finalized", Status::True)).await;
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_never_could_have_a_run_goes_at_once() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    let new = hyperfleet_client::NewResource {
        id: Some("cls-1".to_owned()),
        kind: "Cluster".to_owned(),
        name: "cls-1".to_owned(),
        spec: json!({"provider": "aws"}).as_object().unwrap().clone(),
        ..Default::default()
    };
    world.api.client().within(&crate::api::budget()).create("clusters", &new).await.unwrap();
    world.api.delete("cls-1").await;
    world.tell("cls-1").await;
    world.until("cls-1", |told| is(told, "Finalized", Status::True)).await;
    assert_eq!(world.node.begun("cls-1", 2), 0);
    adapter.stop().await;
}
