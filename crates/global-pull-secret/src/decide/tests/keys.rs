//! Effects of changes on images, and the condition about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use docker_config::{Document, Limits};
use rstest::rstest;

use super::super::images::{effects, losing};
use super::world::{ADDITIONAL, World, document, message, reported};
use crate::images::{ObservedImages, RunningImages};
use crate::keys::Keys;
use crate::plan::Plan;
use crate::record::ORIGINAL;

const TEAM: &str = "q.io/team/app";

/// `q.io=O` is a key of the original, `q.io=V@s` one of the Secret `s`; the letters stand for credentials.
fn keys(text: &str) -> Keys {
    let mut sources = BTreeMap::new();
    let mut entries = Vec::new();
    for part in text.split_whitespace() {
        let (entry, from) = part.split_once('@').unwrap_or((part, ORIGINAL));
        sources.insert(entry.split_once('=').unwrap().0.to_owned(), from.to_owned());
        entries.push(entry);
    }
    let read = Document::parse(document(&entries.join(" ")).as_bytes(), &Limits::SECRET).unwrap();
    Keys::of(&read, &sources)
}

/// Each row: the image, the keys before and after, and the effect with the keys that serve it.
#[rstest]
#[case::the_same(TEAM, "q.io=O", "q.io=O", "Unchanged q.io > q.io")]
#[case::no_key_at_all(TEAM, "r.io=O", "r.io=O s.io=V@s", "Unchanged - > -")]
#[case::a_key_for_another_registry(TEAM, "q.io=O", "q.io=O r.io=V@s", "Unchanged q.io > q.io")]
#[case::its_first_key(TEAM, "r.io=O", "r.io=O q.io=V@s", "Gains - > q.io")]
#[case::gone(TEAM, "q.io/team=V@s", "", "Loses q.io/team > -")]
#[case::gone_and_the_originals_is_left(TEAM, "q.io=O q.io/team=V@s", "q.io=O", "Loses q.io/team > q.io")]
#[case::gone_from_the_original(TEAM, "q.io=O r.io=O", "r.io=O", "Loses q.io > -")]
#[case::rotated(TEAM, "q.io=O q.io/team=V@s", "q.io=O q.io/team=W@s", "Replaced q.io/team > q.io/team")]
#[case::the_original_rotated(TEAM, "q.io=O", "q.io=P", "Replaced q.io > q.io")]
#[case::moved_up_by_its_secret(TEAM, "q.io/team=V@s", "q.io=V@s", "Unchanged q.io/team > q.io")]
#[case::another_key_of_its_secret(TEAM, "q.io/team=V@s q.io=W@s", "q.io=W@s", "Replaced q.io/team > q.io")]
#[case::the_originals_is_replaced(TEAM, "q.io=O", "q.io=V@s", "Loses q.io > q.io")]
#[case::by_the_same_credential(TEAM, "q.io=O", "q.io=O@s", "Unchanged q.io > q.io")]
#[case::a_part_comes_first(TEAM, "q.io=O", "q.io=O q.io/team=V@s", "Replaced q.io > q.io/team then q.io")]
#[case::a_part_comes_first_and_the_rest_goes(TEAM, "q.io=O", "q.io=W@s q.io/team=V@s", "Loses q.io > q.io/team")]
#[case::the_rest_goes_later(TEAM, "q.io=O q.io/team=V@s", "q.io=W@s q.io/team=V@s", "Loses q.io > q.io/team")]
#[case::another_secrets_rest_goes(TEAM, "q.io=W@t q.io/team=V@s", "q.io/team=V@s", "Loses q.io > q.io/team")]
#[case::the_rest_rotates(TEAM, "q.io=O q.io/team=V@s", "q.io=P q.io/team=V@s", "Unchanged q.io/team > q.io/team")]
#[case::a_part_while_the_original_rotates(TEAM, "q.io=O", "q.io=P q.io/team=V@s", "Replaced q.io > q.io/team")]
#[case::a_part_with_the_same_credential(TEAM, "q.io=O", "q.io=O q.io/team=O@s", "Unchanged q.io > q.io/team")]
#[case::another_secrets(TEAM, "q.io/team=V@s", "q.io/team=W@t", "Loses q.io/team > q.io/team")]
#[case::a_glob_comes_after("x.a.io/app", "x.a.io=O", "x.a.io=O *.a.io=V@s", "Unchanged x.a.io > x.a.io")]
#[case::a_glob_serves("x.a.io/app", "", "*.a.io=V@s", "Gains - > *.a.io")]
#[case::docker_hub(
    "nginx",
    "https://index.docker.io/v1/=O",
    "docker.io=V@s",
    "Loses https://index.docker.io/v1/ > docker.io"
)]
#[case::first_characters_for_kubelet(
    "q.io/mycompany/x",
    "q.io=O",
    "q.io=O q.io/my=V@s",
    "Replaced q.io > q.io/my then q.io"
)]
fn effects_are(#[case] image: &str, #[case] before: &str, #[case] after: &str, #[case] expected: &str) {
    let (images, before, after) = (RunningImages::of_list(image), keys(before), keys(after));
    let all = effects(&images, &before, &after);
    let one = &all[0];
    let key = |key: &Option<crate::record::Key>| key.as_ref().map_or("-".to_owned(), |key| key.key.clone());
    let then = one.still.as_ref().map(|still| format!(" then {}", still.key)).unwrap_or_default();
    assert_eq!(format!("{:?} {} > {}{then}", one.effect, key(&one.before), key(&one.after)), expected);
    assert_eq!(losing(&images, &before, &after).len(), usize::from(expected.starts_with("Loses")));
}

