//! Removal of the additional Secret: first the nodes, then the rest; and interruptions.

use proptest::prelude::*;

use super::world::{ADDITIONAL, World, document, message, reported};
use crate::policy::Rollout;

const REMOVED: [&str; 5] =
    ["delete rolebinding", "delete role", "delete serviceaccount", "delete configmap", "delete secret"];

fn deployed() -> World {
    let mut world = World::new("q.io=O");
    world.additional("q.io=V r.io=V");
    world.settle_nodes();
    assert_eq!(world.deployed(), "q.io V r.io V");
    world.take_done();
    world.events.clear();
    world
}

#[test]
fn nodes_are_reverted_before_anything_is_removed() {
    let mut world = deployed();
    world.delete(ADDITIONAL);
    let plan = world.settle();
    assert_eq!(world.take_done(), ["apply secret", "apply configmap"]);
    assert_eq!((world.deployed().as_str(), reported(&plan)[2].as_str()), ("q.io O", "RolledOut=False/Reverting"));
    assert_eq!(message(&plan, "RolledOut"), "0/2 nodes are back at the original");
    world.settle_nodes();
    assert_eq!(world.take_done()[0], "delete daemonset");
    assert!(world.facts.role.is_some(), "Pods keep their permission until they are gone");
    world.end_pods();
    world.settle();
    let done = world.take_done();
    assert_eq!(done[done.len() - 6..], [&REMOVED[..], &["delete configmap"]].concat());
    assert!(world.facts.status.is_none() && world.deployed() == "-");
    assert_eq!(world.events.last().unwrap().reason.as_str(), "CleanedUp");
    world.settle();
    assert!(world.take_done().is_empty());
}

/// The syncers remove their backups then, and only afterwards confirm: so it is a revision of its own, also for equal content.
#[test]
fn a_revert_is_a_revision_of_its_own_and_says_so() {
    let mut world = World::new("q.io=O");
    world.additional("q.io=O");
    world.settle_nodes();
    let merged = world.record().revision;
    let is_revert = |world: &World| world.facts.global.as_ref().unwrap().is_revert;
    assert!(!is_revert(&world));
    world.delete(ADDITIONAL);
    let plan = world.settle();
    assert!(is_revert(&world) && world.record().revision > merged);
    assert_eq!(message(&plan, "RolledOut"), "0/2 nodes are back at the original");
    let reverted = world.record().revision;
    world.additional("q.io=O");
    world.settle();
    assert!(!is_revert(&world) && world.record().revision > reverted);
}

#[test]
fn a_deadline_ends_the_revert_and_names_the_nodes_left() {
    let mut world = deployed();
    world.delete(ADDITIONAL);
    world.settle();
    world.fail("node-b", "NodeLost");
    world.settle_nodes();
    assert!(world.facts.daemon_set.as_ref().unwrap().metadata.deletion_timestamp.is_none());
    world.wait(300);
    let plan = world.settle();
    assert_eq!(reported(&plan)[3], "Degraded=True/RevertIncomplete");
    assert_eq!(message(&plan, "Degraded"), "1 of 2 nodes may still hold the credentials: node-b (NodeLost)");
    world.end_pods();
    let plan = world.settle();
    assert_eq!((world.deployed().as_str(), reported(&plan)[3].as_str()), ("-", "Degraded=True/RevertIncomplete"));
    assert!(world.facts.status.is_some(), "who is not back stays to be read");
    assert!(world.facts.role.is_none() && world.facts.service_account.is_none());
    world.take_done();
    world.settle();
    assert!(world.take_done().is_empty());
    world.additional("r.io=V");
    assert_eq!(reported(&world.settle_nodes())[3], "Degraded=False/AsExpected");
}

#[test]
fn a_secret_that_is_created_again_meanwhile_is_merged() {
    for seconds in [0, 20] {
        let mut world = deployed();
        world.delete(ADDITIONAL);
        world.settle();
        world.wait(seconds);
        world.settle();
        world.end_pods();
        world.additional("r.io=W");
        let plan = world.settle_nodes();
        assert_eq!(world.deployed(), "q.io O r.io W");
        assert_eq!(
            reported(&plan),
            ["Valid=True/Valid", "Merged=True/Merged", "RolledOut=True/RolledOut", "Degraded=False/AsExpected"]
        );
        assert_eq!(world.record().reverting, None);
    }
}

#[test]
fn nodes_revert_to_an_original_that_is_rotated_meanwhile() {
    let mut world = deployed();
    world.delete(ADDITIONAL);
    world.settle();
    let since = world.record().reverting;
    world.wait(10);
    world.original(&document("q.io=P"));
    world.settle();
    assert_eq!((world.deployed().as_str(), world.record().reverting), ("q.io P", since));
}

