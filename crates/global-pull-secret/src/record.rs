//! The record in the merged Secret's annotations, from which a restarted controller continues.

use std::collections::BTreeMap;
use std::fmt;

use docker_config::merge::Origin;
use docker_config::shown_key;
use fleet_model::names;
use jiff::Timestamp;
use serde::Serialize;

use crate::facts::ObservedSecret;
use crate::keys::Change;

/// The name of the original among the sources; no Secret has such a name.
pub const ORIGINAL: &str = "(original)";

/// The annotations of the merged Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The revision of the content; it increases.
    pub revision: String,
    /// Time since which this holds.
    pub changed_at: Timestamp,
    /// The source Secret of each key, [`ORIGINAL`] for the original. `None` if it cannot be read.
    pub sources: Option<BTreeMap<String, String>>,
    /// The last change of its keys. `None` if it is not recorded.
    pub change: Option<Change>,
    /// Time since which nodes are being reverted to the original.
    pub reverting: Option<Timestamp>,
}

/// A key as people see it, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// As written.
    pub key: String,
    /// The Secret.
    pub from: String,
}

impl Record {
    /// The record of a merged Secret.
    pub fn of(global: &ObservedSecret) -> Self {
        let time = |name: &str| global.annotation(name).and_then(|text| text.parse().ok());
        let sources = global.annotation(names::ANNOTATION_SOURCES);
        Self {
            revision: global.annotation(names::ANNOTATION_REVISION).unwrap_or_default().to_owned(),
            changed_at: time(names::ANNOTATION_CHANGED_AT).unwrap_or(Timestamp::UNIX_EPOCH),
            sources: sources.and_then(|text| serde_json::from_str(text).ok()),
            change: global.annotation(names::ANNOTATION_CHANGE).and_then(|text| serde_json::from_str(text).ok()),
            reverting: time(names::ANNOTATION_REVERTING),
        }
    }

    /// The annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let sources = serde_json::to_string(&self.sources.clone().unwrap_or_default()).unwrap_or_default();
        let mut annotations = BTreeMap::from([
            (names::ANNOTATION_REVISION.to_owned(), self.revision.clone()),
            (names::ANNOTATION_CHANGED_AT.to_owned(), self.changed_at.to_string()),
            (names::ANNOTATION_SOURCES.to_owned(), sources),
        ]);
        if let Some(change) = &self.change {
            let text = serde_json::to_string(change).unwrap_or_default();
            annotations.insert(names::ANNOTATION_CHANGE.to_owned(), text);
        }
        if let Some(since) = self.reverting {
            annotations.insert(names::ANNOTATION_REVERTING.to_owned(), since.to_string());
        }
        annotations
    }

    /// The next revision: milliseconds since 1970, and always more than before.
    pub fn next_revision(&self, now: Timestamp) -> String {
        let last: i64 = self.revision.parse().unwrap_or_default();
        last.saturating_add(1).max(now.as_millisecond()).to_string()
    }
}

// === impl Key ===

impl Key {
    /// A key with its source in the record.
    pub fn of(key: &str, source: &str) -> Self {
        let from = if source == ORIGINAL { "the original" } else { source };
        Self { key: shown_key(key), from: from.to_owned() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} from {}", self.key, self.from)
    }
}

/// The name of a source in the record.
pub fn source_name(origin: &Origin) -> &str {
    match origin {
        Origin::Original => ORIGINAL,
        Origin::Additional(name) => name,
    }
}
