//! What is kept on disk of a journey, so that it survives the process.

use serde::{Deserialize, Serialize};

use crate::content::ContentId;

/// What the next process must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// The content that was applied last and with which the kubelet stayed up.
    pub applied: Option<ContentId>,
    /// The change that has been begun.
    pub change: Option<Change>,
    /// The content with which the kubelet did not come up.
    pub failed: Option<Failed>,
}

/// A change that has been begun and is neither committed nor closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The content that it leads to.
    pub to: ContentId,
    /// Which way it goes.
    pub stage: Stage,
}

/// Which way a change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Towards the new content.
    Apply,
    /// Back to the file as it was.
    RollBack,
}

/// A content with which the kubelet did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The content.
    pub content: ContentId,
    /// How often it was taken back; 0 where the kubelet had trouble with the old file as well.
    pub times: u8,
}
