//! New databases for tests: a SQLite file, or a database on a real PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use credentials::ledger::Ledger;
use credentials::ledger::schema::COMPONENT;
use database::sealed::{DigestKey, KeyBytes, Keyring};
use database::{Database, PoolSettings, Source};
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use testkit::environment::{missing, variable};

const POOL: PoolSettings = PoolSettings {
    max_connections: 4,
    acquire_timeout: Duration::from_mins(1),
    max_lifetime: Duration::from_mins(5),
    idle_timeout: Duration::from_mins(5),
};

/// The kinds of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgresql,
}

/// A database; a SQLite file is removed after the test.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    pub(crate) database: Database,
    source: Source,
    _folder: Option<tempfile::TempDir>,
}

// === impl TestDatabase ===

impl TestDatabase {
    /// A new one with the schema; `None` if this kind cannot be tested here.
    pub(crate) async fn new(kind: Kind) -> Option<Self> {
        let (source, folder) = match kind {
            Kind::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                (Source::Sqlite { path: folder.path().join("ledger.db") }, Some(folder))
            }
            Kind::Postgresql => (postgresql().await?, None),
        };
        let database = Database::open(&source, POOL, &COMPONENT).unwrap();
        let new = Self { database, source, _folder: folder };
        new.ledger(&[1]).migrate(Duration::from_secs(10), Timestamp::UNIX_EPOCH).await.unwrap();
        Some(new)
    }

    /// The ledger with these keys, of which the first one seals.
    pub(crate) fn ledger(&self, keys: &[u8]) -> Ledger {
        Ledger::new(self.database.clone(), Arc::new(keyring(keys)))
    }

    /// The ledger as another process opens it.
    pub(crate) fn replica(&self) -> Ledger {
        let database = Database::open(&self.source, POOL, &COMPONENT).unwrap();
        Ledger::new(database, Arc::new(keyring(&[1])))
    }

    /// Every value of a table as text.
    pub(crate) async fn dump(&self, sql: &str, columns: usize) -> String {
        let rows = self.database.fetch(sql.to_owned(), database::Parameters::default()).await.unwrap();
        let line = |row: &database::Row| {
            let values = (0..columns).map(|column| row.optional_text(column).unwrap().unwrap_or_default());
            values.collect::<Vec<_>>().join("|")
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn keyring(keys: &[u8]) -> Keyring {
    let key = |key: &u8| KeyBytes { id: format!("key-{key}"), bytes: vec![*key; 32].into() };
    Keyring::new(keys.iter().map(key).collect(), DigestKey::Derived("credentials/test/1")).unwrap()
}

async fn postgresql() -> Option<Source> {
    let Some(server) = variable("REAL_POSTGRESQL_URL") else {
        return missing("REAL_POSTGRESQL_URL is not set: hack/real-parts/with.sh postgresql -- cargo test");
    };
    let name = format!("credentials_{}", uuid::Uuid::now_v7().simple());
    let mut admin = PgConnection::connect(&server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await.unwrap();
    Some(Source::PostgresUrl(format!("{}/{name}", server.rsplit_once('/').unwrap().0).into()))
}
