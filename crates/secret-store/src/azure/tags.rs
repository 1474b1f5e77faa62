//! Number, metadata and record of a version as its tags.
//!
//! Each version carries the secret's metadata, as a list of secrets shows the tags of the newest version. Metadata and record are JSON in
//! ASCII, in pieces. Other tags belong to people: a new version takes them over from the one before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::contract::Metadata;
use crate::encoding::{self, piece_key};

/// Tags: values by key.
pub(super) type Tags = BTreeMap<String, String>;

/// The tag with the version's number; 0 is that of the placeholder of a secret without versions.
const VERSION: &str = "hyperfleet-version";
/// The tag of a copy, with the id of the version whose content it has.
const COPY_OF: &str = "hyperfleet-copy-of";
/// The tag of a version whose content is not read any more.
const DESTROYED: &str = "hyperfleet-destroyed";
/// The first tag of the metadata.
const METADATA: &str = "hyperfleet-metadata";
/// The first tag of the record.
const RECORD: &str = "hyperfleet-record";
/// The longest value of a tag.
const MAX_VALUE: usize = 256;
/// Number of tags that a version gets: Azure allows 15, and a copy of a version that is destroyed has two more.
const MAX_TAGS: usize = 13;

/// The metadata of a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Details {
    /// Made with the secret, so that an etag does not outlive it.
    uid: String,
    /// Counts the changes, so that each changes the etag.
    revision: u64,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

// === impl Details ===

