//! Selects the valid entries of an additional document.

use std::collections::BTreeSet;

use crate::credentials::{self, Document};
use crate::document::{Limits, parse};
use crate::problem::{Findings, Problem};
use crate::problems::Problems;

/// The treatment of an additional document with an invalid entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidEntries {
    /// The whole document is refused.
    #[default]
    RejectAll,
    /// The invalid entry is left out.
    Skip,
}

/// The valid part of an additional document.
#[derive(Debug)]
pub struct Admitted {
    /// The valid entries.
    pub document: Document,
    /// The problems of the entries that were left out, in document order.
    pub left_out: Vec<Problem>,
    /// The warnings.
    pub warnings: Vec<Problem>,
}

/// Checks an additional document. Fails if it has no usable entry.
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
    let Ok(credentials::Read { mut document, repeated }) = credentials::read(bytes, limits, &mut findings) else {
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
