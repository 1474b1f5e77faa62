//! Recognises placeholders that a template or a manual leaves in place of a credential.

use zeroize::Zeroizing;

/// Prefixes that only templates and manuals use.
const PREFIXES: &[&str] = &[
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

/// Whole texts that are placeholders.
const TEXTS: &[&str] = &[
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

/// Returns true if `text`, which did not decode to a credential, is a placeholder.
///
/// Call it only for such texts: a real credential may look like anything.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let lower = Zeroizing::new(text.trim().to_ascii_lowercase());
    let filler = |c: char| matches!(c, '.' | '…' | '*' | 'x' | '#' | '-' | '_' | '?' | '•');
    (!lower.is_empty() && lower.chars().all(filler))
        || (lower.starts_with('<') && lower.ends_with('>'))
        || PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
        || TEXTS.contains(&lower.as_str())
}
