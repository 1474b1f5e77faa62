//! Errors of a search, an order or a selection of fields, with their location.

use std::fmt::{self, Display, Formatter, Write as _};

/// Maximum length of a quote of the user's text, in characters.
const MAX_QUOTE: usize = 32;

/// An invalid search, order or selection of fields; always an error of the caller (400).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {message}")]
pub struct SearchError {
    location: Location,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    /// A character of the search, counted from 1.
    Search {
        column: usize,
    },
    Order,
    Fields,
}

/// A short piece of the user's text in quotes, with control characters escaped.
pub(super) struct Quote<'a>(pub(super) &'a str);

// === impl SearchError ===

impl SearchError {
    pub(super) fn search(column: usize, message: impl Into<String>) -> Self {
        Self { location: Location::Search { column }, message: message.into() }
    }

    pub(super) fn order(message: impl Into<String>) -> Self {
        Self { location: Location::Order, message: message.into() }
    }

    pub(super) fn fields(message: impl Into<String>) -> Self {
        Self { location: Location::Fields, message: message.into() }
    }

    /// The code of the problem.
    pub fn code(&self) -> &'static str {
        match self.location {
            Location::Search { .. } | Location::Order => "VAL-005",
            Location::Fields => "VAL-000",
        }
    }

    /// The character of the search at which the error is, counted from 1.
    pub fn column(&self) -> Option<usize> {
        match self.location {
            Location::Search { column } => Some(column),
            Location::Order | Location::Fields => None,
        }
    }
}

// === impl Location ===

impl Display for Location {
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
            if shown.chars().count() > MAX_QUOTE {
                shown.truncate(before);
                // The ellipsis is outside the quotes, where it cannot be text of the user.
                return write!(f, "'{shown}'…");
            }
        }
        write!(f, "'{shown}'")
    }
}
