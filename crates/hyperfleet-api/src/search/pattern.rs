//! Patterns of `like` and `ilike`.
//!
//! A search runs on every resource, so a pattern takes bounded time: its length is bounded, text between two `%` is found in
//! time proportional to the text, and with `_` in it in time proportional to the text and to one sixty-fourth of the pattern.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum length of a pattern, in bytes.
pub(super) const MAX_BYTES: usize = 4096;

/// A parsed pattern: `%` matches any text, `_` any character, a backslash makes the next character literal.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// True for `ilike`. Only ASCII letters have cases, since SQLite, PostgreSQL and this file agree on no more.
    pub(super) ignores_case: bool,
    text: String,
    /// The parts between `%`: the first is at the start of the text, the last one at its end.
    segments: Vec<Segment>,
}

/// A pattern that cannot be used, as a sentence for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatternError {
    /// The last backslash stands before nothing.
    #[error("the pattern ends in a single backslash: double it or remove it")]
    Backslash,
    /// It is longer than [`MAX_BYTES`].
    #[error("the pattern has more than {MAX_BYTES} bytes: shorten it")]
    TooLong,
}

/// A part of a pattern without `%`.
#[derive(Clone, Debug, Default)]
struct Segment {
    parts: Vec<Part>,
    /// The same, if it has no `_`.
    literal: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    AnyCharacter,
    Character(char),
}

// === impl Pattern ===

impl Pattern {
    /// Parses a pattern.
    pub(super) fn parse(text: &str, ignores_case: bool) -> Result<Self, PatternError> {
        if text.len() > MAX_BYTES {
            return Err(PatternError::TooLong);
        }
        let text = if ignores_case { text.to_ascii_lowercase() } else { text.to_owned() };
        let mut characters = text.chars();
        let mut segments = Vec::new();
        let mut parts = Vec::new();
        while let Some(character) = characters.next() {
            parts.push(match character {
                '%' => {
                    segments.push(Segment::of(std::mem::take(&mut parts)));
                    continue;
                }
                '_' => Part::AnyCharacter,
                '\\' => Part::Character(characters.next().ok_or(PatternError::Backslash)?),
                _ => Part::Character(character),
            });
        }
        segments.push(Segment::of(parts));
        Ok(Self { ignores_case, text, segments })
    }

    /// The pattern for SQL's LIKE; in lower case if it ignores case.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True if the pattern matches the whole text.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text = if self.ignores_case { Cow::Owned(text.to_ascii_lowercase()) } else { Cow::Borrowed(text) };
        self.matches_case(&text).is_some()
    }

    /// Takes the first match of each segment: it leaves the most text to the next ones.
    fn matches_case(&self, text: &str) -> Option<()> {
        let (first, others) = self.segments.split_first()?;
        let rest = first.strip_start(text)?;
        let Some((last, between)) = others.split_last() else { return rest.is_empty().then_some(()) };
        let rest = last.strip_end(rest)?;
        between.iter().try_fold(rest, |rest, segment| segment.skip(rest)).map(|_anything| ())
    }
}

// === impl Segment ===

impl Segment {
    fn of(parts: Vec<Part>) -> Self {
        let literal = parts.iter().map(|part| match part {
            Part::Character(character) => Some(*character),
            Part::AnyCharacter => None,
        });
        Self { literal: literal.collect(), parts }
    }

    /// The text after this segment, which must begin it.
    fn strip_start<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut characters = text.chars();
        for part in &self.parts {
            if !part.matches(characters.next()?) {
                return None;
            }
        }
        Some(characters.as_str())
    }

    /// The text before this segment, which must end it.
    fn strip_end<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut characters = text.chars();
        for part in self.parts.iter().rev() {
            if !part.matches(characters.next_back()?) {
                return None;
            }
        }
        Some(characters.as_str())
    }

    /// The text after the first occurrence of this segment.
    fn skip<'a>(&self, text: &'a str) -> Option<&'a str> {
        match &self.literal {
            Some(literal) => text.find(literal.as_str()).and_then(|at| text.get(at + literal.len()..)),
            None => text.get(self.end_of_first(text)?..),
        }
    }

    /// The end of the first occurrence, by the Shift-And algorithm: bit `n` of the state says that the last `n` + 1 characters
    /// match the first `n` + 1 parts. A word of 64 parts takes one step for each character.
    fn end_of_first(&self, text: &str) -> Option<usize> {
        let masks = Masks::of(&self.parts);
        let mut state = vec![0_u64; masks.any.len()];
        for (at, character) in text.char_indices() {
            let mask = masks.of_character.get(&character).unwrap_or(&masks.any);
            let mut carry = 1;
            for (word, mask) in state.iter_mut().zip(mask) {
                let next = *word >> 63;
                *word = ((*word << 1) | carry) & mask;
                carry = next;
            }
            if state.last().is_some_and(|word| word & masks.last != 0) {
                return Some(at + character.len_utf8());
            }
        }
        None
    }
}

