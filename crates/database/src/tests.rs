//! New databases for tests, of either kind.

use std::path::Path;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::connect::{Component, PoolSettings, Source};
use crate::pools::Database;

/// The component of the tests.
pub(crate) const COMPONENT: Component = Component { application: "database-test", tables: &["rows"] };

/// A small pool that waits.
pub(crate) const POOL: PoolSettings = PoolSettings {
    max_connections: 4,
    acquire_timeout: Duration::from_mins(1),
    max_lifetime: Duration::from_mins(1),
    idle_timeout: Duration::from_mins(1),
};

/// Runs a test on a new SQLite file.
pub(crate) async fn on_sqlite(test: impl AsyncFnOnce(&Database)) {
    let folder = tempfile::tempdir().unwrap();
    test(&sqlite(folder.path(), POOL)).await;
}

/// Opens a SQLite file in a folder.
pub(crate) fn sqlite(folder: &Path, pool: PoolSettings) -> Database {
    Database::open(&Source::Sqlite { path: folder.join("test.db") }, pool, &COMPONENT).unwrap()
}

/// Runs a test on a new database of the real PostgreSQL.
pub(crate) async fn on_postgresql(test: impl AsyncFnOnce(&Database)) {
    let Some(server) = variable("REAL_POSTGRESQL_URL") else {
        assert_ne!(variable("CI").as_deref(), Some("true"), "REAL_POSTGRESQL_URL is not set");
        eprintln!("skipped: REAL_POSTGRESQL_URL is not set; hack/real-parts/with.sh postgresql -- cargo test");
        return;
    };
    let name = format!("database_{}", uuid::Uuid::now_v7().simple());
    let mut admin = PgConnection::connect(&server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await.unwrap();
    let source = Source::PostgresUrl(format!("{}/{name}", server.rsplit_once('/').unwrap().0).into());
    test(&Database::open(&source, POOL, &COMPONENT).unwrap()).await;
    sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).execute(&mut admin).await.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the test's own switches, not a setting of the product")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
