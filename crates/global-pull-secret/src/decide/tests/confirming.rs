//! "Rolled out" and "cleaned up" follow from confirmations for each node and revision, in both modes.

use rstest::rstest;
use std::sync::Arc;

use super::world::{ADDITIONAL, World, message, reported};
use crate::policy::Rollout;

const BOTH: [Rollout; 2] = [Rollout::Immediate, Rollout::Rolling];

/// A cluster whose two nodes have the content.
fn deployed(rollout: Rollout) -> World {
    let mut world = World::new("q.io=O");
    world.policy.rollout = rollout;
    world.additional("r.io=V");
    let plan = world.settle_nodes();
    assert_eq!(message(&plan, "RolledOut"), "2/2 nodes have the content");
    world.take_done();
    world
}

/// The review's reproduction: a syncer that cannot reach the API server has a ready Pod and the old content.
#[test]
fn a_ready_pod_that_confirms_nothing_has_nothing() {
    for rollout in BOTH {
        let mut world = deployed(rollout);
        world.additional("r.io=W");
        world.settle();
        world.roll(&["node-a"]);
        world.confirm(&["node-a"]);
        world.wait(3_600);
        let plan = world.settle();
        assert_eq!(message(&plan, "RolledOut"), "1/2 nodes have the content");
        let why = if rollout == Rollout::Immediate { "NotConfirmed" } else { "RolloutPending" };
        assert_eq!(
            (reported(&plan)[3].as_str(), message(&plan, "Degraded")),
            (
                "Degraded=True/NodesNotInSync",
                format!("1 of 2 nodes have not confirmed the content: node-b ({why})").as_str()
            )
        );
    }
}

#[test]
fn a_node_that_does_not_confirm_holds_the_clean_up_until_the_deadline_and_is_named_then() {
    for rollout in BOTH {
        let mut world = deployed(rollout);
        world.delete(ADDITIONAL);
        world.settle();
        world.roll(&["node-a"]);
        world.confirm(&["node-a"]);
        world.wait(299);
        let plan = world.settle();
        assert_eq!(message(&plan, "RolledOut"), "1/2 nodes are back at the original");
        assert!(world.facts.daemon_set.as_ref().unwrap().metadata.deletion_timestamp.is_none());
        assert!(plan.next.is_some_and(|next| next.duration_since(world.now).as_secs() == 1), "{:?}", plan.next);
        world.wait(1);
        let plan = world.settle();
        assert_eq!(reported(&plan)[3], "Degraded=True/RevertIncomplete");
        let message = message(&plan, "Degraded");
        assert!(message.starts_with("1 of 2 nodes may still hold the credentials: node-b"), "{message}");
        assert!(!world.events.iter().any(|event| event.reason.as_str() == "CleanedUp"));
        world.end_pods();
        world.settle();
        assert!(world.facts.status.is_some(), "it stays to be read");
        assert!(!world.events.iter().any(|event| event.reason.as_str() == "CleanedUp"));
    }
}

#[rstest]
#[case::of_an_earlier_revision("1 pod-node-a")]
#[case::of_another_pod("REVISION pod-of-a-former-node")]
#[case::without_a_pod("REVISION")]
#[case::of_more("REVISION POD x")]
#[case::empty("")]
fn a_confirmation_counts_for_its_revision_and_its_pod(#[case] confirmation: &str) {
    let mut world = World::new("q.io=O");
    world.additional("r.io=V");
    world.settle();
    world.confirm(&["node-b"]);
    let pod = world.facts.pods.iter().find(|pod| pod.node.as_deref() == Some("node-a")).unwrap().name.clone();
    let confirmation = confirmation.replace("REVISION", &world.record().revision).replace("POD", &pod);
    let confirmations = Arc::make_mut(world.facts.confirmations.as_mut().unwrap());
    confirmations.data.as_mut().unwrap().insert("node-a".to_owned(), confirmation);
    assert_eq!(message(&world.settle(), "RolledOut"), "1/2 nodes have the content");
}

/// Syncers lose their source for a moment, or are replaced: that is no reason for an alert.
#[test]
fn a_pod_has_its_time_from_its_last_change_on() {
    let mut world = deployed(Rollout::Immediate);
    world.wait(3_600);
    world.fail("node-b", "NotReady");
    let plan = world.settle();
    assert_eq!(reported(&plan)[2..], ["RolledOut=False/RollingOut", "Degraded=False/AsExpected"]);
    world.wait(600);
    assert_eq!(reported(&world.settle())[3], "Degraded=True/NodesNotInSync");
}

/// Its controller creates Pods before it says for how many nodes.
#[test]
fn a_daemon_set_that_was_never_observed_may_have_more_nodes() {
    let mut world = deployed(Rollout::Immediate);
    Arc::make_mut(world.facts.daemon_set.as_mut().unwrap()).status = None;
    world.facts.pods.retain(|pod| pod.node.as_deref() == Some("node-a"));
    let plan = world.settle();
    assert_eq!(reported(&plan)[2], "RolledOut=False/RollingOut");
    assert_eq!(message(&plan, "RolledOut"), "1/2 nodes have the content");
}

#[test]
fn a_replaced_pod_confirms_anew() {
    let mut world = deployed(Rollout::Immediate);
    world.roll(&["node-b"]);
    assert_eq!(message(&world.settle(), "RolledOut"), "1/2 nodes have the content");
    world.confirm(&["node-b"]);
    assert_eq!(message(&world.settle(), "RolledOut"), "2/2 nodes have the content");
}

#[test]
fn confirmations_of_gone_nodes_are_removed_once_they_are_many() {
    let mut world = deployed(Rollout::Immediate);
    for gone in [1_000, 1_001] {
        let confirmations = Arc::make_mut(world.facts.confirmations.as_mut().unwrap());
        confirmations.data.as_mut().unwrap().extend((0..gone).map(|node| (format!("gone-{node}"), "1 pod".to_owned())));
        world.settle();
        let left = world.facts.confirmations.as_ref().unwrap().data.as_ref().unwrap().len();
        assert_eq!(left, if gone > 1_000 { 2 } else { gone + 2 });
    }
    assert_eq!(message(&world.settle(), "RolledOut"), "2/2 nodes have the content");
}

#[test]
fn an_unmanaged_object_for_confirmations_is_left_alone_and_named() {
    let mut world = deployed(Rollout::Immediate);
    Arc::make_mut(world.facts.confirmations.as_mut().unwrap()).metadata.labels = None;
    let plan = world.settle();
    assert_eq!(message(&plan, "Degraded"), "unmanaged, left alone: configmap global-pull-secret-nodes");
}
