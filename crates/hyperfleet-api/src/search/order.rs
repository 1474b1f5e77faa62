//! The order of a list.

use std::cmp::Ordering;

use crate::resource::Resource;

use super::error::{Quote, SearchError};
use super::field::{self, Column};

/// Columns with their directions. The id breaks ties, so that pages neither miss nor repeat a resource.
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
    /// Parses an order such as `name desc, generation`; each item may be such a list. The default is the newest first.
    pub fn parse(items: &[String]) -> Result<Self, SearchError> {
        let keys = items.iter().flat_map(|item| item.split(',')).filter(|key| !key.trim().is_empty());
        let mut keys = keys.map(Key::parse).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            keys.push(Key::parse(DEFAULT)?);
        }
        let mut keys = without_redundant(keys);
        // The direction of the previous key, so that one index serves both directions without sorting.
        let descending = keys.last().is_some_and(|key| key.descending);
        keys.push(Key { descending, ..Key::parse(TIE_BREAKER)? });
        Ok(Self(without_redundant(keys)))
    }

    /// True for the order of ids alone, ascending.
    pub fn is_by_id(&self) -> bool {
        matches!(self.0.as_slice(), [Key { column, descending: false }] if column.name == TIE_BREAKER)
    }

    /// The SQL after ORDER BY for the order of creation, in either direction, over columns of these names; `None` for any
    /// other order.
    pub fn by_creation(&self, time: &str, id: &str) -> Option<String> {
        let direction = match self.0.as_slice() {
            [first, last] if first.column.name != "created_time" || first.descending != last.descending => return None,
            [first, _] if first.descending => " DESC",
            [_, _] => "",
            _ => return None,
        };
        Some(format!("{time}{direction}, {id}{direction}"))
    }

    /// The SQL after ORDER BY.
    pub fn sql(&self) -> String {
        self.0.iter().map(Key::sql).collect::<Vec<_>>().join(", ")
    }

    /// Compares two resources in memory by the same order.
    pub fn compare(&self, a: &Resource, b: &Resource) -> Ordering {
        self.0.iter().map(|key| key.compare(a, b)).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// Removes the keys that have no effect: repeated columns, and all after the id.
fn without_redundant(keys: Vec<Key>) -> Vec<Key> {
    let mut kept: Vec<Key> = Vec::new();
    for key in keys {
        if !kept.iter().any(|earlier| [TIE_BREAKER, key.column.name].contains(&earlier.column.name)) {
            kept.push(key);
        }
    }
    kept
}

impl Default for Order {
    fn default() -> Self {
        // An empty list has no malformed item.
        Self::parse(&[]).unwrap_or(Self(Vec::new()))
    }
}

// === impl Key ===

impl Key {
    fn parse(text: &str) -> Result<Self, SearchError> {
        let malformed = || {
            let text = Quote(text.trim());
            SearchError::order(format!("{text} is not a column with asc or desc: write for example '{DEFAULT}'"))
        };
        let mut parts = text.split_whitespace();
        let name = parts.next().filter(|name| is_name(name)).ok_or_else(malformed)?;
        let descending = match (parts.next(), parts.next()) {
            (None | Some("asc"), None) => false,
            (Some("desc"), None) => true,
            _ => return Err(malformed()),
        };
        let column = field::find_column(name).ok_or_else(|| {
            let message = format!("{}: {} is not one of {}", field::INVALID, Quote(name), field::column_names());
            SearchError::order(message)
        })?;
        Ok(Self { column, descending })
    }

    /// The SQL of one column. The databases disagree on the position of nulls, so nullable columns state it; others do not,
    /// so that an index serves them.
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
        // `None` sorts before `Some`.
        let ordering = value(a).partial_cmp(&value(b)).unwrap_or(Ordering::Equal);
        if self.descending { ordering.reverse() } else { ordering }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && text.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_')
}
