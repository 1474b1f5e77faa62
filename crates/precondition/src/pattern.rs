//! Compiles the patterns of `matches`: linear in time, bounded in memory.

use regex::{Regex, RegexBuilder};

/// Maximum memory of a compiled pattern, depth of its groups, and bytes of its source.
const MAX_COMPILED_BYTES: usize = 128 * 1024;
const MAX_DEPTH: u32 = 50;
const MAX_LENGTH: usize = 1024;

/// Compiles a pattern. The error is one line.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    RegexBuilder::new(&as_in_go(pattern)).size_limit(MAX_COMPILED_BYTES).nest_limit(MAX_DEPTH).build().map_err(
        |error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large once compiled".to_owned(),
            // The last line has the message, those before it quote the pattern.
            error => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim();
                last.strip_prefix("error: ").unwrap_or(last).to_owned()
            }
        },
    )
}

/// Restricts `\d`, `\w`, `\s` and `\b` to ASCII, as in Go; Unicode's classes are a hundred times as large.
fn as_in_go(pattern: &str) -> String {
    let mut rewritten = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            rewritten.push(next);
            continue;
        }
        match rest.next() {
            Some('d') => rewritten.push_str("[0-9]"),
            Some('D') => rewritten.push_str("[^0-9]"),
            Some('w') => rewritten.push_str("[0-9A-Za-z_]"),
            Some('W') => rewritten.push_str("[^0-9A-Za-z_]"),
            Some('s') => rewritten.push_str(r"[\t\n\x0C\r\x20]"),
            Some('S') => rewritten.push_str(r"[^\t\n\x0C\r\x20]"),
            Some('b') => rewritten.push_str(r"(?-u:\b)"),
            escaped => rewritten.extend(std::iter::once(next).chain(escaped)),
        }
    }
    rewritten
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_go() {
        let matches = |pattern: &str, text: &str| compile(pattern).unwrap().is_match(text);
        assert!(matches(r"^\w{3,60}-[\d\s]{1,60}$", "zone_1-1 2"));
        assert!(!matches(r"\w", "ä") && matches(r"^\W$", "ä") && !matches(r"\d", "\u{0663}"));
        assert!(matches(r"\bb\b", "a b c") && matches(r"^\\d$", r"\d") && matches(r"^[^\w-]$", "ä"));
        assert!(compile(r"\").is_err() && compile(r"[\b]").is_err() && compile(r"[a-\d]").is_err());
    }
}
