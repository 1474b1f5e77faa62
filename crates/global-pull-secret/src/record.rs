//! What the merged Secret says of itself, so that a controller which knows nothing can go on.

use std::collections::BTreeMap;

use docker_config::merge::Origin;
use fleet_model::names;
use jiff::Timestamp;

use crate::facts::SecretSeen;

/// What the original is called among the sources; no Secret has such a name.
pub const ORIGINAL: &str = "(original)";

/// The annotations of the merged Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Which edition of the content; rises.
    pub revision: String,
    /// Since when.
    pub changed_at: Timestamp,
    /// Which Secret each key is from, [`ORIGINAL`] for the original. `None` where that cannot be read.
    pub sources: Option<BTreeMap<String, String>>,
    /// Since when nodes are being brought back to the original.
    pub reverting: Option<Timestamp>,
}

impl Record {
    /// The record of a merged Secret.
    pub fn of(global: &SecretSeen) -> Self {
        let time = |name: &str| global.annotation(name).and_then(|text| text.parse().ok());
        let sources = global.annotation(names::ANNOTATION_SOURCES);
        Self {
            revision: global.annotation(names::ANNOTATION_REVISION).unwrap_or_default().to_owned(),
            changed_at: time(names::ANNOTATION_CHANGED_AT).unwrap_or(Timestamp::UNIX_EPOCH),
            sources: sources.and_then(|text| serde_json::from_str(text).ok()),
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
        if let Some(since) = self.reverting {
            annotations.insert(names::ANNOTATION_REVERTING.to_owned(), since.to_string());
        }
        annotations
    }

    /// The edition that follows this one: milliseconds since 1970, and always more than before.
    pub fn next_revision(&self, now: Timestamp) -> String {
        let last: i64 = self.revision.parse().unwrap_or_default();
        last.saturating_add(1).max(now.as_millisecond()).to_string()
    }
}

/// What a source is called in the record.
pub fn source_name(origin: &Origin) -> &str {
    match origin {
        Origin::Original => ORIGINAL,
        Origin::Additional(name) => name,
    }
}
