//! The state file: the record that the next process resumes from.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::content::ContentId;
use crate::decide::{Change, Failed, Journal};

/// The version of the format below. A file of another version counts as unreadable.
const VERSION: u32 = 1;

/// The content of the state file. It names registries and holds no credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    version: u32,
    /// The content that was applied last and with which the kubelet stayed up.
    pub(crate) applied: Option<ContentId>,
    /// The content with which the kubelet did not come up.
    pub(crate) failed: Option<Failed>,
    /// The managed entries of the kubelet's file; all others are unmanaged.
    pub(crate) owned: Owned,
    /// The unfinished change.
    pub(crate) change: Option<UnfinishedChange>,
    /// The names of the files that are set aside, the oldest first.
    #[serde(default)]
    pub(crate) set_aside: Vec<String>,
}

/// The managed parts of a document: those that this program wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owned {
    /// Keys of `auths`, as written.
    pub(crate) auths: BTreeSet<String>,
    /// Members beside `auths`.
    pub(crate) members: BTreeSet<String>,
}

/// A change with the ids that it takes to finish or undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnfinishedChange {
    /// The content to apply, and the direction of the change.
    pub(crate) change: Change,
    /// The id of the file before the change; `None` if there was none.
    pub(crate) before: Option<ContentId>,
    /// The id of the file after the change.
    pub(crate) after: ContentId,
    /// The entries that may be in the file because of this change.
    pub(crate) owned: Owned,
}

// === impl Record ===

impl Default for Record {
    fn default() -> Self {
        Self {
            version: VERSION,
            applied: None,
            failed: None,
            owned: Owned::default(),
            change: None,
            set_aside: Vec::new(),
        }
    }
}

impl Record {
    /// Parses a record; `None` for anything else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().filter(|record: &Self| record.version == VERSION)
    }

    /// Writes the record as JSON.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Text keys and numbers only: serialisation cannot fail.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Returns the part that decisions depend on.
    pub(crate) fn journal(&self) -> Journal {
        let change = self.change.as_ref().map(|begun| begun.change);
        Journal { applied: self.applied, change, failed: self.failed }
    }

    /// Returns all entries of the file that may be managed.
    pub(crate) fn all_owned(&self) -> Owned {
        let begun = self.change.as_ref().map(|begun| &begun.owned);
        begun.map_or_else(|| self.owned.clone(), |begun| self.owned.union(begun))
    }
}

// === impl Owned ===

impl Owned {
    pub(crate) fn union(&self, other: &Self) -> Self {
        Self {
            auths: self.auths.union(&other.auths).cloned().collect(),
            members: self.members.union(&other.members).cloned().collect(),
        }
    }
}
