//! Shortens names from requests and escapes their control characters, so that they can be shown in answers and logs.

/// Returns at most 64 characters of a name, with an ellipsis where it was cut. Quotes and backslashes are not escaped.
pub fn excerpt(name: &str) -> String {
    const MAX_CHARACTERS: usize = 64;
    let mut shown = String::new();
    for character in name.chars().take(MAX_CHARACTERS) {
        match character {
            '\'' | '"' | '\\' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    if name.chars().nth(MAX_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}
