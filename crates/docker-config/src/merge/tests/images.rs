//! No spelling of an additional document takes the original's entry away from an image, by the rules of either reader.

use proptest::prelude::*;
use rstest::rstest;

use super::{ADDITIONAL, ORIGINAL, document, merged, policy};
use crate::lookup::Image;
use crate::merge::{Merged, Origin};
use crate::normal::normal_key;
use crate::{Document, RegistryKey};

const KEYS: [&str; 34] = [
    "quay.io",
    "https://quay.io",
    "http://quay.io/",
    "https://quay.io/v1/",
    "https://quay.io/v2/v2/x",
    "quay.io/v2/",
    "quay.io/v2/x",
    "quay.io/v1",
    "quay.io/",
    "quay.io/a",
    "quay.io/a/",
    "QUAY.io/a",
    "https://quay.io/a",
    "http://quay.io/b",
    "quay.io/a/b",
    "quay.io/my",
    "quay.io:443",
    "https://QUAY.io:443/",
    "QUAY.IO",
    "https://Quay.io/",
    "*.io",
    "q*.io/a",
    "*",
    "docker.io",
    "https://docker.io/",
    "index.docker.io",
    "https://index.docker.io/v1/",
    "Index.Docker.IO",
    "index.docker.io/library",
    "docker.io/library",
    "registry-1.docker.io",
    "https://registry-1.docker.io/v2/",
    "quay.io?x",
    "",
];

const IMAGES: [&str; 12] = [
    "quay.io/a/b",
    "quay.io/a/b/c",
    "quay.io/b",
    "quay.io/v1/x",
    "quay.io/v2/x/y",
    "quay.io/x",
    "quay.io/mycompany/x",
    "quay.io:443/a/b",
    "nginx",
    "team/app",
    "registry-1.docker.io/team/app",
    "registry.io/x",
];

/// Returns true if `key` names a part of the registry that the original's key is for, as containers/image reads it.
fn is_part_of(key: &str, original: &str) -> bool {
    let host_or_path = containers_image_form(original);
    key.strip_prefix(&host_or_path).is_some_and(|rest| rest.starts_with('/'))
}

fn containers_image_form(key: &str) -> String {
    let [_, containers_image] = RegistryKey::parse(key).unwrap().as_read();
    containers_image
}

fn is_spelling_of(key: &str, form: &str) -> bool {
    RegistryKey::parse(key).is_ok() && (containers_image_form(key) == form || normal_key(key) == normal_key(form))
}

fn is_from_original(merged: &Merged, key: &str) -> bool {
    let of = |origin: &Option<Origin>| *origin == Some(Origin::Original);
    merged.decisions.iter().any(|decision| of(&decision.winner) && decision.keys.iter().any(|found| found == key))
}

/// Returns true if the policy has given one of the registries that this key of the original is for to an additional document.
fn is_overridden(merged: &Merged, key: &str) -> bool {
    let forms = [normal_key(key), normal_key(&containers_image_form(key))];
    merged
        .decisions
        .iter()
        .any(|decision| forms.contains(&decision.registry) && decision.overridden.contains(&Origin::Original))
}

fn credential(document: &Document, key: &str) -> Vec<u8> {
    secrecy::ExposeSecret::expose_secret(&document.entry(key).unwrap().to_bytes()).to_vec()
}

/// Checks that each reader still finds what it found by the original alone.
fn check(original: &Document, merged: &Merged, image: &str) -> Result<(), String> {
    let image = Image::parse(image).unwrap();
    let result = &merged.document;
    for key in image.kubelet_keys(original.keys()).into_iter().filter(|key| !is_overridden(merged, key)) {
        let tried = image.kubelet_keys(result.keys());
        if !tried.iter().any(|found| credential(result, found) == credential(original, key)) {
            return Err(format!("kubelet used {key} for {image:?} and tries {tried:?} now"));
        }
    }
    let Some(key) = image.containers_image_key(original.keys()).filter(|key| !is_overridden(merged, key)) else {
        return Ok(());
    };
    let found = image.containers_image_key(result.keys());
    // Of the original's own spellings of one registry, readers take any, unless one is exact.
    let form = containers_image_form(key);
    let is_same = |other: &&str| *other == key || (key != form && is_spelling_of(other, &form));
    let same: Vec<Vec<u8>> = original.keys().filter(is_same).map(|key| credential(original, key)).collect();
    let is_kept = found.is_some_and(|found| {
        let is_same = is_from_original(merged, found) && same.contains(&credential(result, found));
        is_same || is_part_of(found, key)
    });
    if is_kept { Ok(()) } else { Err(format!("containers/image used {key} for {image:?} and uses {found:?} now")) }
}

fn entries(values: &'static str) -> impl Strategy<Value = String> {
    proptest::collection::btree_map(prop::sample::select(&KEYS[..]), values, 0..6)
        .prop_map(|entries| entries.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_image_of_the_original_keeps_its_entry(
        original in entries("[OPQ]"),
        one in entries("[VW]"),
        two in entries("[XY]"),
        original_wins in any::<bool>(),
    ) {
        let policy = policy(if original_wins { ORIGINAL } else { ADDITIONAL }, &[]);
        let merged = merged(&original, &[&one, &two], &policy).unwrap();
        let original = document(&original);
        for image in IMAGES {
            let kept = check(&original, &merged, image);
            prop_assert!(kept.is_ok(), "{}: {:?}", kept.unwrap_err(), merged.document.keys().collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_key_is_written_normalised(original in entries("[OPQ]"), one in entries("[VW]"), original_wins in any::<bool>()) {
        let policy = policy(if original_wins { ORIGINAL } else { ADDITIONAL }, &[]);
        let merged = merged(&original, &[&one], &policy).unwrap();
        for decision in &merged.decisions {
            let (first, further) = decision.keys.split_first().unwrap();
            prop_assert_eq!(&normal_key(first), first);
            let is_original = decision.winner == Some(Origin::Original);
            prop_assert!(further.is_empty() || is_original, "one entry a registry: {:?}", decision.keys);
        }
    }
}

/// The review's reproduction: a tenant's spelling took the platform's credential off every node.
#[rstest]
fn a_tenants_spelling_displaces_nothing(
    #[values("QUAY.io", "https://QUAY.io/", "quay.io/", "http://quay.io/v1/")] spelling: &str,
) {
    let image = Image::parse("quay.io/openshift-release-dev/ocp-release").unwrap();
    for (conflict, expected) in [(ADDITIONAL, "V"), (ORIGINAL, "O")] {
        let merged = merged("quay.io=O", &[&format!("{spelling}=V")], &policy(conflict, &[])).unwrap();
        assert_eq!(image.kubelet_keys(merged.document.keys()), ["quay.io"]);
        assert_eq!(image.containers_image_key(merged.document.keys()), Some("quay.io"));
        assert_eq!(super::written(&merged.document), format!("quay.io={expected}"));
    }
}
