//! What the Job writes on a secret for its later runs, kept in the secret's annotations.
//!
//! A version is announced before it is added, and taken into the record after it was read back. The announcement is the
//! claim that keeps an older generation from writing, and the journal from which the next run picks up after a crash. What a run believes of the content it
//! always reads by number; a stale or damaged record costs calls, never correctness.

use std::collections::{BTreeMap, BTreeSet};

use fleet_model::{Generation, names};
use secret_store::VersionNumber;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// The newest generation that has claimed the secret.
    pub generation: Option<Generation>,
    /// The version that holds the current content.
    pub version: Option<VersionNumber>,
    /// The number that a version is about to get. A run that was killed leaves it behind.
    pub announced: Option<VersionNumber>,
    /// The keyed digest of the current content.
    pub digest: Option<String>,
    /// The versions that this project is known to have added and has not destroyed: nothing else is ever destroyed to
    /// keep few.
    pub added: BTreeSet<VersionNumber>,
}

/// More numbers than this are not kept, so that annotations stay far below the store's 16 KiB; the oldest are dropped
/// first, and with them the right to destroy those versions.
const MOST_ADDED: usize = 200;

impl Record {
    /// The record in a secret's annotations. A value that cannot be read counts as absent.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| annotations.get(name).map(String::as_str);
        let added = text(names::ANNOTATION_ADDED).unwrap_or_default();
        Self {
            generation: text(names::ANNOTATION_GENERATION).and_then(|text| text.parse().ok()),
            version: text(names::ANNOTATION_VERSION).and_then(|text| text.parse().ok()),
            announced: text(names::ANNOTATION_ANNOUNCED).and_then(|text| text.parse().ok()),
            digest: text(names::ANNOTATION_DIGEST).map(str::to_owned),
            added: added.split(',').filter_map(|number| number.parse().ok()).collect(),
        }
    }

    /// Puts the record in place of the one in `annotations`; other annotations stay.
    pub fn write(&self, annotations: &mut BTreeMap<String, String>) {
        let surplus = self.added.len().saturating_sub(MOST_ADDED);
        let added: Vec<String> = self.added.iter().skip(surplus).map(ToString::to_string).collect();
        let values = [
            (names::ANNOTATION_GENERATION, self.generation.map(|generation| generation.to_string())),
            (names::ANNOTATION_VERSION, self.version.map(|version| version.to_string())),
            (names::ANNOTATION_ANNOUNCED, self.announced.map(|version| version.to_string())),
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
            ("hyperfleet-digest", "hmac-sha256:00"),
            ("hyperfleet-generation", "7"),
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
    fn what_cannot_be_read_counts_as_absent() {
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
        assert_eq!(Record::read(&written).added.len(), MOST_ADDED);
        assert!(Record::read(&written).added.contains(&VersionNumber::new(5_000).unwrap()));
    }
}
