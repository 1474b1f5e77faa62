//! Parameters of statements, as the databases' libraries take them.

use sqlx::Arguments as _;
use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteArguments;

use crate::error::DatabaseError;
use crate::sql::{Parameters, Value};

/// Returns the parameters of a statement on SQLite.
pub(super) fn sqlite(parameters: Parameters) -> Result<SqliteArguments, DatabaseError> {
    let mut arguments = SqliteArguments::default();
    for value in parameters.0 {
        match value {
            Value::NoText => arguments.add(None::<String>),
            Value::NoNumber => arguments.add(None::<i64>),
            Value::Text(text) => arguments.add(text),
            Value::Number(number) => arguments.add(number),
            Value::Real(number) => arguments.add(number),
            Value::Texts(_) | Value::Numbers(_) => Err("SQLite has no arrays".into()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// Returns the parameters of a statement on PostgreSQL.
pub(super) fn postgres(parameters: Parameters) -> Result<PgArguments, DatabaseError> {
    let mut arguments = PgArguments::default();
    for value in parameters.0 {
        match value {
            Value::NoText => arguments.add(None::<String>),
            Value::NoNumber => arguments.add(None::<i64>),
            Value::Text(text) => arguments.add(text),
            Value::Number(number) => arguments.add(number),
            Value::Real(number) => arguments.add(number),
            Value::Texts(texts) => arguments.add(texts),
            Value::Numbers(numbers) => arguments.add(numbers),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
