//! The record of a change that survives the process.

use serde::{Deserialize, Serialize};

use crate::content::ContentId;

/// The state that the next process resumes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// The content that was applied last, and with which the kubelet stayed up.
    pub applied: Option<ContentId>,
    /// The unfinished change.
    pub change: Option<Change>,
    /// The content with which the kubelet did not come up.
    pub failed: Option<Failed>,
}

/// A change that is neither committed nor rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The content to apply.
    pub to: ContentId,
    /// The direction of the change.
    pub stage: Stage,
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The new content is being applied.
    Apply,
    /// The previous file is being put back.
    RollBack,
}

/// A content with which the kubelet did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The content.
    pub content: ContentId,
    /// Number of rollbacks; 0 if the kubelet had trouble with the previous file too.
    pub times: u8,
}
