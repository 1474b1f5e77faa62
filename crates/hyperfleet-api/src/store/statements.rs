//! Statements that are sent to the database together.

use super::database::{Row, Transaction};
use super::error::StoreError;
use super::sql::{Dialect, Parameters};

/// Statements of one transaction that take one message to the database and one response, whatever their number.
///
/// On SQLite each sees the effects of those before it. On PostgreSQL they are the parts of one statement: all see the database
/// as it was before them, except for the rows that a part returns, which later parts read by its name; their order is not
/// defined, and no two of them may write the same row.
#[derive(Debug)]
pub(super) struct Statements {
    dialect: Dialect,
    parts: Vec<String>,
    parameters: Parameters,
}

// === impl Statements ===

impl Statements {
    /// Returns no statements yet.
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, parts: Vec::new(), parameters: Parameters::default() }
    }

    /// The SQL dialect.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The parameters, to which those of the next statement are added.
    pub(super) fn parameters(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Adds a statement. On PostgreSQL its rows are a table with the returned name.
    pub(super) fn add(&mut self, sql: String) -> String {
        self.parts.push(sql);
        format!("part{}", self.parts.len())
    }

    /// Executes the statements so far before those that follow, so that their errors come first.
    pub(super) async fn come_first(&mut self, transaction: &mut Transaction) -> Result<(), StoreError> {
        if self.dialect == Dialect::Postgres {
            std::mem::replace(self, Self::new(self.dialect)).run(transaction).await?;
        }
        Ok(())
    }

    /// Executes the statements and returns the rows of the last one; on SQLite those of all.
    pub(super) async fn run(self, transaction: &mut Transaction) -> Result<Vec<Row>, StoreError> {
        let Self { dialect, mut parts, parameters } = self;
        let Some(last) = parts.pop() else { return Ok(Vec::new()) };
        if parts.is_empty() {
            return transaction.fetch(last, parameters).await;
        }
        let sql = match dialect {
            Dialect::Sqlite => format!("{}; {last}", parts.join("; ")),
            Dialect::Postgres => {
                let parts: Vec<_> =
                    (1..).zip(parts).map(|(number, part)| format!("part{number} AS ({part})")).collect();
                format!("WITH {} {last}", parts.join(", "))
            }
        };
        transaction.fetch(sql, parameters).await
    }
}
