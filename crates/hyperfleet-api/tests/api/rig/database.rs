//! Databases for tests: a new SQLite file, or a new database on a real PostgreSQL.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use database::{PoolSettings, Source};
use hyperfleet_api::store::Store;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// The kinds of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sqlite,
    Postgresql,
}

/// A new database, removed on drop.
#[derive(Debug)]
pub(crate) enum Database {
    Sqlite(tempfile::TempDir),
    Postgresql { server: String, name: String },
}

// === impl Kind ===

impl Kind {
    /// True if this kind can be tested here. Prints how to get it if not; panics in CI.
    pub(crate) fn is_available(self) -> bool {
        if self == Self::Sqlite || postgresql().is_some() {
            return true;
        }
        assert!(variable("CI").as_deref() != Some("true"), "REAL_POSTGRESQL_URL is not set");
        eprintln!("skipped: no PostgreSQL; get one by: eval \"$(hack/real-parts/postgresql.sh up)\"");
        false
    }
}

fn postgresql() -> Option<String> {
    variable("REAL_POSTGRESQL_URL")
}

#[expect(clippy::disallowed_methods, reason = "the environment names the real PostgreSQL")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

// === impl Database ===

impl Database {
    pub(crate) async fn create(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Self::Sqlite(tempfile::tempdir().unwrap()),
            Kind::Postgresql => {
                let (server, name) = (postgresql().unwrap(), format!("rules_{}", uuid::Uuid::now_v7().simple()));
                execute(&server, &format!("CREATE DATABASE {name}")).await;
                Self::Postgresql { server, name }
            }
        }
    }

    /// The variable that points a server to this database, and its value.
    pub(crate) fn setting(&self) -> (&'static str, String) {
        match self {
            Self::Sqlite(_) => ("HYPERFLEET_DATABASE_PATH", self.file().unwrap().to_str().unwrap().to_owned()),
            Self::Postgresql { server, name } => {
                let (server, _) = server.rsplit_once('/').unwrap();
                ("DATABASE_URL", format!("{server}/{name}"))
            }
        }
    }

    /// A backup of it. No server may be running.
    pub(crate) async fn back_up(&self) -> Self {
        match self {
            Self::Sqlite(folder) => {
                let backup = tempfile::tempdir().unwrap();
                copy_files(folder.path(), backup.path());
                Self::Sqlite(backup)
            }
            Self::Postgresql { server, name } => {
                let backup = format!("backup_{}", uuid::Uuid::now_v7().simple());
                execute(server, &format!("CREATE DATABASE {backup} TEMPLATE {name}")).await;
                Self::Postgresql { server: server.clone(), name: backup }
            }
        }
    }

    /// Replaces its content by that of a backup. No server may be running.
    pub(crate) async fn restore(&self, backup: &Self) {
        match (self, backup) {
            (Self::Sqlite(folder), Self::Sqlite(backup)) => {
                for file in std::fs::read_dir(folder.path()).unwrap() {
                    std::fs::remove_file(file.unwrap().path()).unwrap();
                }
                copy_files(backup.path(), folder.path());
            }
            (Self::Postgresql { server, name }, Self::Postgresql { name: backup, .. }) => {
                execute(server, &format!("DROP DATABASE {name}")).await;
                execute(server, &format!("CREATE DATABASE {name} TEMPLATE {backup}")).await;
            }
            _ => panic!("the backup is of another kind of database"),
        }
    }

    /// A store on it, besides the servers'.
    pub(crate) fn store(&self) -> Store {
        let pool = PoolSettings {
            max_connections: 2,
            acquire_timeout: Duration::from_secs(10),
            max_lifetime: Duration::from_mins(1),
            idle_timeout: Duration::from_mins(1),
        };
        let source = match self.file() {
            Some(path) => Source::Sqlite { path },
            None => Source::PostgresUrl(self.setting().1.into()),
        };
        Store::open(&source, pool).unwrap()
    }

    fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Sqlite(folder) => Some(folder.path().join("hyperfleet.db")),
            Self::Postgresql { .. } => None,
        }
    }

    /// The whole content: the bytes of the files, or a dump of each table as text.
    pub(crate) async fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Sqlite(folder) => {
                let files = std::fs::read_dir(folder.path()).unwrap();
                files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
            }
            Self::Postgresql { .. } => {
                let mut connection = PgConnection::connect(&self.setting().1).await.unwrap();
                let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'";
                let tables: Vec<(String,)> = sqlx::query_as(tables).fetch_all(&mut connection).await.unwrap();
                assert!(!tables.is_empty());
                let mut bytes = Vec::new();
                for (table,) in tables {
                    let rows = AssertSqlSafe(format!("SELECT t::text FROM {table} t"));
                    let rows: Vec<(String,)> = sqlx::query_as(rows).fetch_all(&mut connection).await.unwrap();
                    bytes.extend(rows.into_iter().flat_map(|(row,)| row.into_bytes()));
                }
                bytes
            }
        }
    }
}

fn copy_files(from: &Path, to: &Path) {
    for file in std::fs::read_dir(from).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Executes a statement that needs no database. A closed connection counts as one to a template for a moment.
async fn execute(server: &str, sql: &str) {
    let mut connection = PgConnection::connect(server).await.unwrap();
    loop {
        match sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("55006") => {
                tokio::task::yield_now().await;
            }
            done => {
                done.unwrap();
                return;
            }
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Self::Postgresql { server, name } = self else { return };
        let (server, name) = (server.clone(), name.clone());
        finish(async move {
            let Ok(mut connection) = PgConnection::connect(&server).await else { return };
            let drop = AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            let _best_effort = sqlx::raw_sql(drop).execute(&mut connection).await;
        });
    }
}

/// Runs the asynchronous part of a `drop` to its end, on a thread of its own, since the dropping thread may belong to a runtime.
pub(crate) fn finish(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(move || super::block_on(work));
    if tokio::runtime::Handle::try_current().is_ok() {
        // The runtime must keep running on its other threads, as the work needs it.
        let _panicked = tokio::task::block_in_place(|| thread.join());
    } else {
        let _panicked = thread.join();
    }
}
