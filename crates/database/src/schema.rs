//! Applies the migrations of a component's schema.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;

use daemon::log::causes;
use daemon::passes::ticks;
use daemon::retry::Transient;
use sqlx::AssertSqlSafe;
use tokio::time::timeout;

use super::error::DatabaseError;
use super::pools::{Database, Transaction};
use super::sql::{Dialect, Parameters, Value};

/// Time between two attempts to migrate.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time of an attempt after its wait for another server: a statement whose response was lost must not end the retries.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The schema of a component.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Its migrations, oldest first. Migrations are only ever added.
    pub migrations: &'static [Migration],
    /// The table of the applied migrations. Components that share a database have different ones.
    pub table: &'static str,
    /// Number of the advisory lock of PostgreSQL that serialises the migrations of several servers. It is arbitrary, is the
    /// component's own, and must not change.
    pub lock: i64,
}

/// One migration.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its id, which begins with its number.
    pub id: &'static str,
    /// Its statements for SQLite.
    pub sqlite: &'static str,
    /// Its statements for PostgreSQL.
    pub postgres: &'static str,
}

// === impl Migration ===

impl Migration {
    /// Returns the statements for a database.
    pub fn sql(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

// === impl Schema ===

impl Schema {
    /// Applies the missing migrations and returns their ids.
    ///
    /// They are one transaction under a lock: a second server finds none missing, and a crash leaves the schema unchanged.
    /// `lock_timeout` is the maximum wait for another server; `now` is in microseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`DatabaseError::Schema`] if the database has other migrations than these.
    pub async fn migrate(
        &self,
        database: &Database,
        lock_timeout: Duration,
        now: i64,
    ) -> Result<Vec<&'static str>, DatabaseError> {
        let mut transaction = database.begin().await?;
        if transaction.dialect() == Dialect::Postgres {
            let wait = format!("SET LOCAL lock_timeout = {}", lock_timeout.as_millis());
            transaction.execute(wait, Parameters::default()).await?;
            // A migration of a large fleet may take longer than any statement of a request.
            transaction.execute("SET LOCAL statement_timeout = 0".to_owned(), Parameters::default()).await?;
            let lock = format!("SELECT pg_advisory_xact_lock({})", self.lock);
            transaction.fetch(lock, Parameters::default()).await?;
        }
        let table = self.table;
        let create = format!("CREATE TABLE IF NOT EXISTS {table} (id TEXT PRIMARY KEY, applied_time BIGINT NOT NULL)");
        transaction.run_text(AssertSqlSafe(create)).await?;
        let applied = self.applied(&mut transaction).await?;
        let mut done = Vec::new();
        for migration in self.missing(&applied)? {
            transaction.run(migration.sql(transaction.dialect())).await?;
            let mut parameters = Parameters::default();
            let values = [Value::Text(migration.id.to_owned()), Value::Number(now)].map(|value| parameters.add(value));
            let sql = format!("INSERT INTO {table} (id, applied_time) VALUES ({})", values.join(", "));
            transaction.execute(sql, parameters).await?;
            done.push(migration.id);
        }
        transaction.commit().await?;
        Ok(done)
    }

    /// Returns the ids of the missing migrations without applying them.
    ///
    /// # Errors
    ///
    /// [`DatabaseError::Schema`] if the database has other migrations than these.
    pub async fn pending(&self, database: &Database) -> Result<Vec<&'static str>, DatabaseError> {
        let mut transaction = database.snapshot().await?;
        let table = self.table;
        let exists = match transaction.dialect() {
            Dialect::Sqlite => format!("SELECT COUNT(*) FROM sqlite_master WHERE name = '{table}'"),
            Dialect::Postgres => format!("SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('{table}')"),
        };
        let rows = transaction.fetch(exists, Parameters::default()).await?;
        let exists = rows.first().map_or(Ok(0), |row| row.number(0))? > 0;
        let applied = if exists { self.applied(&mut transaction).await? } else { Vec::new() };
        Ok(self.missing(&applied)?.map(|migration| migration.id).collect())
    }

    async fn applied(&self, transaction: &mut Transaction) -> Result<Vec<String>, DatabaseError> {
        let sql = format!("SELECT id FROM {} ORDER BY id", self.table);
        transaction.fetch(sql, Parameters::default()).await?.iter().map(|row| row.text(0)).collect()
    }

    fn missing(&self, applied: &[String]) -> Result<impl Iterator<Item = &'static Migration>, DatabaseError> {
        let known = applied.iter().zip(self.migrations).all(|(applied, migration)| applied == migration.id);
        if !known || applied.len() > self.migrations.len() {
            return Err(DatabaseError::Schema(
                "the database was made by another or a newer version of this program: use that one, or another database"
                    .to_owned(),
            ));
        }
        Ok(self.migrations.iter().skip(applied.len()))
    }
}

/// Attempts a migration until it is applied, waiting for the database for as long as it takes. `attempt` makes it with a wait
/// of `lock_timeout` for another server, and returns the ids of the migrations that it has applied, with what it has checked after them; `unavailable` is called
/// after each attempt that found the database unavailable.
///
/// # Errors
///
/// An error of an attempt that is not transient.
pub async fn migrate_until_applied<A, T, E>(
    lock_timeout: Duration,
    attempt: impl Fn() -> A,
    unavailable: impl Fn(),
) -> Result<T, E>
where
    A: Future<Output = Result<(Vec<&'static str>, T), E>>,
    E: Transient + Error + 'static,
{
    let mut attempts = ticks(RETRY_INTERVAL);
    loop {
        attempts.tick().await;
        let Ok(migrated) = timeout(lock_timeout + ATTEMPT_TIMEOUT, attempt()).await else {
            tracing::warn!(operation = "migrate", "the database does not answer; retrying");
            continue;
        };
        match migrated {
            Ok((steps, checked)) => {
                if !steps.is_empty() {
                    tracing::info!(operation = "migrate", steps = steps.join(","), "schema migrated");
                }
                return Ok(checked);
            }
            Err(error) if error.is_transient() => {
                let cause = causes(&error);
                tracing::warn!(operation = "migrate", cause, "the database is not available yet; retrying");
                unavailable();
            }
            Err(error) => return Err(error),
        }
    }
}
