//! What a run has left behind is watched over.

use std::collections::BTreeMap;

use hyperfleet_client::{Report, Status};
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, Patch, PatchParams};
use rstest::rstest;
use serde_json::json;

use crate::api::pull_secret;
use crate::place::Kind;
use crate::world::{World, eventually, is};

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_or_changed_is_brought_back(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.tell("cls-1").await;
    world.until_available("cls-1", 1).await;
    let outputs = world.place.outputs();
    outputs.delete("cls-1-pull-secret", &DeleteParams::default()).await.unwrap();
    world.tell("cls-1").await;
    eventually(async || outputs.get_opt("cls-1-pull-secret").await.unwrap().is_some()).await;
    // The report before the repair says the same; its run has ended when the report names the second attempt.
    let of_repair = |told: &Report| told.metadata.as_ref().is_some_and(|metadata| metadata.attempt == Some(2));
    world.until("cls-1", |told| is(told, "Available", Status::True) && of_repair(told)).await;
    // Forget the repair, so that the next one is no quarrel.
    world.place.jobs().delete("pullsecret-cls-1-gen1", &DeleteParams::background()).await.unwrap();
    let other = BTreeMap::from([(".dockerconfigjson", ByteString(pull_secret("two").to_string().into_bytes()))]);
    let parameters = PatchParams::default();
    outputs.patch("cls-1-pull-secret", &parameters, &Patch::Merge(json!({"data": other}))).await.unwrap();
    world.tell("cls-1").await;
    eventually(async || {
        let found = outputs.get("cls-1-pull-secret").await.unwrap();
        found.data.unwrap()[".dockerconfigjson"].0 == pull_secret("one").to_string().into_bytes()
    })
    .await;
    world.until_available("cls-1", 1).await;
    adapter.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_spelling_of_the_same_is_no_drift() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.tell("cls-1").await;
    world.until_available("cls-1", 1).await;
    let spelled = BTreeMap::from([(".dockerconfigjson", ByteString(format!("{:#}", pull_secret("one")).into_bytes()))]);
    let patch = Patch::Merge(json!({"data": spelled}));
    world.place.outputs().patch("cls-1-pull-secret", &PatchParams::default(), &patch).await.unwrap();
    let before = adapter.count("hyperfleet_adapter_decisions", "ResourcesExist").await;
    world.tell("cls-1").await;
    eventually(async || adapter.count("hyperfleet_adapter_decisions", "ResourcesExist").await > before).await;
    assert_eq!(world.node.begun("cls-1", 1), 1);
    assert!(is(&world.api.told("cls-1").await.unwrap(), "Available", Status::True));
    adapter.stop().await;
}
