//! Statements that are sent to the database together.

use super::error::DatabaseError;
use super::pools::{Row, Transaction};
use super::sql::{Dialect, Parameters, Value};

/// Statements of one transaction that take one message to the database and one response, whatever their number.
///
/// On SQLite each sees the effects of those before it. On PostgreSQL they are the parts of one statement: all see the database
/// as it was before them, except for the rows that a part returns, which later parts read by its name; their order is not
/// defined, and no two of them may write the same row.
#[derive(Debug)]
pub struct Statements {
    dialect: Dialect,
    parts: Vec<String>,
    /// On PostgreSQL, the names of the parts that [`Statements::effects_done`] waits for.
    effects: Vec<String>,
    parameters: Parameters,
}

// === impl Statements ===

impl Statements {
    /// Returns no statements yet.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, parts: Vec::new(), effects: Vec::new(), parameters: Parameters::default() }
    }

    /// The SQL dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The parameters, to which those of the next statement are added.
    pub fn parameters(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Adds a statement. On PostgreSQL its rows are a table with the returned name.
    pub fn add(&mut self, sql: String) -> String {
        self.parts.push(sql);
        format!("part{}", self.parts.len())
    }

    /// Adds a statement that writes rows and returns nothing, before which no later one that asks for
    /// [`Statements::effects_done`] begins.
    pub fn add_effect(&mut self, sql: &str) {
        match self.dialect {
            Dialect::Sqlite => drop(self.add(sql.to_owned())),
            Dialect::Postgres => drop(self.add_awaited(format!("{sql} RETURNING 1"))),
        }
    }

    /// Adds the same with rows that it returns.
    pub fn add_awaited(&mut self, sql: String) -> String {
        let name = self.add(sql);
        self.effects.push(name.clone());
        name
    }

    /// Returns a condition, always true, whose evaluation carries out the effects so far in their order: what has it does not
    /// begin before them, and an error of an earlier effect comes before one of a later. SQLite needs none.
    pub fn effects_done(&self) -> String {
        if self.dialect == Dialect::Sqlite || self.effects.is_empty() {
            return "1 = 1".to_owned();
        }
        let counts: Vec<_> = self.effects.iter().map(|name| format!("(SELECT COUNT(*) FROM {name})")).collect();
        format!("{} >= 0", counts.join(" + "))
    }

    /// Executes the statements and returns the rows of the last one; on SQLite those of all.
    pub async fn run(self, transaction: &mut Transaction) -> Result<Vec<Row>, DatabaseError> {
        let Self { dialect, mut parts, parameters, effects: _named } = self;
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

/// Inserts rows into a table, which is given with its columns.
pub fn insert_rows(statements: &mut Statements, columns: &str, rows: Vec<Vec<Value>>) {
    insert_or(statements, columns, rows, "");
}

/// Inserts rows likewise, with what follows the rows in the statement.
pub fn insert_or(statements: &mut Statements, columns: &str, rows: Vec<Vec<Value>>, conflict: &str) {
    let dialect = statements.dialect();
    for rows in chunks(rows, dialect) {
        let table = statements.parameters().table(dialect, rows);
        statements.add_effect(&format!("INSERT INTO {columns} SELECT * FROM {table}{conflict}"));
    }
}

/// Splits rows for statements on SQLite, which limits the number of their parameters.
pub fn chunks<Row>(rows: Vec<Row>, dialect: Dialect) -> Vec<Vec<Row>> {
    let size = match dialect {
        Dialect::Sqlite => 500,
        Dialect::Postgres => usize::MAX,
    };
    let mut rows = rows.into_iter().peekable();
    let mut chunks = Vec::new();
    while rows.peek().is_some() {
        chunks.push(rows.by_ref().take(size).collect());
    }
    chunks
}
