//! The search language (TSL) of lists, and their order and fields.

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

use database::{Dialect, Parameters};

pub use self::error::SearchError;
pub use self::fields::Fields;
pub use self::order::Order;
pub use self::sql::Scope;

use self::expression::Expression;
use self::sql::{Ids, Writer};
use crate::resource::Resource;

/// Maximum length of a search, in characters.
pub const MAX_LENGTH: usize = 4096;

/// A condition on resources: `labels.shard = '1' and generation > 3`.
///
/// It is evaluated as SQL and in memory; a test holds both to the same results.
#[derive(Clone, Debug, Default)]
pub struct Search(Option<Expression>);

// === impl Search ===

impl Search {
    /// Parses a search. A blank text selects every resource.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        if text.chars().nth(MAX_LENGTH).is_some() {
            let message = format!("a search has at most {MAX_LENGTH} characters: split it into several searches");
            return Err(SearchError::search(MAX_LENGTH + 1, message));
        }
        parser::parse(text).map(Self)
    }

    /// True if every resource is selected.
    pub fn is_blank(&self) -> bool {
        self.0.is_none()
    }

    /// True if this resource is selected.
    pub fn matches(&self, resource: &Resource) -> bool {
        self.0.as_ref().is_none_or(|expression| expression.matches(resource))
    }

    /// The SQL condition over the table alias `r`. Text of the user becomes a parameter, never SQL.
    pub fn sql(&self, dialect: Dialect, parameters: &mut Parameters) -> String {
        self.condition(Writer { dialect, parameters, ids: Ids::Found })
    }

    /// The same condition on SQLite, for resources that another condition finds: it uses no index of resources.
    pub fn filter(&self, parameters: &mut Parameters) -> String {
        self.condition(Writer { dialect: Dialect::Sqlite, parameters, ids: Ids::Of("r.id") })
    }

    /// The SQL of the ids that one of the tests of labels and conditions finds by an index: the one with that number, among
    /// those that everything that is searched for must pass.
    pub fn found_by_index(&self, number: usize, dialect: Dialect, parameters: &mut Parameters) -> Option<String> {
        Writer { dialect, parameters, ids: Ids::Found }.found_by_index(self.0.as_ref()?, number)
    }

    /// True if it has a single test.
    pub fn is_one_test(&self) -> bool {
        matches!(self.0, Some(Expression::Test(..)))
    }

    /// The SQL of the rows `f` that the test with that number finds, among the same tests, as one range of an index; `None`
    /// without such an index, or if a part of the search needs more than labels and conditions.
    ///
    /// The rows are those of resources in that scope, with their `resource_id` and `created_time`.
    pub fn range(
        &self,
        number: usize,
        scope: Scope<'_>,
        dialect: Dialect,
        parameters: &mut Parameters,
    ) -> Option<String> {
        Writer { dialect, parameters, ids: Ids::Of("f.resource_id") }.range(self.0.as_ref()?, number, scope)
    }

    fn condition(&self, mut writer: Writer<'_>) -> String {
        self.0.as_ref().map_or_else(|| "TRUE".to_owned(), |expression| writer.expression(expression))
    }
}
