//! What can go wrong with a database, sorted by what a caller can do about it.

use std::io;

/// A failure of the database. Its text is for the log; no caller of the API sees it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is away, full, or starting: the same request may succeed later.
    #[error("the database is unavailable")]
    Unavailable(#[source] sqlx::Error),
    /// Two transactions were in each other's way: the same transaction may succeed at once.
    #[error("the transaction met another one")]
    Contended(#[source] sqlx::Error),
    /// Something of that name or id is there already.
    #[error("the row is there already")]
    Duplicate {
        /// Whether the id is taken; otherwise the name is.
        id: bool,
    },
    /// A defect here or a damaged database.
    #[error("the database refused a statement")]
    Internal(#[source] sqlx::Error),
    /// What is stored is not what was written.
    #[error("what is stored in {place} cannot be read")]
    Damaged {
        /// Table and column.
        place: &'static str,
    },
    /// The schema is not the one that this program knows.
    #[error("{0}")]
    Schema(String),
}

impl StoreError {
    /// Whether the same transaction may succeed at once.
    pub fn is_contended(&self) -> bool {
        matches!(self, Self::Contended(_))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) => {
                let code = database.code().unwrap_or_default().into_owned();
                if database.is_unique_violation() {
                    let words = database.message();
                    return Self::Duplicate { id: words.contains("resources.id") || words.contains("resources_pkey") };
                }
                match class(&code) {
                    Class::Unavailable => Self::Unavailable(error),
                    Class::Contended => Self::Contended(error),
                    Class::Other => Self::Internal(error),
                }
            }
            // The last two: a connection that has lost count of its transactions, and is replaced.
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::Tls(_)
            | sqlx::Error::Io(_)
            | sqlx::Error::InvalidSavePointStatement
            | sqlx::Error::BeginFailed => Self::Unavailable(error),
            // A connection that ends in the middle of a message.
            sqlx::Error::Protocol(_) => Self::Unavailable(sqlx::Error::Io(io::Error::other(error))),
            _ => Self::Internal(error),
        }
    }
}

enum Class {
    Unavailable,
    Contended,
    Other,
}

/// The class of an error code: five characters are an SQLSTATE of PostgreSQL, a number is an extended code of SQLite.
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
    use super::*;

    #[test]
    fn codes_of_both_databases_are_told_apart() {
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
