//! Several replicas: one Job per generation, and one of them reports its end.

use rstest::rstest;

use crate::environment::Kind;
use crate::node::PodResult;
use crate::world::{World, eventually};

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn another_replica_takes_over(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let first = world.replica("", Some("first")).await;
    eventually(async || first.count("hyperfleet_adapter_leader", "").await > 0).await;
    let second = world.replica("", Some("second")).await;
    world.node.end_pods_with(PodResult::Never).await;
    let ids: Vec<String> = (0..10).map(|number| format!("cls-{number}")).collect();
    for id in &ids {
        world.ready(id).await;
        for _ in 0..3 {
            world.publish_event(id).await;
        }
    }
    for id in &ids {
        world.until_reason(id, "WorkloadInProgress").await;
    }
    first.kill().await;
    world.node.end_pods_with(PodResult::Success).await;
    for id in &ids {
        world.until_available(id, 1).await;
        assert_eq!(world.node.started(id, 1), 1);
    }
    assert!(second.count("hyperfleet_adapter_leader", "").await > 0);
    second.stop().await;
    world.end().await;
}