impl Details {
    /// Returns the metadata of a secret that is new.
    pub(super) fn new(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Self {
        let uid = Uuid::now_v7().to_string();
        Self { uid, revision: 1, labels: labels.clone(), annotations: annotations.clone() }
    }

    /// Returns the metadata in a version's tags. Whatever people have made of it: the caller writes it anew.
    pub(super) fn read(tags: &Tags) -> Self {
        serde_json::from_str(&joined(METADATA, tags)).unwrap_or_default()
    }

    /// Returns the metadata after an update.
    pub(super) fn updated(&self, labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Self {
        let new = Self::new(labels, annotations);
        let uid = if self.uid.is_empty() { new.uid } else { self.uid.clone() };
        Self { uid, revision: self.revision.saturating_add(1), ..new }
    }

    pub(super) fn etag(&self) -> String {
        let Self { uid, revision, labels, annotations } = self;
        let whole = json!([uid, labels, annotations]).to_string();
        format!("{revision}/{}", encoding::digest(whole.as_bytes()))
    }

    pub(super) fn into_metadata(self) -> Metadata {
        Metadata { etag: self.etag(), labels: self.labels, annotations: self.annotations }
    }

    /// Returns the tags of a version with this metadata in place of that which it has.
    pub(super) fn write(&self, tags: &Tags) -> Result<Tags, String> {
        let mut tags = without(METADATA, tags);
        tags.extend(pieces(METADATA, &json!(self).to_string()));
        checked(tags)
    }
}

/// Returns the tags of a new version; those of people are taken from `carrier`. Fails with the reason why they cannot be written.
pub(super) fn of_version(number: u64, record: &BTreeMap<String, String>, carrier: &Tags) -> Result<Tags, String> {
    let mut tags = without(RECORD, carrier);
    tags.retain(|key, _| key != COPY_OF && key != DESTROYED);
    tags.insert(VERSION.to_owned(), number.to_string());
    if !record.is_empty() {
        tags.extend(pieces(RECORD, &json!(record).to_string()));
    }
    checked(tags)
}

/// Returns the tags of a copy of the version `id`; `carrier` is it, or its newest copy.
pub(super) fn of_copy(id: &str, carrier: &Tags) -> Tags {
    let mut tags = carrier.clone();
    tags.insert(COPY_OF.to_owned(), id.to_owned());
    tags
}

/// Returns the tags of a version that is destroyed.
pub(super) fn of_destroyed(tags: &Tags) -> Tags {
    let mut tags = without(RECORD, tags);
    tags.insert(DESTROYED.to_owned(), "true".to_owned());
    tags
}

/// Returns the number in a version's tags; `None` for a version that something else has added.
pub(super) fn number(tags: &Tags) -> Option<u64> {
    tags.get(VERSION)?.parse().ok()
}

/// Returns the id of the version that this is a copy of, if it is one.
pub(super) fn copied(tags: &Tags) -> Option<&str> {
    tags.get(COPY_OF).map(String::as_str)
}

pub(super) fn is_destroyed(tags: &Tags) -> bool {
    tags.contains_key(DESTROYED)
}

/// Returns the record in a version's tags; empty if there is none.
pub(super) fn record(tags: &Tags) -> BTreeMap<String, String> {
    serde_json::from_str(&joined(RECORD, tags)).unwrap_or_default()
}

fn pieces(first: &'static str, json: &str) -> impl Iterator<Item = (String, String)> {
    let pieces: Vec<_> = encoding::pieces(first, &encoding::ascii(json), MAX_VALUE).collect();
    pieces.into_iter()
}

fn joined(first: &str, tags: &Tags) -> String {
    (1..).map_while(|piece| tags.get(&piece_key(first, piece)).map(String::as_str)).collect()
}

/// Returns the tags but the pieces of a text.
fn without(first: &str, tags: &Tags) -> Tags {
    let is_piece = |key: &str| {
        let number = key.strip_prefix(first);
        number.is_some_and(|number| {
            number.is_empty() || number.strip_prefix('-').is_some_and(|piece| piece.parse::<u32>().is_ok())
        })
    };
    tags.iter().filter(|(key, _)| !is_piece(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn checked(tags: Tags) -> Result<Tags, String> {
    let count = tags.keys().filter(|key| *key != COPY_OF && *key != DESTROYED).count();
    if count > MAX_TAGS {
        return Err(format!(
            "labels, annotations, the record and the tags of people would be {count} tags of {MAX_VALUE} characters; {MAX_TAGS} \
             are allowed"
        ));
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// As long as the Job's records get: the longest id of a cluster, a digest, eight versions of five digits. The annotations have a
    /// copy of it.
    #[test]
    fn the_longest_record_of_the_job_fits_twice() {
        let record = texts(&[
            ("cluster-id", &"c".repeat(63)),
            ("hyperfleet-added", "99991,99992,99993,99994,99995,99996,99997,99998"),
            ("hyperfleet-digest", &format!("hmac-sha256:{}", "a".repeat(64))),
            ("hyperfleet-generation", "9999999999"),
            ("hyperfleet-incarnation", "2026-01-02T03:04:05Z"),
            ("hyperfleet-version", "99998"),
            ("managed-by", "hyperfleet"),
        ]);
        let labels = texts(&[("cluster-id", &"c".repeat(63)), ("managed-by", "hyperfleet"), ("team", "größe")]);
        let details = Details::new(&labels, &record);
        let carrier = details.write(&texts(&[("owner", "someone"), ("cost-center", "7")])).unwrap();
        let tags = of_version(7, &record, &carrier).unwrap();
        assert!(tags.len() <= MAX_TAGS - 2, "room for people's: {tags:?}");
        assert!(tags.values().all(|value| value.len() <= MAX_VALUE && value.is_ascii()), "{tags:?}");
        assert_eq!((number(&tags), self::record(&tags), Details::read(&tags)), (Some(7), record, details));
        assert_eq!((tags["owner"].as_str(), copied(&tags), is_destroyed(&tags)), ("someone", None, false));
    }

    #[test]
    fn a_new_version_has_nothing_of_the_one_before_but_metadata_and_tags_of_people() {
        let record = texts(&[("digest", &"x".repeat(600))]);
        let carrier = of_copy("a1", &of_version(1, &record, &texts(&[("owner", "someone")])).unwrap());
        assert_eq!(copied(&carrier), Some("a1"));
        assert!(carrier.contains_key("hyperfleet-record-3"));
        let destroyed = of_destroyed(&carrier);
        assert!(is_destroyed(&destroyed) && self::record(&destroyed).is_empty());
        for carrier in [carrier, destroyed] {
            let tags = of_version(2, &BTreeMap::new(), &carrier).unwrap();
            assert_eq!(tags, texts(&[("hyperfleet-version", "2"), ("owner", "someone")]));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_a_copy_does_not_count() {
        let people = |count: usize| -> Tags { (0..count).map(|tag| (format!("t{tag}"), String::new())).collect() };
        let full = of_version(1, &BTreeMap::new(), &people(MAX_TAGS - 1)).unwrap();
        assert!(of_version(1, &BTreeMap::new(), &people(MAX_TAGS)).unwrap_err().contains("14 tags"));
        assert!(Details::new(&texts(&[]), &texts(&[])).write(&full).is_err());
        let almost = of_version(1, &BTreeMap::new(), &people(MAX_TAGS - 2)).unwrap();
        assert!(Details::new(&texts(&[]), &texts(&[])).write(&of_destroyed(&of_copy("a1", &almost))).is_ok());
    }

    #[test]
    fn an_etag_follows_each_change_and_each_creation() {
        let labels = texts(&[("team", "fleet")]);
        let first = Details::new(&labels, &labels);
        assert_ne!(first.etag(), first.updated(&labels, &labels).etag(), "an update that changes nothing");
        assert_ne!(first.etag(), Details::new(&labels, &labels).etag(), "created again");
        assert_ne!(first.etag(), Details { labels: texts(&[]), ..first.clone() }.etag(), "changed by hand");
        assert_eq!(first.etag(), first.clone().into_metadata().etag);
    }

    #[test]
    fn damaged_metadata_is_none() {
        for damaged in ["", "{", "[]", "{\"labels\":1}"] {
            let tags = texts(&[("hyperfleet-metadata", damaged), ("hyperfleet-record", damaged)]);
            assert_eq!(Details::read(&tags), Details::default(), "{damaged}");
            assert!(record(&tags).is_empty(), "{damaged}");
        }
    }
}
