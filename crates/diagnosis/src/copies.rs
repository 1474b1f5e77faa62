//! Both copies of a mirrored pull secret, as a page shows them.

use serde::Serialize;

/// The copies in the first store and in the mirror.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// The first store's.
    pub first: CopyView,
    /// The mirror's.
    pub mirror: CopyView,
    /// Their comparison.
    pub parity: Parity,
}

/// A copy as it was reported: where it is, and what it holds.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopyView {
    /// The store: `google`, `vault`, `aws` or `azure`.
    pub store: &'static str,
    /// The secret in words.
    pub secret: String,
    /// The version that holds the pull secret; `None` unless it was read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The generation that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The keyed digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The comparison of both copies.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Parity {
    /// The result in one word.
    pub reason: ParityReason,
    /// The result in a sentence.
    pub message: String,
}

/// Result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ParityReason {
    /// Both hold the same content.
    SameContent,
    /// The mirror holds another generation.
    OtherGeneration,
    /// The mirror holds other content of the same generation.
    OtherContent,
    /// Nothing was stored in the mirror and read back yet.
    NotMirrored,
    /// The last check of the stores has found one of them changed.
    Changed,
    /// The last check of the stores could not read the mirror.
    MirrorUnread,
    /// The last check of the stores could not read the first store.
    FirstStoreUnread,
}
