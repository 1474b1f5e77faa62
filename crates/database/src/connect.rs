//! Opens the database with its connection pool and the settings that its guarantees need.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::time::timeout;

use super::checkpoint;
use super::error::DatabaseError;
use super::meter::QueryMeter;
use super::pools::{Database, Pools};

/// Variable of the environment with the URL of a PostgreSQL server.
pub const URL_VARIABLE: &str = "DATABASE_URL";
/// Key of the setting that says how connections are encrypted.
pub const SSL_MODE: &str = "database.ssl.mode";

/// Time without use after which a connection is tested before it is used again.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// Maximum time in which a tested connection must answer; else it is replaced.
const TEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The database to open.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, created if it does not exist.
    Sqlite {
        /// The path of the file.
        path: PathBuf,
    },
    /// A server, by a URL such as `postgresql://user:password@host:5432/hyperfleet`.
    PostgresUrl(SecretString),
    /// A server, by its parts.
    Postgres {
        /// The host name or address.
        host: String,
        /// The port.
        port: u16,
        /// The database's name.
        name: String,
        /// The role to connect as.
        username: Option<String>,
        /// The role's password.
        password: Option<SecretString>,
        /// `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`, as libpq has them.
        ssl_mode: String,
        /// The PEM file of the trusted certificates.
        root_cert_file: Option<PathBuf>,
    },
}

/// The size of the connection pool and the lifetime of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Maximum number of connections.
    pub max_connections: u32,
    /// Maximum time that a request waits for a connection before the answer that the database is unavailable.
    pub acquire_timeout: Duration,
    /// Maximum lifetime of a connection.
    pub max_lifetime: Duration,
    /// Maximum idle time of a connection.
    pub idle_timeout: Duration,
}

/// The program that opens a database.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// Name of its connections in PostgreSQL (`application_name`).
    pub application: &'static str,
    /// Tables that its metrics distinguish.
    pub tables: &'static [&'static str],
}

impl Database {
    /// Opens the database of a component. An unreachable server is no error: statements fail as unavailable until it is
    /// reachable.
    ///
    /// # Errors
    ///
    /// [`DatabaseError::Schema`] with the name of the setting that cannot be used.
    pub fn open(source: &Source, pool: PoolSettings, component: &Component) -> Result<Self, DatabaseError> {
        let pools = match source {
            Source::Sqlite { path } => sqlite(path, pool),
            Source::PostgresUrl(url) => {
                let options = PgConnectOptions::from_str(url.expose_secret()).map_err(|_quotes_the_url| {
                    DatabaseError::Schema(format!("{URL_VARIABLE}: must be like postgresql://user@host:5432/name"))
                })?;
                postgres(options, pool, component)
            }
            Source::Postgres { host, port, name, username, password, ssl_mode, root_cert_file } => {
                let mode = PgSslMode::from_str(ssl_mode).map_err(|_unknown| {
                    DatabaseError::Schema(format!(
                        "{SSL_MODE}: must be one of disable, allow, prefer, require, verify-ca, verify-full"
                    ))
                })?;
                let mut options =
                    PgConnectOptions::new_without_pgpass().host(host).port(*port).database(name).ssl_mode(mode);
                if let Some(username) = username {
                    options = options.username(username);
                }
                if let Some(password) = password {
                    options = options.password(password.expose_secret());
                }
                if let Some(file) = root_cert_file {
                    options = options.ssl_root_cert(file);
                }
                postgres(options, pool, component)
            }
        };
        Ok(Self::new(pools, QueryMeter::new(component.tables)))
    }
}

fn sqlite(path: &Path, pool: PoolSettings) -> Pools {
    // Readable by its owner only. If the creation fails, opening the file returns the cause.
    let _created_or_exists = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // A commit survives a power failure.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(pool.acquire_timeout)
        .pragma("case_sensitive_like", "ON")
        // What a statement needs to undo itself is otherwise a file, created and removed with each write.
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", checkpoint::LIMIT)
        .statement_cache_capacity(200);
    let common = || {
        SqlitePoolOptions::new()
            .acquire_timeout(pool.acquire_timeout)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
    };
    Pools::Sqlite {
        readers: common().max_connections(pool.max_connections.min(8)).connect_lazy_with(options.clone()),
        writer: common()
            .max_connections(1)
            // On a full disk SQLite ends a transaction by itself; the connection's count of transactions is then wrong.
            .after_release(|connection, _| {
                Box::pin(async move { connection.ping().await.map(|()| !connection.is_in_transaction()) })
            })
            .connect_lazy_with(options),
        commits: Arc::default(),
    }
}

fn postgres(options: PgConnectOptions, pool: PoolSettings, component: &Component) -> Pools {
    let options = options.application_name(component.application).options([
        // A client that disappears while it holds locks must not block others.
        ("idle_in_transaction_session_timeout", "30s"),
        ("statement_timeout", "30s"),
    ]);
    let pool = PgPoolOptions::new()
        // Instead of a test of each connection: what was idle may be broken, without notice. Connections of cancelled requests
        // are tested when they are abandoned.
        .test_before_acquire(false)
        .before_acquire(|connection, metadata| {
            Box::pin(async move {
                Ok(metadata.idle_for < TRUSTED_IDLE
                    || matches!(timeout(TEST_TIMEOUT, connection.ping()).await, Ok(Ok(()))))
            })
        })
        .max_connections(pool.max_connections)
        .acquire_timeout(pool.acquire_timeout)
        .max_lifetime(pool.max_lifetime)
        .idle_timeout(pool.idle_timeout)
        .connect_lazy_with(options);
    Pools::Postgres(pool)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::tests::{COMPONENT, POOL, on_postgresql};
    use crate::{Parameters, Row};

    fn by_parts(ssl_mode: &str) -> Source {
        Source::Postgres {
            host: "localhost".to_owned(),
            port: 5432,
            name: "test".to_owned(),
            username: None,
            password: Some("hunter2-Zq7".to_owned().into()),
            ssl_mode: ssl_mode.to_owned(),
            root_cert_file: None,
        }
    }

    #[rstest]
    #[case(
        Source::PostgresUrl("postgresql://user:hunter2-Zq7@host:port/name".to_owned().into()),
        "DATABASE_URL: must be like postgresql://user@host:5432/name"
    )]
    #[case(
        by_parts("verify"),
        "database.ssl.mode: must be one of disable, allow, prefer, require, verify-ca, verify-full"
    )]
    fn errors_name_the_setting_and_no_credential(#[case] source: Source, #[case] expected: &str) {
        let error = Database::open(&source, POOL, &COMPONENT).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?} {source:?}").contains("hunter2"));
    }

    /// An administrator sees which component holds a connection.
    #[tokio::test]
    async fn connections_have_the_component_s_name() {
        on_postgresql(async |database| {
            let sql = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()".to_owned();
            let rows = database.fetch(sql, Parameters::default()).await.unwrap();
            let names: Vec<_> = rows.iter().map(|row: &Row| row.text(0).unwrap()).collect();
            assert_eq!(names, [COMPONENT.application]);
        })
        .await;
    }
}
