//! Precedence, and the invariants of merging.

mod admitting;
mod images;

use proptest::prelude::*;
use rstest::rstest;
use secrecy::ExposeSecret as _;

use super::{ConflictPolicy, Merged, Policy, Prefix, Source, TooLarge, merge};
use crate::normal::normal_key;
use crate::{Document, Limits};

const ADDITIONAL: ConflictPolicy = ConflictPolicy::AdditionalWins;
const ORIGINAL: ConflictPolicy = ConflictPolicy::OriginalWins;

fn policy(conflict: ConflictPolicy, protected: &[&str]) -> Policy {
    let protected = protected.iter().map(|prefix| Prefix::parse(prefix).unwrap()).collect();
    Policy { conflict, protected, max_bytes: 100_000 }
}

/// `quay.io=a b.io=b` as a document, each value standing for a credential.
fn document(entries: &str) -> Document {
    let entries = entries.split_whitespace().map(|entry| {
        let (key, value) = entry.rsplit_once('=').unwrap();
        format!(r#""{key}": {{"auth": "{value}"}}"#)
    });
    let text = format!(r#"{{"auths": {{{}}}}}"#, entries.collect::<Vec<_>>().join(","));
    Document::parse(text.as_bytes(), &Limits::default()).unwrap()
}

fn written(document: &Document) -> String {
    let entries = document.keys().map(|key| {
        let entry = String::from_utf8(document.entry(key).unwrap().to_bytes().expose_secret().to_vec()).unwrap();
        format!("{key}={}", entry.trim_start_matches(r#"{"auth":""#).trim_end_matches(r#""}"#))
    });
    entries.collect::<Vec<_>>().join(" ")
}

fn merged(original: &str, additional: &[&str], policy: &Policy) -> Result<Merged, TooLarge> {
    let documents: Vec<(String, Document)> =
        additional.iter().zip(1..).map(|(text, number)| (format!("s{number}"), document(text))).collect();
    let sources: Vec<Source<'_>> = documents.iter().map(|(name, document)| Source { name, document }).collect();
    merge(&document(original), &sources, policy)
}

fn rendered(merged: &Merged) -> String {
    merged.decisions.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The cases of HyperShift's own controller, by either policy; both documents name only `r1`.
#[rstest]
#[case("r1=V", "r2=V", "r1=V r2=V", "r1=V r2=V")]
#[case("r1=V", "r2=V r3=V", "r1=V r2=V r3=V", "r1=V r2=V r3=V")]
#[case("r1=V r2=V", "r3=V", "r1=V r2=V r3=V", "r1=V r2=V r3=V")]
#[case("r1=O", "r1=V", "r1=V", "r1=O")]
#[case("r1=O r2=O", "r1=V r3=V", "r1=V r2=O r3=V", "r1=O r2=O r3=V")]
#[case("r1=O r2=O", "r1=V r2=V r3=V", "r1=V r2=V r3=V", "r1=O r2=O r3=V")]
#[case("r1=V r2=V", "", "r1=V r2=V", "r1=V r2=V")]
fn cases_of_hypershift(
    #[case] original: &str,
    #[case] additional: &str,
    #[case] additional_wins: &str,
    #[case] original_wins: &str,
) {
    let by = |conflict| written(&merged(original, &[additional], &policy(conflict, &[])).unwrap().document);
    assert_eq!(by(ADDITIONAL), additional_wins);
    assert_eq!(by(ORIGINAL), original_wins);
}

#[rstest]
#[case::spellings_are_one_registry(ADDITIONAL, "https://quay.io/=O quay.io/v2/=P", &["QUAY.io=V"], "quay.io=V",
    "quay.io: from s1, which takes precedence over the original (over the original)")]
#[case::ports_are_another(ADDITIONAL, "quay.io=O", &["quay.io:443=V"], "quay.io=O quay.io:443=V",
    "quay.io: from the original, the only one that names it; quay.io:443: from s1, the only one that names it")]
#[case::docker_hub(ORIGINAL, "https://index.docker.io/v1/=O", &["docker.io=V"], "docker.io=O",
    "docker.io: from the original, which takes precedence over additional ones (over s1)")]
#[case::the_first_of_several(ADDITIONAL, "a.io=O", &["a.io=V b.io=V", "a.io=W b.io=W c.io=W"], "a.io=V b.io=V c.io=W",
    "a.io: from s1, which takes precedence over the original (over the original, s2); b.io: from s1, the first of several additional ones (over s2); c.io: from s2, the only one that names it")]