#[test]
fn the_worst_effects_come_first() {
    let images = RunningImages::of_list("a.io/x\nb.io/x\nc.io/x\nd.io/x");
    let all = effects(&images, &keys("a.io=O b.io=O d.io=V@s"), &keys("a.io=O b.io=P c.io=V@s"));
    let shown: Vec<String> = all.iter().map(|one| format!("{:?} {}", one.effect, one.image.name())).collect();
    assert_eq!(shown, ["Loses d.io/x", "Replaced b.io/x", "Gains c.io/x", "Unchanged a.io/x"]);
}

/// A world in which these images run, one a line, and the controller reports lost keys.
fn world(original: &str) -> World {
    let mut world = World::new(original);
    world.policy.running_images = true;
    world
}

/// Settles, and again with these images if they are asked for.
fn settle(world: &mut World, images: Result<&str, &str>) -> Plan {
    let plan = world.settle();
    let Some(revision) = plan.images_for else { return plan };
    let images = images.map(|list| Arc::new(RunningImages::of_list(list))).map_err(str::to_owned);
    world.facts.images = Some(ObservedImages { revision, at: world.now, images });
    let plan = world.settle();
    assert_eq!(plan.images_for, None, "they are read once");
    plan
}

fn kept(plan: &Plan) -> String {
    reported(plan).into_iter().find(|one| one.starts_with("KeysKept")).unwrap_or_default()
}

fn is_published(world: &World) -> bool {
    world.events.iter().any(|event| event.reason.as_str() == "KeysLost")
}

#[test]
fn a_change_that_takes_no_key_reads_no_images() {
    let mut world = world("q.io=O");
    for content in ["r.io=V", "r.io=W", "q.io/team=V r.io=W"] {
        world.additional(content);
        let plan = world.settle();
        assert_eq!((kept(&plan).as_str(), plan.images_for), ("KeysKept=True/KeysKept", None), "{content}");
    }
    world.original(&document("q.io=P"));
    assert_eq!(kept(&world.settle()), "KeysKept=True/KeysKept");
    assert!(!is_published(&world));
}

#[test]
fn a_lost_key_is_reported_and_rolled_out() {
    let mut world = world("q.io=O");
    world.additional("q.io/team=V r.io=V");
    world.settle_nodes();
    world.additional("r.io=V");
    let plan = world.settle();
    assert_eq!((world.deployed().as_str(), kept(&plan).as_str()), ("q.io O r.io V", "KeysKept=Unknown/ImagesUnknown"));
    let plan = settle(&mut world, Ok("q.io/team/app:1\nq.io/other:1\nr.io/x"));
    assert_eq!(kept(&plan), "KeysKept=False/KeysLost");
    assert_eq!(
        message(&plan, "KeysKept"),
        "images of running Pods have lost their key: \
         q.io/team/app (had q.io/team from additional-pull-secret, has q.io from the original)"
    );
    assert!(is_published(&world) && reported(&plan)[3] == "Degraded=False/AsExpected");
    // The images are read again, until none is left.
    world.events.clear();
    assert!(plan.next.is_some());
    world.wait(600);
    assert_eq!(kept(&settle(&mut world, Ok("q.io/other:1"))), "KeysKept=True/KeysKept");
    world.wait(3_600);
    assert_eq!(world.settle().images_for, None);
    assert!(!is_published(&world));
}

