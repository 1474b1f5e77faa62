//! New stores for tests, on either database.

use std::time::Duration;

use database::{PoolSettings, Source};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::Store;

/// Runs a test on a new SQLite file, without a schema.
pub(super) async fn on_sqlite(test: impl AsyncFnOnce(&Store)) {
    let folder = tempfile::tempdir().unwrap();
    test(&open(&Source::Sqlite { path: folder.path().join("test.db") })).await;
}

/// Runs a test on a new database of the real PostgreSQL, without a schema.
pub(super) async fn on_postgresql(test: impl AsyncFnOnce(&Store)) {
    let Some(server) = variable("REAL_POSTGRESQL_URL") else {
        assert_ne!(variable("CI").as_deref(), Some("true"), "REAL_POSTGRESQL_URL is not set");
        eprintln!("skipped: REAL_POSTGRESQL_URL is not set");
        return;
    };
    let name = format!("store_{}", uuid::Uuid::now_v7().simple());
    let mut admin = PgConnection::connect(&server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await.unwrap();
    test(&open(&Source::PostgresUrl(format!("{}/{name}", server.rsplit_once('/').unwrap().0).into()))).await;
    sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).execute(&mut admin).await.unwrap();
}

fn open(source: &Source) -> Store {
    let minute = Duration::from_mins(1);
    let pool = PoolSettings { max_connections: 4, acquire_timeout: minute, max_lifetime: minute, idle_timeout: minute };
    Store::open(source, pool).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the test's own switches, not a setting of the product")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
