//! The search language (TSL): which resources a list holds, in which order, with which fields.

mod error;
mod expression;
mod field;
mod fields;
mod literal;
mod order;
mod parser;
mod pattern;
mod scalar;
mod sql;
mod token;

#[cfg(test)]
mod tests;

pub use self::error::SearchError;
pub use self::fields::Fields;
pub use self::order::Order;

use self::expression::Expression;
use self::sql::Writer;
use crate::resource::Resource;
use crate::store::sql::{Dialect, Parameters};

/// The longest search, in characters.
pub const LONGEST: usize = 4096;

/// Which resources are wanted: `labels.shard = '1' and generation > 3`.
///
/// What it means is defined twice, as SQL and in memory, and a test holds the one to the other.
#[derive(Clone, Debug, Default)]
pub struct Search(Option<Expression>);

// === impl Search ===

impl Search {
    /// Reads the language. A blank text wants every resource.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        if text.chars().nth(LONGEST).is_some() {
            let message = format!("a search has at most {LONGEST} characters: ask for less at a time");
            return Err(SearchError::search(LONGEST + 1, message));
        }
        parser::parse(text).map(Self)
    }

    /// Whether every resource is wanted.
    pub fn is_blank(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this resource is wanted.
    pub fn matches(&self, resource: &Resource) -> bool {
        self.0.as_ref().is_none_or(|expression| expression.matches(resource))
    }

    /// The same as an SQL condition over the table alias `r`; whatever the user wrote becomes a parameter.
    pub fn sql(&self, dialect: Dialect, parameters: &mut Parameters) -> String {
        match &self.0 {
            None => "TRUE".to_owned(),
            Some(expression) => Writer { dialect, parameters }.expression(expression),
        }
    }
}
