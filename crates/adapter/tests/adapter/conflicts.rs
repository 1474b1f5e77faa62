//! Unmanaged objects, malformed messages, and an adapter without the rights that it needs.

use emulators::kubernetes::Settings;
use fleet_model::names;
use hyperfleet_client::Status;
use jiff::Timestamp;
use kube::api::{DeleteParams, PostParams};
use message_broker::{Event, Message};
use rstest::rstest;
use serde_json::json;

use crate::environment::{Environment, Kind};
use crate::world::{World, eventually, is, message, topic};
use testkit::hyperfleet::budget;

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn unmanaged_objects_are_named_and_not_changed(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    let secret = json!({"metadata": {"name": "cluster-cls-1-pullsecret-data"}, "stringData": {"theirs": "x"}});
    let secret = serde_json::from_value(secret).unwrap();
    let theirs = world.environment.inputs().create(&PostParams::default(), &secret).await.unwrap();
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "none"}]}});
    let job = json!({"metadata": {"name": "pullsecret-cls-2-gen1"}, "spec": {"template": pod}});
    world.environment.jobs().create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    for (id, name) in [("cls-1", "cluster-cls-1-pullsecret-data"), ("cls-2", "pullsecret-cls-2-gen1")] {
        world.ready(id).await;
        world.publish_event(id).await;
        let report = world.until_reason(id, "NameConflict").await;
        assert!(is(&report, "Applied", Status::False) && is(&report, "Health", Status::True));
        assert!(message(&report, "Applied").contains(name), "{}", message(&report, "Applied"));
    }
    let found = world.environment.inputs().get("cluster-cls-1-pullsecret-data").await.unwrap();
    assert_eq!(found.metadata.resource_version, theirs.metadata.resource_version);
    assert!(world.environment.job("pullsecret-cls-1-gen1").await.is_none());
    adapter.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_pull_secret_is_reported() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    let patch = json!({"metadata": {"labels": {"managed-by": "another-team"}}});
    let parameters = kube::api::PatchParams::default();
    world.environment.outputs().patch("cls-1-pull-secret", &parameters, &kube::api::Patch::Merge(patch)).await.unwrap();
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "NameConflict").await;
    assert!(message(&report, "Available").contains("the label `managed-by=another-team`"));
    assert_eq!(world.node.started("cls-1", 1), 1);
    adapter.stop().await;
}

/// A replica that has observed generation 1 acts after another one has started the run of generation 2.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_observation_does_not_replace_the_input_of_a_newer_run() {
    let world = World::new(Kind::Emulator).await.unwrap();
    world.ready("cls-1").await;
    let created = world.api.get("cls-1").await.unwrap().created_time.unwrap().to_string();
    let name = "cluster-cls-1-pullsecret-data";
    let labels = json!({
        names::LABEL_RUN_ADAPTER: "pullsecret", names::LABEL_RUN_RESOURCE: "cls-1", names::LABEL_RUN_GENERATION: "2",
    });
    let metadata =
        json!({"name": name, "labels": labels, "annotations": {names::ANNOTATION_RESOURCE_CREATED: created}});
    let newer = serde_json::from_value(json!({"metadata": metadata, "stringData": {"pullsecret": "newer"}})).unwrap();
    let newer = world.environment.inputs().create(&PostParams::default(), &newer).await.unwrap();
    let adapter = world.adapter("").await;
    world.publish_event("cls-1").await;
    eventually(async || adapter.count("hyperfleet_adapter_errors_total", "transient").await > 0).await;
    let found = world.environment.inputs().get(name).await.unwrap();
    assert_eq!(found.metadata.resource_version, newer.metadata.resource_version);
    assert!(world.environment.job("pullsecret-cls-1-gen1").await.is_none());
    // The event is delivered again until the other replica's run has ended.
    world.environment.inputs().delete(name, &DeleteParams::default()).await.unwrap();
    world.until_available("cls-1", 1).await;
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_are_dead_lettered() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    let mut letters = world.dead_letters().await;
    let garbage = Message { body: b"{not json".to_vec(), ..Message::default() };
    world.broker.send(&topic(), &garbage, &budget()).await.unwrap();
    world.publish(Event::new("s", "t", Timestamp::now(), json!({"generation": 1}))).await;
    for _ in 0..2 {
        letters.next().await.unwrap().ack().await.unwrap();
    }
    // An event about another kind, or about a cluster that the API does not have, is acked.
    world.publish(Event::new("s", "t", Timestamp::now(), json!({"id": "np-1", "kind": "NodePool"}))).await;
    world.publish_event("cls-unknown").await;
    eventually(async || adapter.count("hyperfleet_adapter_events_processed", "skipped").await >= 2).await;
    assert_eq!(adapter.count("hyperfleet_adapter_dlq_messages", "").await, 2);
    adapter.stop().await;
}

#[rstest]
#[case("create/jobs:403", "ResourceCreationFailed")]
#[case("create/secrets:403", "ResourceCreationFailed")]
// The watch lists too, and first.
#[case("list/jobs:403*0", "KubernetesAPIFailure")]
#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_reported(#[case] fault: &str, #[case] reason: &str) {
    let settings = Settings { faults: vec![fault.parse().unwrap()], ..Settings::default() };
    let world = World::at(Environment::with(Kind::Emulator, settings).await.unwrap()).await;
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", reason).await;
    assert!(is(&report, "Health", Status::False), "{report:#?}");
    adapter.stop().await;
}
