//! Texts that a template or a manual leaves where a credential belongs.

use zeroize::Zeroizing;

/// Openings that only templates and manuals use.
const OPENINGS: &[&str] = &[
    "base64-encoded",
    "base64_encoded",
    "base64 encoded",
    "base64encoded",
    "base64(",
    "your_",
    "your-",
    "your ",
    "my_",
    "insert",
    "replace",
    "changeme",
    "change-me",
    "change_me",
    "enter",
    "put_",
    "${",
    "$(",
    "{{",
    "%{",
];

/// Whole texts that stand for "something else goes here".
const WORDS: &[&str] = &[
    "auth",
    "base64",
    "credential",
    "credentials",
    "dummy",
    "example",
    "fake",
    "fixme",
    "none",
    "null",
    "password",
    "placeholder",
    "redacted",
    "secret",
    "tbd",
    "test",
    "todo",
    "token",
    "undefined",
    "user:pass",
    "user:password",
    "username:password",
];

/// Whether `text`, which did not decode to a credential, is such a text.
///
/// Ask only then: a real credential may look like anything.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let lower = Zeroizing::new(text.trim().to_ascii_lowercase());
    let filler = |c: char| matches!(c, '.' | '…' | '*' | 'x' | '#' | '-' | '_' | '?' | '•');
    (!lower.is_empty() && lower.chars().all(filler))
        || (lower.starts_with('<') && lower.ends_with('>'))
        || OPENINGS.iter().any(|opening| lower.starts_with(opening))
        || WORDS.contains(&lower.as_str())
}
