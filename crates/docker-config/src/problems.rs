//! All problems of a document, and the entries that are valid nevertheless.

use std::error::Error;
use std::fmt;

use crate::entry::Entry;
use crate::problem::Problem;

/// Every problem of a document, at least one, and its valid entries. Keeps no credential.
#[derive(Debug)]
pub struct Problems {
    pub(crate) found: Vec<Problem>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) warnings: Vec<Problem>,
}

impl Problems {
    /// The problems in document order.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.found.iter()
    }

    /// The number of problems; never 0.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// The entries without a problem, in the order of an accepted document; of a repeated name the first. Empty if reading
    /// ended early.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The warnings, in document order.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// One line for logs: the first `max` problems (at least one), and the number of further ones.
    pub fn summary(&self, max: usize) -> String {
        let max = max.max(1);
        let mut parts: Vec<String> = self.iter().take(max).map(ToString::to_string).collect();
        if let Some(more @ 1..) = self.len().checked_sub(max) {
            parts.push(format!("and {more} more"));
        }
        parts.join("; ")
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl Error for Problems {}
