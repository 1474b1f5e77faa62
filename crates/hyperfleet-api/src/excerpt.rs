//! Shortens and escapes names from requests so that they can be shown in answers and logs.

/// Returns at most 64 characters of a name, escaped, with an ellipsis where it was cut.
pub fn excerpt(name: &str) -> String {
    const MAX_CHARACTERS: usize = 64;
    let short: String = name.chars().take(MAX_CHARACTERS).collect();
    let dots = if short.len() < name.len() { "…" } else { "" };
    format!("{}{dots}", short.escape_debug())
}
