//! The state file: what the next process must know of this one.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::content::ContentId;
use crate::decide::{Change, Failed, Journal};

/// The version of the form below. A file of another version counts as unreadable.
const VERSION: u32 = 1;

/// What is in the state file. It names registries and holds no credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    version: u32,
    /// The content that was applied last and with which the kubelet stayed up.
    pub(crate) applied: Option<ContentId>,
    /// The content with which the kubelet did not come up.
    pub(crate) failed: Option<Failed>,
    /// What in the kubelet's file is this program's; everything else is somebody else's.
    pub(crate) owned: Owned,
    /// The change that has been begun.
    pub(crate) change: Option<BegunChange>,
}

/// What of a document came from this program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owned {
    /// Keys of `auths`, as written.
    pub(crate) auths: BTreeSet<String>,
    /// Members beside `auths`.
    pub(crate) members: BTreeSet<String>,
}

/// A change with what it takes to finish or undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BegunChange {
    /// Where it leads, and which way it goes now.
    pub(crate) change: Change,
    /// The bytes of the file before the change; `None` where there was none.
    pub(crate) before: Option<ContentId>,
    /// The bytes of the file after the change.
    pub(crate) after: ContentId,
    /// What may be in the file because of this change.
    pub(crate) owned: Owned,
}

// === impl Record ===

impl Default for Record {
    fn default() -> Self {
        Self { version: VERSION, applied: None, failed: None, owned: Owned::default(), change: None }
    }
}

impl Record {
    /// The record in a file's bytes, unless they are something else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().filter(|record: &Self| record.version == VERSION)
    }

    /// The file's bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Maps with text keys and numbers: there is nothing that could not be written.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// What decisions need of it.
    pub(crate) fn journal(&self) -> Journal {
        let change = self.change.as_ref().map(|begun| begun.change);
        Journal { applied: self.applied, change, failed: self.failed }
    }

    /// What in the file may be this program's.
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
