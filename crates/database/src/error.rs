//! Errors of the database, by what the caller can do about them.

use std::io;
use std::sync::Arc;

use daemon::retry::Transient;

/// A failure of the database. Its text is for the log and is not sent to clients.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database is unreachable, full, or starting: the same request may succeed later.
    #[error("the database is unavailable")]
    Unavailable(#[source] Arc<sqlx::Error>),
    /// The transaction conflicts with another one: the same transaction may succeed at once.
    #[error("the transaction conflicts with another one")]
    Contended(#[source] Arc<sqlx::Error>),
    /// Another row has the same unique value.
    #[error("the row exists already")]
    Duplicate {
        /// The value that is unique: on SQLite its columns (`table.column`, separated by `, `), on PostgreSQL the name of the
        /// constraint or index.
        unique: String,
    },
    /// A defect of this program or a damaged database.
    #[error("the database refused a statement")]
    Internal(#[source] Arc<sqlx::Error>),
    /// A stored value has another form than this program writes.
    #[error("the value stored in {location} cannot be read")]
    Damaged {
        /// Table and column.
        location: &'static str,
    },
    /// The schema is not the one of this program.
    #[error("{0}")]
    Schema(String),
}

impl DatabaseError {
    /// Returns true if the disk has no room for a write.
    pub(crate) fn is_full(&self) -> bool {
        let Self::Unavailable(error) = self else { return false };
        let sqlx::Error::Database(error) = &**error else { return false };
        // FULL of SQLite, also where it comes as IOERR_WRITE or IOERR_FSYNC; the SQLSTATE of a full disk.
        error.code().is_some_and(|code| matches!(&*code, "13" | "778" | "1034" | "53100"))
    }

    /// Returns the failure of work that has taken too long.
    pub fn timed_out() -> Self {
        Self::Unavailable(Arc::new(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
    }

    /// Returns true if the same request may succeed later.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Returns true if the same transaction may succeed at once.
    pub fn is_contended(&self) -> bool {
        matches!(self, Self::Contended(_))
    }
}

impl Transient for DatabaseError {
    fn is_transient(&self) -> bool {
        self.is_unavailable() || self.is_contended()
    }
}

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) => {
                let code = database.code().unwrap_or_default().into_owned();
                if database.is_unique_violation() {
                    let unique = database.constraint().unwrap_or_else(|| unique_columns(database.message()));
                    return Self::Duplicate { unique: unique.to_owned() };
                }
                match class(&code) {
                    Class::Unavailable => Self::Unavailable(Arc::new(error)),
                    Class::Contended => Self::Contended(Arc::new(error)),
                    Class::Other => Self::Internal(Arc::new(error)),
                }
            }
            // The last two: a connection whose count of transactions is wrong; it is replaced.
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::Tls(_)
            | sqlx::Error::Io(_)
            | sqlx::Error::InvalidSavePointStatement
            | sqlx::Error::BeginFailed => Self::Unavailable(Arc::new(error)),
            // A connection that ends in the middle of a message.
            sqlx::Error::Protocol(_) => Self::Unavailable(Arc::new(sqlx::Error::Io(io::Error::other(error)))),
            _ => Self::Internal(Arc::new(error)),
        }
    }
}

/// Returns the columns that SQLite's message names, such as `UNIQUE constraint failed: clusters.id`.
fn unique_columns(message: &str) -> &str {
    message.rsplit_once("failed: ").map_or(message, |(_, columns)| columns)
}

enum Class {
    Unavailable,
    Contended,
    Other,
}

/// Returns the class of an error code: five characters are an SQLSTATE of PostgreSQL, a number is an extended code of
/// SQLite.
fn class(code: &str) -> Class {
    if let Some(primary) = code.parse::<u32>().ok().filter(|_| code.len() < 5).map(|code| code & 0xff) {
        return match primary {
            // BUSY, LOCKED
            5 | 6 => Class::Contended,
            // READONLY, IOERR, FULL, CANTOPEN
            8 | 10 | 13 | 14 => Class::Unavailable,
            _ => Class::Other,
        };
    }
    match code {
        // Serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => Class::Contended,
        // Shut down, crashed, cannot connect now, read-only (a standby), statement time-out.
        "57P01" | "57P02" | "57P03" | "57014" | "25006" => Class::Unavailable,
        // Connections, authentication (a password that is just being rotated), resources, system errors.
        _ if ["08", "28", "53", "58"].iter().any(|class| code.starts_with(class)) => Class::Unavailable,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::sql::Parameters;
    use crate::tests::{on_postgresql, on_sqlite};
    use crate::{Database, Transaction};

    /// Returns the unique value that the second of two equal rows would have had.
    async fn duplicate(database: &Database, columns: &str) -> String {
        let mut write = database.begin().await.unwrap();
        write.run("CREATE TABLE things (id TEXT PRIMARY KEY, kind TEXT, name TEXT)").await.unwrap();
        write.run("CREATE UNIQUE INDEX things_name ON things (kind, name)").await.unwrap();
        let insert = async |write: &mut Transaction, values: &str| {
            let sql = format!("INSERT INTO things ({columns}) VALUES ({values})");
            write.execute(sql, Parameters::default()).await
        };
        insert(&mut write, "'1', 'a', 'b'").await.unwrap();
        match insert(&mut write, "'2', 'a', 'b'").await {
            Err(DatabaseError::Duplicate { unique }) => unique,
            other => panic!("no duplicate: {other:?}"),
        }
    }

    #[rstest]
    #[case("id, kind, name", "things.kind, things.name", "things_name")]
    #[case("name, id, kind", "things.id", "things_pkey")]
    #[tokio::test]
    async fn a_duplicate_names_what_is_unique(#[case] columns: &str, #[case] sqlite: &str, #[case] postgres: &str) {
        on_sqlite(async |database| assert_eq!(duplicate(database, columns).await, sqlite)).await;
        on_postgresql(async |database| assert_eq!(duplicate(database, columns).await, postgres)).await;
    }

    #[test]
    fn codes_of_both_databases_are_classified() {
        assert!(matches!(class("517"), Class::Contended));
        assert!(matches!(class("13"), Class::Unavailable));
        assert!(matches!(class("1"), Class::Other));
        assert!(matches!(class("57P01"), Class::Unavailable));
        assert!(matches!(class("53300"), Class::Unavailable));
        assert!(matches!(class("08006"), Class::Unavailable));
        assert!(matches!(class("40P01"), Class::Contended));
        assert!(matches!(class("42601"), Class::Other));
        assert!(matches!(class("22P05"), Class::Other));
    }
}