#[test]
fn a_later_change_does_not_hide_a_lost_key() {
    let mut world = world("q.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    world.additional("s.io=V");
    assert_eq!(kept(&settle(&mut world, Ok("r.io/x"))), "KeysKept=False/KeysLost");
    world.original(&document("q.io=P"));
    let plan = settle(&mut world, Ok("r.io/x"));
    assert_eq!(kept(&plan), "KeysKept=False/KeysLost");
    // It is over when its Secret has a key for it again, or no Pod runs it.
    world.additional("s.io=V r.io=W");
    assert_eq!(kept(&settle(&mut world, Ok("r.io/x"))), "KeysKept=True/KeysKept");
    world.additional("s.io=V");
    assert_eq!(kept(&settle(&mut world, Ok("q.io/x"))), "KeysKept=True/KeysKept");
    world.additional("s.io=W");
    assert_eq!(kept(&settle(&mut world, Ok("r.io/x"))), "KeysKept=True/KeysKept");
}

/// Each row: the additional Secret of three changes; the second or the third one shall not hide what the first has taken.
#[rstest]
#[case::a_rotation(["q.io=V", "q.io=W", "q.io=V"])]
#[case::an_addition(["q.io=W q.io/team=V", "q.io=W q.io/team=V r.io=V", "q.io=W q.io/team=W r.io=V"])]
#[case::a_part_comes_and_goes(["q.io=V", "q.io=V q.io/team=W", "q.io=W q.io/team=V"])]
#[case::a_part_moves(["q.io=V", "q.io/team=V q.io=W", "q.io/team=W q.io=W"])]
fn later_changes_do_not_hide_that_the_originals_key_is_lost(#[case] contents: [&str; 3]) {
    let mut world = world("q.io=O");
    for content in contents {
        world.additional(content);
        let plan = settle(&mut world, Ok(TEAM));
        assert_eq!(kept(&plan), "KeysKept=False/KeysLost", "{content}");
        assert!(message(&plan, "KeysKept").contains("q.io/team/app (had q.io from the original, "), "{content}");
    }
    world.additional("r.io=V");
    let plan = settle(&mut world, Ok(TEAM));
    assert!(message(&plan, "KeysKept").contains("from additional-pull-secret, has q.io from the original)"));
    assert_eq!(kept(&settle(&mut world, Ok("r.io/x"))), "KeysKept=False/KeysLost", "not read again yet");
    world.wait(600);
    assert_eq!(kept(&settle(&mut world, Ok("r.io/x"))), "KeysKept=True/KeysKept");
}

#[test]
fn a_key_that_came_with_a_loss_can_be_lost_too() {
    let mut world = world("q.io=O");
    world.additional("q.io=V r.io=V");
    assert_eq!(kept(&settle(&mut world, Ok(TEAM))), "KeysKept=False/KeysLost");
    world.additional("q.io=V");
    let plan = settle(&mut world, Ok("q.io/team/app\nr.io/x"));
    let text = message(&plan, "KeysKept");
    assert!(text.contains("q.io/team/app (had q.io from the original") && text.contains("r.io/x (had r.io"), "{text}");
}

#[test]
fn a_loss_in_two_steps_is_reported() {
    let mut world = world("q.io=O");
    world.additional("q.io/team=V");
    assert_eq!(kept(&settle(&mut world, Ok(TEAM))), "KeysKept=True/KeysKept");
    world.additional("q.io/team=V q.io=W");
    assert_eq!(kept(&settle(&mut world, Ok(TEAM))), "KeysKept=False/KeysLost");
}

#[test]
fn another_controller_finds_the_change_in_the_record() {
    let mut world = world("q.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    world.additional("s.io=V");
    world.settle();
    world.facts.images = None;
    assert_eq!(kept(&settle(&mut world, Ok("r.io/x"))), "KeysKept=False/KeysLost");
    assert!(!format!("{:?}", world.record()).contains("dTpW"));
}

#[rstest]
#[case::the_first_secret_replaces_the_originals("", "q.io=V", "KeysKept=False/KeysLost")]
#[case::of_a_protected_registry("q.io", "q.io=V r.io=V", "KeysKept=True/KeysKept")]
fn the_first_change_is_from_the_original(#[case] protected: &str, #[case] content: &str, #[case] expected: &str) {
    let mut world = world("q.io=O");
    if !protected.is_empty() {
        world = world.protecting(protected);
    }
    world.additional(content);
    assert_eq!(kept(&settle(&mut world, Ok("q.io/a\nr.io/a"))), expected);
}

#[test]
fn a_deletion_is_reported_while_the_nodes_are_reverted() {
    let mut world = world("q.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    world.delete(ADDITIONAL);
    let plan = settle(&mut world, Ok("r.io/x"));
    assert_eq!(kept(&plan), "KeysKept=False/KeysLost");
    world.settle_nodes();
    world.end_pods();
    world.settle();
    assert!(world.facts.status.is_none(), "it holds no clean-up back");
}

#[test]
fn images_that_cannot_be_read_are_asked_for_again() {
    let mut world = world("q.io=O");
    world.additional("q.io=V");
    let plan = settle(&mut world, Err("cannot list pods of all namespaces: permission denied"));
    assert_eq!(kept(&plan), "KeysKept=Unknown/ImagesUnknown");
    assert_eq!(message(&plan, "KeysKept"), "cannot list pods of all namespaces: permission denied");
    assert_eq!(reported(&plan)[3], "Degraded=False/AsExpected");
    world.wait(600);
    assert_eq!(kept(&settle(&mut world, Ok("r.io/x"))), "KeysKept=True/KeysKept");
}

#[test]
fn messages_name_some_images() {
    let mut world = world("q.io=O");
    world.additional("q.io=V");
    let images: Vec<String> = (0..25).map(|number| format!("q.io/{number:02}")).collect();
    let plan = settle(&mut world, Ok(&images.join("\n")));
    let text = message(&plan, "KeysKept");
    assert!(text.contains("q.io/09 (") && !text.contains("q.io/10 (") && text.ends_with("; and 15 more"), "{text}");
}

#[test]
fn without_the_setting_there_is_no_condition() {
    let mut world = World::new("q.io=O");
    world.additional("q.io=V");
    let plan = world.settle();
    assert_eq!((kept(&plan).as_str(), plan.images_for), ("", None));
}