#[case::the_same_is_no_conflict(ADDITIONAL, "a.io=YTpi", &["a.io=YTpi"], "a.io=YTpi",
    "a.io: from the original, as all have the same entry (over s1)")]
#[case::one_document_names_it_twice(ADDITIONAL, "a.io=O", &["https://b.io=V b.io=W"], "a.io=O b.io=W",
    "a.io: from the original, the only one that names it; b.io: from s1, the only one that names it")]
#[case::the_original_names_it_twice(ORIGINAL, "https://a.io/=O http://a.io/=P", &["A.io=V"], "a.io=P https://a.io/=O",
    "a.io: from the original, which takes precedence over additional ones (over s1)")]
#[case::the_original_repeats_itself(ORIGINAL, "https://a.io/=O http://a.io/=O", &[], "a.io=O",
    "a.io: from the original, the only one that names it")]
#[case::another_spelling_of_the_same(ADDITIONAL, "https://a.io/=YTpi", &["A.io=YTpi"], "a.io=YTpi",
    "a.io: from the original, as all have the same entry (over s1)")]
#[case::a_part(ORIGINAL, "a.io=O", &["https://a.io/x=V"], "a.io=O a.io/x=V",
    "a.io: from the original, the only one that names it; a.io/x: from s1, the only one that names it (used before a.io of the original)")]
#[case::the_host_of_a_url(ORIGINAL, "https://a.io/x=O", &["a.io=V"], "a.io=O a.io/x=O",
    "a.io: from the original, which takes precedence over additional ones (over s1); a.io/x: from the original, the only one that names it")]
fn decisions_are_rendered(
    #[case] conflict: ConflictPolicy,
    #[case] original: &str,
    #[case] additional: &[&str],
    #[case] expected: &str,
    #[case] because: &str,
) {
    let merged = merged(original, additional, &policy(conflict, &[])).unwrap();
    assert_eq!(written(&merged.document), expected);
    assert_eq!(rendered(&merged), because);
}

#[rstest]
#[case::the_prefix_itself("registry.redhat.io", "registry.redhat.io=O", "registry.redhat.io=V", false)]
#[case::in_another_spelling("registry.redhat.io", "registry.redhat.io=O", "https://Registry.Redhat.io/v1/=V", false)]
#[case::below_it("registry.redhat.io", "registry.redhat.io=O", "registry.redhat.io/ubi9=V", false)]
#[case::below_it_though_nothing_is_there("registry.redhat.io", "a.io=O", "registry.redhat.io/ubi9=V", false)]
#[case::the_whole_registry_of_a_part("quay.io/release", "quay.io=O", "quay.io=V", false)]
#[case::a_registry_whose_part_has_its_own("quay.io/release", "quay.io/release=O", "quay.io=V", true)]
#[case::first_characters_as_kubelet_reads_them("quay.io/release", "quay.io=O", "quay.io/rel=V", false)]
#[case::another_part("quay.io/release", "quay.io=O", "quay.io/team=V", true)]
#[case::a_part_that_begins_alike("quay.io/release", "quay.io=O", "quay.io/release2=V", true)]
#[case::a_scheme_makes_it_the_host("quay.io", "quay.io=O", "https://quay.io/team=V", false)]
#[case::a_glob_that_comes_later("registry.redhat.io", "registry.redhat.io=O", "*.redhat.io=V", true)]
#[case::a_glob_below_a_glob("registry.redhat.io", "*.redhat.io=O", "*.redhat.io/ubi9=V", false)]
#[case::another_port("quay.io", "quay.io=O", "quay.io:8443=V", true)]
#[case::nothing_to_shadow("quay.io/release", "a.io=O", "quay.io=V", true)]
fn protected_parts_are_the_originals(
    #[case] protected: &str,
    #[case] original: &str,
    #[case] additional: &str,
    #[case] taken: bool,
) {
    for conflict in [ADDITIONAL, ORIGINAL] {
        let merged = merged(original, &[additional], &policy(conflict, &[protected])).unwrap();
        let is_refused = merged.decisions.iter().any(|decision| decision.reason == super::MergeReason::Protected);
        assert_eq!(!is_refused, taken, "{}", rendered(&merged));
        assert_eq!(written(&merged.document).contains("=V"), taken, "{}", rendered(&merged));
        assert!(written(&merged.document).contains("=O"), "{}", rendered(&merged));
    }
}

