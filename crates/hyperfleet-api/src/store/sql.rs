//! SQL dialects and statement parameters.

/// The SQL dialect of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite, the embedded default.
    Sqlite,
    /// PostgreSQL, for fleets.
    Postgres,
}

/// The value of a statement's parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An absent text.
    NoText,
    /// An absent number.
    NoNumber,
    /// A text without NUL.
    Text(String),
    /// A number, or a time in microseconds since 1970.
    Number(i64),
    /// A number with a fraction.
    Real(f64),
}

/// The parameters of a statement; adding one returns its placeholder.
#[derive(Debug, Default)]
pub struct Parameters(pub Vec<Value>);

impl Parameters {
    /// Adds a value and returns its placeholder, which both databases understand: `$1`, `$2`, …
    pub fn add(&mut self, value: Value) -> String {
        self.0.push(value);
        format!("${}", self.0.len())
    }
}
