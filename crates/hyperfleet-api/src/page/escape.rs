//! Escaping beyond maud's: control characters and direction marks become visible.

use maud::{Markup, PreEscaped};

/// Replaces control characters and those that change the direction of text with `�` in the whole markup, and apostrophes
/// with their entity.
///
/// It runs once over a finished page, so no template can forget it. maud has escaped `<`, `>`, `&` and `"` by then, and no
/// template contains any of these characters itself.
pub(super) fn neutralize(markup: &Markup) -> Markup {
    let mut text = String::with_capacity(markup.0.len());
    for character in markup.0.chars() {
        match character {
            '\'' => text.push_str("&#39;"),
            '\n' | '\t' => text.push(character),
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            _ if character.is_control() => text.push(char::REPLACEMENT_CHARACTER),
            _ => text.push(character),
        }
    }
    PreEscaped(text)
}
