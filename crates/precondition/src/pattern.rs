//! Patterns of `matches`: linear in time, bounded in memory.

use regex::{Regex, RegexBuilder};

/// A compiled pattern's memory.
const LARGEST: usize = 256 * 1024;
const DEEPEST: u32 = 50;
const LONGEST: usize = 1024;

/// Compiles, or says in one line why not.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    RegexBuilder::new(pattern).size_limit(LARGEST).nest_limit(DEEPEST).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large once compiled".to_owned(),
        // The last line says what is wrong, those before it quote the pattern.
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    })
}
