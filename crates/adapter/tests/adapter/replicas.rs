//! Several replicas: one Job for each generation, each end told by one of them.

use rstest::rstest;

use crate::node::Ending;
use crate::place::Kind;
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
    world.node.will(Ending::Never).await;
    let ids: Vec<String> = (0..10).map(|number| format!("cls-{number}")).collect();
    for id in &ids {
        world.ready(id).await;
        for _ in 0..3 {
            world.tell(id).await;
        }
    }
    for id in &ids {
        world.until_reason(id, "WorkloadInProgress").await;
    }
    first.kill().await;
    world.node.will(Ending::Success).await;
    for id in &ids {
        world.until_available(id, 1).await;
        assert_eq!(world.node.begun(id, 1), 1);
    }
    assert!(second.count("hyperfleet_adapter_leader", "").await > 0);
    second.stop().await;
    world.end().await;
}
