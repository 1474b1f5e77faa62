//! Keeps the Job's record of a secret in the secret's annotations, for later runs.
//!
//! A version is announced before it is added, and taken into the record after it was read back. The announcement is the
//! claim that keeps an older generation from writing, and the journal from which the next run picks up after a crash. The content is
//! always read by number; a stale or damaged record costs calls, never correctness.

use std::collections::{BTreeMap, BTreeSet};

use fleet_model::{Generation, Incarnation, Owner, names};
use secret_store::VersionNumber;

/// The record of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// The newest generation that has claimed the secret.
    pub generation: Option<Generation>,
    /// The incarnation of the cluster that the content belongs to.
    pub incarnation: Option<Incarnation>,
    /// The version that holds the current content.
    pub version: Option<VersionNumber>,
    /// Number that a version is about to get. A killed run leaves it behind.
    pub announced: Option<VersionNumber>,
    /// Digest of the announced version's content, keyed by the current version's.
    pub announced_digest: Option<String>,
    /// The keyed digest of the current content.
    pub digest: Option<String>,
    /// Versions that this project has added and not destroyed. No other version is ever destroyed.
    pub added: BTreeSet<VersionNumber>,
    /// The owner, in the record of a version; annotations have it in the labels beside them.
    pub owner: Option<Owner>,
}

/// Maximum number of recorded versions, so that annotations stay far below the store's 16 KiB. The oldest are dropped
/// first; those versions are never destroyed.
const MAX_ADDED: usize = 200;

impl Record {
    /// Reads the record from a secret's annotations. An invalid value counts as absent.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| annotations.get(name).map(String::as_str);
        let added = text(names::ANNOTATION_ADDED).unwrap_or_default();
        Self {
            generation: text(names::ANNOTATION_GENERATION).and_then(|text| text.parse().ok()),
            incarnation: text(names::ANNOTATION_INCARNATION).and_then(|text| text.parse().ok()),
            version: text(names::ANNOTATION_VERSION).and_then(|text| text.parse().ok()),
            announced: text(names::ANNOTATION_ANNOUNCED).and_then(|text| text.parse().ok()),
            announced_digest: text(names::ANNOTATION_ANNOUNCED_DIGEST).map(str::to_owned),
            digest: text(names::ANNOTATION_DIGEST).map(str::to_owned),
            added: added.split(',').filter_map(|number| number.parse().ok()).collect(),
            owner: annotations.contains_key(names::LABEL_CLUSTER_ID).then(|| Owner::of(annotations)),
        }
    }

    /// Replaces the record in `annotations`; other annotations stay.
    pub fn write(&self, annotations: &mut BTreeMap<String, String>) {
        let surplus = self.added.len().saturating_sub(MAX_ADDED);
        let added: Vec<String> = self.added.iter().skip(surplus).map(ToString::to_string).collect();
        let values = [
            (names::ANNOTATION_GENERATION, self.generation.map(|generation| generation.to_string())),
            (names::ANNOTATION_INCARNATION, self.incarnation.as_ref().map(ToString::to_string)),
            (names::ANNOTATION_VERSION, self.version.map(|version| version.to_string())),
            (names::ANNOTATION_ANNOUNCED, self.announced.map(|version| version.to_string())),
            (names::ANNOTATION_ANNOUNCED_DIGEST, self.announced_digest.clone()),
            (names::ANNOTATION_DIGEST, self.digest.clone()),
            (names::ANNOTATION_ADDED, Some(added.join(",")).filter(|added| !added.is_empty())),
        ];
        for (name, value) in values {
            match value {
                Some(value) => annotations.insert(name.to_owned(), value),
                None => annotations.remove(name),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_record_survives_its_annotations_beside_those_of_others() {
        let written = annotations(&[
            ("hyperfleet-added", "3,4,10"),
            ("hyperfleet-announced", "11"),
            ("hyperfleet-announced-digest", "hmac-sha256:01"),
            ("hyperfleet-digest", "hmac-sha256:00"),
            ("hyperfleet-generation", "7"),
            ("hyperfleet-incarnation", "2026-01-02T03:04:05Z"),
            ("hyperfleet-version", "10"),
            ("team", "images"),
        ]);
        let record = Record::read(&written);
        assert_eq!(record.generation, Generation::new(7));
        assert_eq!(record.added.iter().map(|number| number.get()).collect::<Vec<_>>(), [3, 4, 10]);
        let mut again = annotations(&[("team", "images"), ("hyperfleet-version", "9")]);
        record.write(&mut again);
        assert_eq!(again, written);
    }

    #[test]
    fn an_invalid_value_counts_as_absent() {
        let damaged = annotations(&[
            ("hyperfleet-added", "x,-1,,2"),
            ("hyperfleet-generation", "new"),
            ("hyperfleet-version", "0"),
        ]);
        let record = Record::read(&damaged);
        assert_eq!(record, Record { added: VersionNumber::new(2).into_iter().collect(), ..Record::default() });
    }

    #[test]
    fn the_list_of_versions_stays_within_the_stores_limit() {
        let record = Record { added: (1..=5_000).filter_map(VersionNumber::new).collect(), ..Record::default() };
        let mut written = BTreeMap::new();
        record.write(&mut written);
        assert_eq!(Record::read(&written).added.len(), MAX_ADDED);
        assert!(Record::read(&written).added.contains(&VersionNumber::new(5_000).unwrap()));
    }
}
