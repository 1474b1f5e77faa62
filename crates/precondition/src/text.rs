//! Shortens texts for messages, and keeps them on one line.

/// Returns at most `max` characters, followed by `…` if there were more.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// Returns the characters with a space for each control character.
pub(crate) fn on_one_line(characters: impl Iterator<Item = char>) -> String {
    characters.map(|shown| if shown.is_control() { ' ' } else { shown }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü…");
    }
}
