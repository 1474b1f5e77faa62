//! What of an additional document may be merged.

use std::collections::BTreeSet;

use crate::document::{Limits, parse};
use crate::kept::{self, Document};
use crate::problem::{Findings, Problem};
use crate::problems::Problems;

/// What is done about an additional document with a bad entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidEntries {
    /// The whole document is refused.
    #[default]
    RejectAll,
    /// The bad entry is left out.
    Skip,
}

/// An additional document, as far as it is good.
#[derive(Debug)]
pub struct Admitted {
    /// Its good entries.
    pub document: Document,
    /// What is wrong with those that were left out, in the order of the document.
    pub left_out: Vec<Problem>,
    /// What was accepted but is worth saying.
    pub warnings: Vec<Problem>,
}

/// Checks an additional document. Fails where there is nothing in it that may be used.
pub fn admit(bytes: &[u8], limits: &Limits, invalid: InvalidEntries) -> Result<Admitted, Problems> {
    let mut findings = Findings::default();
    let problems = match parse(bytes, limits) {
        Ok(config) => {
            let document = Document::parse(bytes, limits)?;
            return Ok(Admitted { document, left_out: Vec::new(), warnings: config.into_warnings() });
        }
        Err(problems) if invalid == InvalidEntries::RejectAll => return Err(problems),
        Err(problems) => problems,
    };
    let Ok(kept::Read { mut document, repeated }) = kept::read(bytes, limits, &mut findings) else {
        return Err(problems);
    };
    let good = problems.entries().iter().map(|entry| entry.key().as_written());
    let good: BTreeSet<&str> = good.filter(|key| !repeated.contains(*key)).collect();
    let all: Vec<String> = document.keys().map(str::to_owned).collect();
    for key in all.iter().filter(|key| !good.contains(key.as_str())) {
        document.remove(key);
    }
    if document.is_empty() {
        return Err(problems);
    }
    Ok(Admitted { document, left_out: problems.found, warnings: problems.warnings })
}
