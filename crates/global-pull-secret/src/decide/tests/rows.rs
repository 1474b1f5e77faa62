//! The behaviour tables of the OpenShift controller, each row with the outcome here.

use docker_config::merge::{ConflictPolicy, InvalidEntries};
use fleet_model::names;
use rstest::rstest;

use super::world::{ADDITIONAL, World, document, message, reported};

const INVALID: &str = r#"{"auths":{"a.io":{"auth":"SECRET!"}}}"#;
/// The first ConfigMap is for the confirmations of nodes, the second is the status.
const ALL: [&str; 7] = [
    "apply secret",
    "apply serviceaccount",
    "apply role",
    "apply rolebinding",
    "apply configmap",
    "apply daemonset",
    "apply configmap",
];

#[test]
fn original_only_deploys_nothing() {
    let mut world = World::new("q.io=O");
    let plan = world.settle();
    assert!(world.take_done().is_empty() && world.events.is_empty() && world.deployed() == "-");
    assert_eq!(
        reported(&plan),
        [
            "Valid=Unknown/NoAdditional",
            "Merged=False/NoAdditional",
            "RolledOut=False/NotDeployed",
            "Degraded=False/AsExpected"
        ]
    );
}

#[test]
fn a_valid_additional_secret_is_merged_and_rolled_out() {
    let mut world = World::new("q.io=O");
    world.additional("r.io=V");
    let plan = world.settle();
    assert_eq!(world.take_done(), ALL);
    assert_eq!(world.deployed(), "q.io O r.io V");
    let expected =
        ["Valid=True/Valid", "Merged=True/Merged", "RolledOut=False/RollingOut", "Degraded=False/AsExpected"];
    assert_eq!(reported(&plan), expected);
    assert_eq!(message(&plan, "RolledOut"), "0/2 nodes have the content");
    assert!(plan.next.is_some());
    let plan = world.settle_nodes();
    assert_eq!(reported(&plan)[2], "RolledOut=True/RolledOut");
    assert_eq!(world.take_done(), ["apply configmap"]);
    let reasons: Vec<&str> = world.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(reasons, ["Valid", "Merged", "RollingOut", "RolledOut"]);
    world.wait(3_600);
    world.settle();
    assert!(world.take_done().is_empty(), "nothing changes, nothing is written");
}