/// The parts that a character matches, a bit each.
struct Masks {
    of_character: BTreeMap<char, Vec<u64>>,
    /// Of a character that occurs in no part.
    any: Vec<u64>,
    /// The bit of the last part in the last word.
    last: u64,
}

impl Masks {
    fn of(parts: &[Part]) -> Self {
        let mut any = vec![0_u64; parts.len().div_ceil(64)];
        for (bit, _) in parts.iter().enumerate().filter(|(_, part)| **part == Part::AnyCharacter) {
            set(&mut any, bit);
        }
        let mut of_character: BTreeMap<char, Vec<u64>> = BTreeMap::new();
        for (bit, part) in parts.iter().enumerate() {
            if let Part::Character(character) = part {
                set(of_character.entry(*character).or_insert_with(|| any.clone()), bit);
            }
        }
        Self { of_character, any, last: 1 << (parts.len().saturating_sub(1) % 64) }
    }
}

fn set(words: &mut [u64], bit: usize) {
    if let Some(word) = words.get_mut(bit / 64) {
        *word |= 1 << (bit % 64);
    }
}

// === impl Part ===

impl Part {
    fn matches(self, character: char) -> bool {
        match self {
            Self::AnyCharacter => true,
            Self::Character(expected) => expected == character,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// The definition, word for word; takes exponential time.
    fn defined(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|at| defined(rest, &text[at..])),
            Some(('_', rest)) => !text.is_empty() && defined(rest, &text[1..]),
            Some(('\\', rest)) => text.first() == rest.first() && defined(&rest[1..], &text[1..]),
            Some((character, rest)) => text.first() == Some(character) && defined(rest, &text[1..]),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn a_pattern_matches_by_its_definition(pattern in r"([ab%_é]|\\[%_\\a]){0,7}", text in r"[abé%_\\]{0,8}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = defined(&characters(&pattern), &characters(&text));
            prop_assert_eq!(Pattern::parse(&pattern, false).unwrap().matches(&text), expected, "{} {}", pattern, text);
        }

        /// Longer than a word of the state.
        #[test]
        fn a_long_segment_is_found(before in "[ab]{0,80}", segment in "[ab_]{1,150}", after in "[ab]{0,80}") {
            let text = format!("{before}{}{after}", segment.replace('_', "c"));
            let matches = |segment: &str| Pattern::parse(&format!("%{segment}%"), false).unwrap().matches(&text);
            prop_assert!(matches(&segment));
            let other = segment.replace(['a', 'b'], "d");
            let has_only_wildcards = other.chars().all(|character| character == '_');
            prop_assert_eq!(matches(&other), has_only_wildcards);
        }
    }

    /// The review's reproduction, in both forms: with the old algorithm these are some billion steps.
    #[rstest]
    #[case::literal("a")]
    #[case::with_wildcards("a_")]
    fn an_expensive_pattern_is_bounded(#[case] unit: &str) {
        let text = "a".repeat(900_000);
        let pattern = format!("%{}b", unit.repeat(MAX_BYTES / unit.len() - 4));
        assert!(!Pattern::parse(&pattern, false).unwrap().matches(&text));
        let pattern = format!("%{}b%", unit.repeat(MAX_BYTES / unit.len() - 4));
        assert!(!Pattern::parse(&pattern, false).unwrap().matches(&text));
        let pattern = "%a%_".repeat(MAX_BYTES / 4);
        assert!(Pattern::parse(&pattern, false).unwrap().matches(&text));
    }

    #[test]
    fn patterns_that_cannot_be_used_are_named() {
        assert_eq!(Pattern::parse("a\\", false).unwrap_err(), PatternError::Backslash);
        assert_eq!(Pattern::parse(&"a".repeat(MAX_BYTES + 1), true).unwrap_err(), PatternError::TooLong);
        assert!(Pattern::parse(&"a".repeat(MAX_BYTES), true).is_ok());
    }

    #[test]
    fn only_ascii_letters_have_cases() {
        assert!(Pattern::parse("%AB%", true).unwrap().matches("xaBy"));
        assert!(!Pattern::parse("É", true).unwrap().matches("é"));
    }
}