#[test]
fn without_an_original_the_revert_waits() {
    let mut world = deployed();
    let original = world.facts.original.take();
    world.delete(ADDITIONAL);
    world.wait(3_600);
    let plan = world.settle();
    assert_eq!(reported(&plan)[2..], ["RolledOut=False/Reverting", "Degraded=True/OriginalMissing"]);
    assert_eq!(world.deployed(), "q.io V r.io V");
    world.facts.original = original;
    world.settle();
    assert_eq!(world.deployed(), "q.io O");
}

#[test]
fn a_merged_secret_deleted_during_a_revert_leaves_no_node_behind() {
    let mut world = deployed();
    world.delete(ADDITIONAL);
    world.facts.global = None;
    world.settle();
    assert_eq!(world.deployed(), "q.io O");
    assert!(world.record().reverting.is_some());
}

/// One thing that happens to a hosted cluster.
#[derive(Clone, Copy, Debug)]
enum Incident {
    Original(&'static str),
    Additional(&'static str, &'static str),
    Deleted(&'static str),
    Waited(i64),
    GlobalDeleted,
    SetDeleted,
    NodeFailed(&'static str),
    NodeBack(&'static str),
    PodsEnded,
}

fn incident() -> impl Strategy<Value = Incident> {
    let name = || prop::sample::select(&[ADDITIONAL, "b-team"][..]);
    let entries = || prop::sample::select(&["q.io=V", "r.io=V", "r.io=W q.io=W", "r.io=!", ""][..]);
    let node = || prop::sample::select(&["node-a", "node-b"][..]);
    prop_oneof![
        prop::sample::select(&["q.io=O", "q.io=P", "q.io=O s.io=O"][..]).prop_map(Incident::Original),
        (name(), entries()).prop_map(|(name, entries)| Incident::Additional(name, entries)),
        name().prop_map(Incident::Deleted),
        prop::sample::select(&[1, 20, 301, 601][..]).prop_map(Incident::Waited),
        Just(Incident::GlobalDeleted),
        Just(Incident::SetDeleted),
        node().prop_map(Incident::NodeFailed),
        node().prop_map(Incident::NodeBack),
        Just(Incident::PodsEnded),
    ]
}

fn cause(world: &mut World, happening: Incident) {
    match happening {
        Incident::Original(entries) => world.original(&document(entries)),
        Incident::Additional(name, entries) => world.add(name, Some(&document(entries))),
        Incident::Deleted(name) => world.delete(name),
        Incident::Waited(seconds) => world.wait(seconds),
        Incident::GlobalDeleted => world.facts.global = None,
        Incident::SetDeleted => world.facts.daemon_set = None,
        Incident::NodeFailed(node) => world.fail(node, "Error"),
        Incident::NodeBack(node) => world.roll(&[node]),
        Incident::PodsEnded => world.end_pods(),
    }
}

proptest! {
    /// Any sequence of events: there is a rest at every moment; once the Secret is good again and nodes are well
    /// everything is rolled out, and once it is gone no managed object is left.
    #[test]
    fn everything_ends_well(happenings in proptest::collection::vec(incident(), 0..12), rolling in any::<bool>()) {
        let mut world = World::new("q.io=O");
        world.policy.rollout = if rolling { Rollout::Rolling } else { Rollout::Immediate };
        for happening in happenings {
            cause(&mut world, happening);
            world.settle();
            let deployed = world.deployed();
            prop_assert!(deployed == "-" || deployed.contains("q.io"), "the original's registry is lost: {}", deployed);
        }
        world.delete("b-team");
        world.original(&document("q.io=O"));
        world.additional("r.io=V");
        for _ in 0..2 {
            world.settle();
            world.end_pods();
            world.settle();
            world.roll(&["node-a", "node-b"]);
            world.settle_nodes();
        }
        prop_assert_eq!(world.deployed(), "q.io O r.io V");
        let plan = world.settle();
        prop_assert_eq!(reported(&plan), ["Valid=True/Valid", "Merged=True/Merged", "RolledOut=True/RolledOut", "Degraded=False/AsExpected"]);
        world.delete(ADDITIONAL);
        world.settle();
        world.roll(&["node-a", "node-b"]);
        world.settle_nodes();
        world.end_pods();
        world.settle();
        let facts = &world.facts;
        prop_assert!(facts.global.is_none() && facts.daemon_set.is_none() && facts.role.is_none());
        prop_assert!(facts.role_binding.is_none() && facts.service_account.is_none() && facts.status.is_none());
        prop_assert!(facts.confirmations.is_none());
    }
}