#[test]
fn a_change_makes_a_new_revision_and_another_spelling_none() {
    let mut world = World::new("q.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    let (first, version) = (world.record(), world.facts.global.as_ref().unwrap().metadata.resource_version.clone());
    world.take_done();
    world.add(ADDITIONAL, Some(&document("r.io=V").replace(':', " :\n ")));
    world.settle_nodes();
    assert_eq!(world.facts.global.as_ref().unwrap().metadata.resource_version, version);
    assert!(world.take_done().is_empty());
    world.additional("r.io=W");
    world.settle();
    assert_eq!(world.take_done(), ["apply secret", "apply configmap"]);
    assert_eq!(world.deployed(), "q.io O r.io W");
    assert!(world.record().revision > first.revision);
}

#[test]
fn an_invalid_additional_secret_keeps_its_last_good_entries_and_the_original_goes_on() {
    let mut world = World::new("q.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    world.take_done();
    world.add(ADDITIONAL, Some(INVALID));
    let plan = world.settle();
    assert_eq!(reported(&plan)[..2], ["Valid=False/InvalidSecret", "Merged=True/Merged"]);
    assert_eq!(reported(&plan)[3], "Degraded=True/InvalidSecret", "who watches only this one knows it too");
    assert_eq!(message(&plan, "Degraded"), message(&plan, "Valid"));
    assert_eq!(world.take_done(), ["apply configmap"]);
    assert_eq!(
        message(&plan, "Valid"),
        r#"auths["a.io"].auth: not base64 (line 1, column 26) (its last good entries stay)"#
    );
    assert!(!format!("{:?}", world.events).contains("SECRET"));
    world.original(&document("q.io=P s.io=O"));
    world.settle();
    assert_eq!(world.deployed(), "q.io P r.io V s.io O");
    assert_eq!(world.take_done(), ["apply secret", "apply configmap"]);
    world.additional("r.io=W");
    let plan = world.settle_nodes();
    assert_eq!(world.deployed(), "q.io P r.io W s.io O");
    assert_eq!(reported(&plan)[0], "Valid=True/Valid");
}

#[test]
fn a_secret_that_was_never_valid_deploys_nothing_and_is_reported() {
    let mut world = World::new("q.io=O");
    world.add(ADDITIONAL, Some(INVALID));
    let plan = world.settle();
    assert_eq!((world.deployed().as_str(), world.take_done()), ("-", vec!["apply configmap".to_owned()]));
    assert_eq!(
        reported(&plan),
        [
            "Valid=False/InvalidSecret",
            "Merged=False/NothingToMerge",
            "RolledOut=False/NotDeployed",
            "Degraded=True/NothingToMerge"
        ]
    );
}

/// Contents that the peer refuses, crashes on, or takes for absent: all are named, none panics.
#[rstest]
#[case::no_key(None, "has no key .dockerconfigjson")]
#[case::no_json(Some("not json"), "expected a value")]
#[case::other_case(Some(r#"{"AUTHS":{}}"#), "has no member \"auths\"")]
#[case::null(Some(r#"{"auths":null}"#), "must be an object, not null")]
#[case::empty(Some(r#"{"auths":{}}"#), "names no registry")]
#[case::nothing(Some(""), "is empty")]
fn odd_content_is_named(#[case] content: Option<&str>, #[case] expected: &str) {
    let mut world = World::new("q.io=O");
    world.add(ADDITIONAL, content);
    let plan = world.settle();
    assert_eq!(reported(&plan)[0], "Valid=False/InvalidSecret");
    assert!(message(&plan, "Valid").contains(expected), "{}", message(&plan, "Valid"));
}

#[test]
fn bad_entries_may_be_left_out_by_name() {
    let mut world = World::new("q.io=O");
    world.policy.invalid = InvalidEntries::Skip;
    world.add(ADDITIONAL, Some(&document("a.io=! r.io=V")));
    let plan = world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V");
    assert_eq!(reported(&plan)[..2], ["Valid=False/EntriesLeftOut", "Merged=True/Merged"]);
    assert_eq!(reported(&plan)[3], "Degraded=True/EntriesLeftOut");
    assert!(message(&plan, "Valid").starts_with(r#"auths["a.io"].auth: not base64"#));
}

#[rstest]
#[case::missing(false, None, "OriginalMissing")]
#[case::no_key(true, None, "OriginalMissing")]
#[case::no_auths(true, Some("{}"), "OriginalInvalid")]
#[case::null(true, Some(r#"{"auths":null}"#), "OriginalInvalid")]
fn without_an_original_nothing_is_touched(#[case] is_there: bool, #[case] text: Option<&str>, #[case] reason: &str) {
    let mut world = World::new("q.io=O");
    let broken = is_there.then(|| world.secret(names::ORIGINAL_PULL_SECRET, text));
    world.additional("r.io=V");
    world.settle_nodes();
    world.take_done();
    world.facts.original.clone_from(&broken);
    world.additional("r.io=W");
    let plan = world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V");
    assert_eq!(
        reported(&plan)[1..],
        [format!("Merged=False/{reason}"), "RolledOut=True/RolledOut".to_owned(), format!("Degraded=True/{reason}")]
    );
    let mut fresh = World::new("q.io=O");
    fresh.facts.original = broken;
    fresh.additional("r.io=V");
    assert_eq!(reported(&fresh.settle())[3], format!("Degraded=True/{reason}"));
    assert_eq!(fresh.deployed(), "-");
}

/// The peer's merge table; what wins where both name a registry is a setting.
#[rstest]
#[case(ConflictPolicy::AdditionalWins, "r1.io O r2.io V r3.io V", "r1.io=O r2.io=O", "r2.io=V r3.io=V")]
#[case(ConflictPolicy::OriginalWins, "r1.io O r2.io O r3.io V", "r1.io=O r2.io=O", "r2.io=V r3.io=V")]
fn the_conflict_policy_decides(
    #[case] conflict: ConflictPolicy,
    #[case] expected: &str,
    #[case] original: &str,
    #[case] additional: &str,
) {
    let mut world = World::new(original);
    world.policy.merge.conflict = conflict;
    world.additional(additional);
    let plan = world.settle();
    assert_eq!(world.deployed(), expected);
    assert!(message(&plan, "Merged").contains("in conflict: r2.io"));
}

#[test]
fn protected_registries_are_the_originals() {
    let mut world = World::new("q.io=O").protecting("q.io");
    world.additional("q.io/team=V r.io=V");
    let plan = world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V");
    assert!(message(&plan, "Merged").contains("protected, left to the original: q.io/team"));
}

#[test]
fn several_additional_secrets_come_in_order_of_priority_and_name() {
    let mut world = World::new("q.io=O");
    world.additional("a.io=V b.io=V");
    world.add("b-team", Some(&document("b.io=W c.io=W")));
    world.add("c-team", Some(&document("c.io=P")));
    world.settle();
    assert_eq!(world.deployed(), "a.io V b.io V c.io W q.io O");
    let prior = world.secret("c-team", Some(&document("c.io=P")));
    let mut prior = std::sync::Arc::into_inner(prior).unwrap();
    prior.metadata.annotations = Some([(names::ANNOTATION_PRIORITY.to_owned(), "10".to_owned())].into());
    world.delete("c-team");
    world.facts.additional.push(prior.into());
    world.settle();
    assert_eq!(world.deployed(), "a.io V b.io V c.io P q.io O");
    // One that is invalid does not keep another one, or the original, from the nodes; what it had stays.
    world.add(ADDITIONAL, Some(INVALID));
    world.add("b-team", Some(&document("c.io=W d.io=W")));
    let plan = world.settle();
    assert_eq!(world.deployed(), "a.io V b.io V c.io P d.io W q.io O");
    assert!(message(&plan, "Valid").starts_with("additional-pull-secret: auths"), "{}", message(&plan, "Valid"));
    world.delete(ADDITIONAL);
    world.settle();
    assert_eq!(world.deployed(), "c.io P d.io W q.io O");
}

#[test]
fn content_that_is_too_large_is_refused_and_the_last_stays() {
    let mut world = World::new("q.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    world.policy.merge.max_bytes = 80;
    world.additional("r.io=V s.io=V t.io=V");
    let plan = world.settle();
    assert_eq!((world.deployed().as_str(), reported(&plan)[0].as_str()), ("q.io O r.io V", "Valid=False/TooLarge"));
    assert_eq!(
        message(&plan, "Valid"),
        "the merged document has 103 bytes, 80 are allowed (its last good entries stay)"
    );
}

/// A tenant's spelling of the platform's registry is that registry: the policy decides, and the status says what it has decided.
#[rstest]
#[case(ConflictPolicy::AdditionalWins, "QUAY.io", "quay.io V r.io O")]
#[case(ConflictPolicy::AdditionalWins, "quay.io/", "quay.io V r.io O")]
#[case(ConflictPolicy::OriginalWins, "QUAY.io", "quay.io O r.io O")]
#[case(ConflictPolicy::OriginalWins, "https://QUAY.io/v2/", "quay.io O r.io O")]
fn a_spelling_is_no_way_around_the_policy(
    #[case] conflict: ConflictPolicy,
    #[case] spelling: &str,
    #[case] expected: &str,
) {
    let mut world = World::new("quay.io=O r.io=O");
    world.policy.merge.conflict = conflict;
    world.additional(&format!("{spelling}=V"));
    let plan = world.settle();
    assert_eq!(world.deployed(), expected);
    assert_eq!(reported(&plan)[0], "Valid=True/ValidWithWarnings");
    assert!(message(&plan, "Valid").contains("not every reader on a node finds images"), "{}", message(&plan, "Valid"));
    assert!(message(&plan, "Merged").contains("in conflict: quay.io"), "{}", message(&plan, "Merged"));
    let replaced = "; additional Secrets replace the original's entries for: quay.io";
    let is_replaced = conflict == ConflictPolicy::AdditionalWins;
    assert_eq!(message(&plan, "Degraded").ends_with(replaced), is_replaced, "{}", message(&plan, "Degraded"));
    assert!(world.events.iter().any(|event| event.reason.as_str() == "ValidWithWarnings"), "{:?}", world.events);
}

#[test]
fn a_later_replacement_is_an_event() {
    let mut world = World::new("quay.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    world.events.clear();
    world.additional("r.io=V QUAY.io=V");
    world.settle();
    let notes: Vec<&str> = world.events.iter().map(|event| event.note.as_str()).collect();
    assert!(notes.iter().any(|note| note.ends_with("replace the original's entries for: quay.io")), "{notes:?}");
}

#[test]
fn one_document_that_names_a_registry_twice_is_one_entry_and_a_warning() {
    let mut world = World::new("q.io=O");
    world.additional("https://r.io/=W r.io=V");
    let plan = world.settle();
    assert_eq!(
        (world.deployed().as_str(), reported(&plan)[0].as_str()),
        ("q.io O r.io V", "Valid=True/ValidWithWarnings")
    );
    assert!(message(&plan, "Valid").contains("is the same registry as an earlier key"), "{}", message(&plan, "Valid"));
}

#[test]
fn a_part_of_the_originals_registry_is_reported() {
    let mut world = World::new("quay.io=O");
    world.additional("quay.io/team=V");
    let plan = world.settle();
    assert_eq!(world.deployed(), "quay.io O quay.io/team V");
    let part = "used before the original's entry: quay.io/team before quay.io";
    assert!(message(&plan, "Merged").ends_with(part), "{}", message(&plan, "Merged"));
}

#[test]
fn the_order_of_members_changes_no_byte() {
    let bytes = |text: &str| {
        let mut world = World::new("q.io=O");
        world.add(ADDITIONAL, Some(text));
        world.settle();
        secrecy::ExposeSecret::expose_secret(world.facts.global.as_ref().unwrap().content.as_ref().unwrap()).to_vec()
    };
    let one = bytes(
        r#"{"auths":{"r.io":{"auth":"dTpW","email":"a@b"},"s.io":{"username":"u","password":"V","auth":"dTpW"}}}"#,
    );
    let other = bytes(r#"{"auths":{"https://s.io/":{"auth":"dTpW"},"r.io":{"email":"a@b","auth":"dTpW"}}}"#);
    assert_eq!(String::from_utf8(one), String::from_utf8(other));
}