#[test]
fn members_beside_auths_are_the_originals() {
    let read = |text: &str| Document::parse(text.as_bytes(), &Limits::default()).unwrap();
    let original = read(r#"{"auths": {"a.io": {}}, "credHelpers": {"b.io": "x"}}"#);
    let additional = read(r#"{"auths": {}, "credHelpers": {"c.io": "evil"}, "credsStore": "y"}"#);
    let sources = [Source { name: "s1", document: &additional }];
    let merged = merge(&original, &sources, &policy(ADDITIONAL, &[])).unwrap();
    let bytes = merged.document.to_bytes();
    assert_eq!(bytes.expose_secret(), br#"{"auths":{"a.io":{}},"credHelpers":{"b.io":"x"}}"#);
    let left_out: Vec<String> = merged.left_out.iter().map(|(origin, name)| format!("{origin} {name}")).collect();
    assert_eq!(left_out, ["s1 credHelpers", "s1 credsStore"]);
}

#[test]
fn a_result_that_is_too_large_is_refused() {
    let small = Policy { max_bytes: 60, ..policy(ADDITIONAL, &[]) };
    assert!(merged("a.io=O", &["b.io=V"], &small).is_ok());
    let error = merged("a.io=O", &["b.io=V c.io=V"], &small).unwrap_err();
    assert_eq!(error.to_string(), "the merged document has 71 bytes, 60 are allowed");
}

#[rstest]
#[case("*.redhat.io")]
#[case("")]
#[case("https://user@quay.io")]
fn prefixes_that_protect_nothing_are_refused(#[case] text: &str) {
    Prefix::parse(text).unwrap_err();
}

const KEYS: [&str; 9] = ["a.io", "https://a.io/", "A.io", "a.io/x", "b.io", "b.io:443", "*.io", "https://b.io/x", "?"];

fn entries() -> impl Strategy<Value = String> {
    proptest::collection::btree_map(prop::sample::select(&KEYS[..]), "[a-c]", 0..6)
        .prop_map(|entries| entries.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "))
}

fn policies() -> impl Strategy<Value = Policy> {
    let protected = proptest::collection::vec(prop::sample::select(&["a.io", "a.io/x", "b.io"][..]), 0..2);
    (any::<bool>(), protected)
        .prop_map(|(original, protected)| policy(if original { ORIGINAL } else { ADDITIONAL }, &protected))
}

proptest! {
    #[test]
    fn merging_again_changes_nothing(original in entries(), one in entries(), two in entries(), policy in policies()) {
        let (one, two) = (document(&one), document(&two));
        let sources = [Source { name: "s1", document: &one }, Source { name: "s2", document: &two }];
        let once = merge(&document(&original), &sources, &policy).unwrap().document;
        let twice = merge(&once, &sources, &policy).unwrap().document;
        prop_assert_eq!(written(&once), written(&twice));
    }

    #[test]
    fn no_registry_of_the_original_is_lost(original in entries(), one in entries(), two in entries(), policy in policies()) {
        let merged = merged(&original, &[&one, &two], &policy).unwrap();
        let result: Vec<String> = merged.document.keys().map(normal_key).collect();
        for key in document(&original).keys() {
            prop_assert!(result.contains(&normal_key(key)), "{} in {}", key, rendered(&merged));
        }
    }

    #[test]
    fn the_order_of_disjoint_documents_does_not_matter(original in entries(), one in entries(), two in entries(), policy in policies()) {
        let (one, mut two) = (document(&one), document(&two));
        let taken: Vec<String> = one.keys().map(normal_key).collect();
        let common: Vec<String> = two.keys().filter(|key| taken.contains(&normal_key(key))).map(str::to_owned).collect();
        for key in common {
            two.remove(&key);
        }
        let [one, two] = [Source { name: "s1", document: &one }, Source { name: "s2", document: &two }];
        let there = merge(&document(&original), &[one, two], &policy).unwrap();
        let back = merge(&document(&original), &[two, one], &policy).unwrap();
        prop_assert_eq!(written(&there.document), written(&back.document));
        prop_assert_eq!(there.decisions, back.decisions);
    }
}
