//! In which order a list is shown.

use std::cmp::Ordering;

use crate::resource::Resource;

use super::error::{Quote, SearchError};
use super::field::{self, Column};

/// Columns with their directions; the id decides between equals, so that pages neither miss nor repeat a resource.
#[derive(Clone, Debug)]
pub struct Order(Vec<Key>);

#[derive(Clone, Copy, Debug)]
struct Key {
    column: &'static Column,
    descending: bool,
}

const DEFAULT: &str = "created_time desc";
const TIE_BREAKER: &str = "id";

// === impl Order ===

impl Order {
    /// Reads `name desc, generation`; each item may be such a list. Nothing means the newest first.
    pub fn parse(items: &[String]) -> Result<Self, SearchError> {
        let written = items.iter().filter(|item| !item.trim().is_empty()).flat_map(|item| item.split(','));
        let mut keys = written.map(Key::parse).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            keys.push(Key::parse(DEFAULT)?);
        }
        let mut keys = decisive(keys);
        // In the direction of the key before it: so one index serves both directions without sorting.
        let descending = keys.last().is_some_and(|key| key.descending);
        keys.push(Key { descending, ..Key::parse(TIE_BREAKER)? });
        Ok(Self(decisive(keys)))
    }

    /// What stands behind ORDER BY.
    pub fn sql(&self) -> String {
        self.0.iter().map(Key::sql).collect::<Vec<_>>().join(", ")
    }

    /// The same in memory.
    pub fn compare(&self, a: &Resource, b: &Resource) -> Ordering {
        self.0.iter().map(|key| key.compare(a, b)).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// A column that was named before decides nothing more, and behind the id there is nothing left to decide.
fn decisive(keys: Vec<Key>) -> Vec<Key> {
    let mut decisive: Vec<Key> = Vec::new();
    for key in keys {
        if !decisive.iter().any(|earlier| [TIE_BREAKER, key.column.name].contains(&earlier.column.name)) {
            decisive.push(key);
        }
    }
    decisive
}

impl Default for Order {
    fn default() -> Self {
        // Nothing that could be malformed is read.
        Self::parse(&[]).unwrap_or(Self(Vec::new()))
    }
}

// === impl Key ===

impl Key {
    fn parse(written: &str) -> Result<Self, SearchError> {
        let malformed = || {
            let written = Quote(written.trim());
            SearchError::order(format!("{written} is no column with asc or desc: write such as '{DEFAULT}'"))
        };
        let mut words = written.split_whitespace();
        let name = words.next().filter(|name| is_name(name)).ok_or_else(malformed)?;
        let descending = match (words.next(), words.next()) {
            (None | Some("asc"), None) => false,
            (Some("desc"), None) => true,
            _ => return Err(malformed()),
        };
        let column = field::find_column(name).ok_or_else(|| {
            let message = format!("{}: {} is none of {}", field::INVALID, Quote(name), field::column_names());
            SearchError::order(message)
        })?;
        Ok(Self { column, descending })
    }

    /// The databases disagree on where nulls belong, so it is said; but only where there are any, as an index serves an
    /// order without it.
    fn sql(&self) -> String {
        let rest = match (self.descending, self.column.nullable) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, false) => " DESC",
            (true, true) => " DESC NULLS LAST",
        };
        format!("r.{}{rest}", self.column.name)
    }

    fn compare(&self, a: &Resource, b: &Resource) -> Ordering {
        let value = self.column.value;
        // Nothing sorts before something.
        let ordering = value(a).partial_cmp(&value(b)).unwrap_or(Ordering::Equal);
        if self.descending { ordering.reverse() } else { ordering }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && text.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_')
}
