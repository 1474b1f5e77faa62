//! The explanation of an answer, as lines and as a tree.

mod message;

use std::fmt;
use std::sync::Arc;

use crate::finding::Finding;

/// Every part of an expression with its finding.
///
/// Its text is for people: one line for each part that caused the answer. [`Explanation::tree`] has all parts.
#[derive(Debug, Clone)]
pub struct Explanation {
    pub(crate) source: Arc<str>,
    pub(crate) root: Finding,
}

/// All parts of an explanation, one per line, indented.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'e>(&'e Explanation);

// === impl Explanation ===

impl Explanation {
    /// The finding for the whole expression.
    pub fn root(&self) -> &Finding {
        &self.root
    }

    /// One sentence for each part that caused the answer.
    pub fn lines(&self) -> Vec<String> {
        message::lines(&self.source, &self.root)
    }

    /// Every part with its answer.
    pub fn tree(&self) -> Tree<'_> {
        Tree(self)
    }

    /// The text of a finding's part of the expression.
    pub fn source_of(&self, finding: &Finding) -> &str {
        finding.source_in(&self.source)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines().join("\n"))
    }
}

// === impl Tree ===

impl fmt::Display for Tree<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        message::tree(&self.0.source, &self.0.root, formatter)
    }
}
