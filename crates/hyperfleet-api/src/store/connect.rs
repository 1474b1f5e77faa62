//! Opening a database: which one, with how many connections, and the promises it must keep.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::database::{Database, Pools};
use super::{Store, StoreError};

/// A connection that takes longer to end what it was doing is cut.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Which database.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, made if it is not there.
    Sqlite {
        /// Its path.
        path: PathBuf,
    },
    /// A server, by a URL such as `postgresql://user:password@host:5432/hyperfleet`.
    PostgresUrl(SecretString),
    /// A server, by its parts.
    Postgres {
        /// Where it listens.
        host: String,
        /// On which port.
        port: u16,
        /// The database's name.
        name: String,
        /// The role.
        username: Option<String>,
        /// Its password.
        password: Option<SecretString>,
        /// `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`, as libpq has them.
        ssl_mode: String,
        /// The certificates to trust.
        root_cert_file: Option<PathBuf>,
    },
}

/// How many connections, and how long they live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// At most so many at once.
    pub max_connections: u32,
    /// So long a request waits for one before it is answered that the database is unavailable.
    pub acquire_timeout: Duration,
    /// None lives longer.
    pub max_lifetime: Duration,
    /// None idles longer.
    pub idle_timeout: Duration,
}

impl Store {
    /// Opens the database. An unreachable server is no error: requests are answered as unavailable until it is there.
    pub fn open(source: &Source, pool: PoolSettings) -> Result<Self, StoreError> {
        let database = match source {
            Source::Sqlite { path } => sqlite(path, pool),
            Source::PostgresUrl(url) => {
                let options = PgConnectOptions::from_str(url.expose_secret()).map_err(|_quotes_the_url| {
                    StoreError::Schema("DATABASE_URL: must be like postgresql://user@host:5432/name".to_owned())
                })?;
                postgres(options, pool)
            }
            Source::Postgres { host, port, name, username, password, ssl_mode, root_cert_file } => {
                let mode = PgSslMode::from_str(ssl_mode).map_err(|_unknown| {
                    StoreError::Schema(
                        "database.ssl.mode: must be one of disable, allow, prefer, require, verify-ca, verify-full"
                            .to_owned(),
                    )
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
                postgres(options, pool)
            }
        };
        Ok(Self::new(database))
    }
}

fn sqlite(path: &Path, pool: PoolSettings) -> Database {
    // Made readable by its owner only; if that fails, opening it says why.
    let _made_or_there = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // Committed is committed, also when the power goes.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(pool.acquire_timeout)
        .pragma("case_sensitive_like", "ON")
        .statement_cache_capacity(200);
    let common = || {
        SqlitePoolOptions::new()
            .acquire_timeout(pool.acquire_timeout)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
    };
    Database::new(Pools::Sqlite {
        readers: common().max_connections(pool.max_connections.min(8)).connect_lazy_with(options.clone()),
        writer: common()
            .max_connections(1)
            // On a full disk SQLite ends a transaction by itself; a connection that does not know it is of no more use.
            .after_release(|connection, _| {
                Box::pin(async move { connection.ping().await.map(|()| !connection.is_in_transaction()) })
            })
            .connect_lazy_with(options),
    })
}

fn postgres(options: PgConnectOptions, pool: PoolSettings) -> Database {
    let options = options.application_name("hyperfleet-api").options([
        // A server that has gone away while it holds locks must not keep others waiting.
        ("idle_in_transaction_session_timeout", "30s"),
        ("statement_timeout", "30s"),
    ]);
    let pool = PgPoolOptions::new()
        // A connection whose request was given up may be cut off without knowing: waiting for its answer would keep its
        // place in the pool for hours.
        .after_release(|connection, _| {
            Box::pin(async move {
                let answered = tokio::time::timeout(RELEASE_TIMEOUT, connection.ping()).await;
                answered.unwrap_or_else(|_elapsed| Err(io::Error::from(io::ErrorKind::TimedOut).into())).map(|()| true)
            })
        })
        .max_connections(pool.max_connections)
        .acquire_timeout(pool.acquire_timeout)
        .max_lifetime(pool.max_lifetime)
        .idle_timeout(pool.idle_timeout)
        .connect_lazy_with(options);
    Database::new(Pools::Postgres(pool))
}
