//! Patterns of `like` and `ilike`.

/// A parsed pattern: `%` matches any text, `_` any character, a backslash makes the next character literal.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// True for `ilike`. Only ASCII letters have cases, since SQLite, PostgreSQL and this file agree on no more.
    pub(super) ignores_case: bool,
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    AnyText,
    AnyCharacter,
    Character(char),
}

// === impl Pattern ===

impl Pattern {
    /// Parses a pattern; `None` if it ends in a single backslash.
    pub(super) fn parse(text: &str, ignores_case: bool) -> Option<Self> {
        let text = if ignores_case { text.to_ascii_lowercase() } else { text.to_owned() };
        let mut characters = text.chars();
        let mut parts = Vec::new();
        while let Some(character) = characters.next() {
            parts.push(match character {
                '%' => Part::AnyText,
                '_' => Part::AnyCharacter,
                '\\' => Part::Character(characters.next()?),
                _ => Part::Character(character),
            });
        }
        Some(Self { ignores_case, text, parts })
    }

    /// The pattern for SQL's LIKE; in lower case if it ignores case.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True if the pattern matches the whole text.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = if self.ignores_case {
            text.chars().map(|character| character.to_ascii_lowercase()).collect()
        } else {
            text.chars().collect()
        };
        self.matches_characters(&text)
    }

    /// Matches with backtracking to the last `%` only: it can match whatever an earlier one could.
    fn matches_characters(&self, text: &[char]) -> bool {
        let (mut at, mut part) = (0, 0);
        let mut retry = None;
        while let Some(character) = text.get(at) {
            match self.parts.get(part) {
                Some(Part::AnyText) => {
                    part += 1;
                    retry = Some((at, part));
                }
                Some(expected) if expected.matches(*character) => {
                    at += 1;
                    part += 1;
                }
                _ => {
                    let Some((from, after)) = retry else { return false };
                    at = from + 1;
                    part = after;
                    retry = Some((at, part));
                }
            }
        }
        self.parts.iter().skip(part).all(|rest| *rest == Part::AnyText)
    }
}

// === impl Part ===

impl Part {
    fn matches(self, character: char) -> bool {
        match self {
            Self::AnyText | Self::AnyCharacter => true,
            Self::Character(expected) => expected == character,
        }
    }
}
