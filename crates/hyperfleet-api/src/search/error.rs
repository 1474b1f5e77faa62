//! What is wrong with a search, an order or a choice of fields, and where.

use std::fmt::{self, Display, Formatter, Write as _};

/// The longest quote of the user's text.
const LONGEST_QUOTE: usize = 32;

/// A text of the user's that cannot be followed: always his fault (400).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct SearchError {
    place: Place,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The column counts characters, from 1.
    Search {
        column: usize,
    },
    Order,
    Fields,
}

/// A short piece of the user's text in quotes, with nothing in it that a terminal or a log would obey.
pub(super) struct Quote<'a>(pub(super) &'a str);

// === impl SearchError ===

impl SearchError {
    pub(super) fn search(column: usize, message: impl Into<String>) -> Self {
        Self { place: Place::Search { column }, message: message.into() }
    }

    pub(super) fn order(message: impl Into<String>) -> Self {
        Self { place: Place::Order, message: message.into() }
    }

    pub(super) fn fields(message: impl Into<String>) -> Self {
        Self { place: Place::Fields, message: message.into() }
    }

    /// The contract's code of this error.
    pub fn code(&self) -> &'static str {
        match self.place {
            Place::Search { .. } | Place::Order => "VAL-005",
            Place::Fields => "VAL-000",
        }
    }

    /// Where in the search the fault is: the character, counted from 1.
    pub fn column(&self) -> Option<usize> {
        match self.place {
            Place::Search { column } => Some(column),
            Place::Order | Place::Fields => None,
        }
    }
}

// === impl Place ===

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Search { column } => write!(f, "search, column {column}"),
            Self::Order => f.write_str("order"),
            Self::Fields => f.write_str("fields"),
        }
    }
}

// === impl Quote ===

impl Display for Quote<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        for character in self.0.chars() {
            let before = shown.len();
            match character {
                '\'' | '"' | '\\' => shown.push(character),
                _ => write!(shown, "{}", character.escape_debug())?,
            }
            if shown.chars().count() > LONGEST_QUOTE {
                shown.truncate(before);
                // The dots stand outside: within the quotes they could be the user's.
                return write!(f, "'{shown}'…");
            }
        }
        write!(f, "'{shown}'")
    }
}
