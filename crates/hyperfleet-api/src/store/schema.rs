//! Migrations of the schema, oldest first. Migrations are only ever added.

#[cfg(test)]
mod tests;

use super::database::{Database, Transaction};
use super::error::StoreError;
use super::sql::{Dialect, Parameters, Value};

/// One migration.
struct Migration {
    id: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        id: "0001-resources",
        sqlite: include_str!("schema/0001-resources.sqlite.sql"),
        postgres: include_str!("schema/0001-resources.postgres.sql"),
    },
    Migration {
        id: "0002-keys",
        sqlite: include_str!("schema/0002-keys.sqlite.sql"),
        postgres: include_str!("schema/0002-keys.postgres.sql"),
    },
    Migration {
        id: "0003-epoch",
        sqlite: include_str!("schema/0003-epoch.sqlite.sql"),
        postgres: include_str!("schema/0003-epoch.postgres.sql"),
    },
    Migration {
        id: "0004-tombstones",
        sqlite: include_str!("schema/0004-tombstones.sqlite.sql"),
        postgres: include_str!("schema/0004-tombstones.postgres.sql"),
    },
    Migration {
        id: "0005-tenancy",
        sqlite: include_str!("schema/0005-tenancy.sqlite.sql"),
        postgres: include_str!("schema/0005-tenancy.postgres.sql"),
    },
    Migration {
        id: "0006-counts",
        sqlite: include_str!("schema/0006-counts.sqlite.sql"),
        postgres: include_str!("schema/0006-counts.postgres.sql"),
    },
    Migration {
        id: "0007-reasons",
        sqlite: include_str!("schema/0007-reasons.sqlite.sql"),
        postgres: include_str!("schema/0007-reasons.postgres.sql"),
    },
    Migration {
        id: "0008-ranges",
        sqlite: include_str!("schema/0008-ranges.sqlite.sql"),
        postgres: include_str!("schema/0008-ranges.postgres.sql"),
    },
    Migration {
        id: "0009-compression",
        sqlite: include_str!("schema/0009-compression.sqlite.sql"),
        postgres: include_str!("schema/0009-compression.postgres.sql"),
    },
    Migration {
        id: "0010-fewer-indexes",
        sqlite: include_str!("schema/0010-fewer-indexes.sqlite.sql"),
        postgres: include_str!("schema/0010-fewer-indexes.postgres.sql"),
    },
    Migration {
        id: "0011-tenants",
        sqlite: include_str!("schema/0011-tenants.sqlite.sql"),
        postgres: include_str!("schema/0011-tenants.postgres.sql"),
    },
    Migration {
        id: "0012-no-checks-of-rows",
        sqlite: include_str!("schema/0012-no-checks-of-rows.sqlite.sql"),
        postgres: include_str!("schema/0012-no-checks-of-rows.postgres.sql"),
    },
];

/// Serialises the migrations of several servers. The lock's number is arbitrary and must not change.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4837020914372)";

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (id TEXT PRIMARY KEY, applied_time BIGINT NOT NULL)";

/// Applies the missing migrations and returns their ids.
///
/// They are one transaction under a lock: a second server finds none missing, and a crash leaves the schema unchanged.
/// `lock_timeout` is the maximum wait for another server.
pub async fn migrate(
    database: &Database,
    lock_timeout: std::time::Duration,
    now: i64,
) -> Result<Vec<&'static str>, StoreError> {
    let mut transaction = database.begin().await?;
    if transaction.dialect() == Dialect::Postgres {
        let wait = format!("SET LOCAL lock_timeout = {}", lock_timeout.as_millis());
        transaction.execute(wait, Parameters::default()).await?;
        // A migration of a large fleet may take longer than any statement of a request.
        transaction.execute("SET LOCAL statement_timeout = 0".to_owned(), Parameters::default()).await?;
        transaction.fetch(LOCK.to_owned(), Parameters::default()).await?;
    }
    transaction.run(TABLE).await?;
    let applied = applied(&mut transaction).await?;
    let mut done = Vec::new();
    for migration in missing(&applied)? {
        transaction
            .run(match transaction.dialect() {
                Dialect::Sqlite => migration.sqlite,
                Dialect::Postgres => migration.postgres,
            })
            .await?;
        let mut parameters = Parameters::default();
        let values = [Value::Text(migration.id.to_owned()), Value::Number(now)].map(|value| parameters.add(value));
        let sql = format!("INSERT INTO schema_migrations (id, applied_time) VALUES ({})", values.join(", "));
        transaction.execute(sql, parameters).await?;
        done.push(migration.id);
    }
    transaction.commit().await?;
    Ok(done)
}

/// Returns the ids of the missing migrations without applying them.
pub async fn pending(database: &Database) -> Result<Vec<&'static str>, StoreError> {
    let mut transaction = database.snapshot().await?;
    let exists = match transaction.dialect() {
        Dialect::Sqlite => "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_migrations'",
        Dialect::Postgres => "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('schema_migrations')",
    };
    let rows = transaction.fetch(exists.to_owned(), Parameters::default()).await?;
    let exists = rows.first().map_or(Ok(0), |row| row.number(0))? > 0;
    let applied = if exists { applied(&mut transaction).await? } else { Vec::new() };
    Ok(missing(&applied)?.map(|migration| migration.id).collect())
}

async fn applied(transaction: &mut Transaction) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT id FROM schema_migrations ORDER BY id".to_owned();
    transaction.fetch(sql, Parameters::default()).await?.iter().map(|row| row.text(0)).collect()
}

fn missing(applied: &[String]) -> Result<impl Iterator<Item = &'static Migration>, StoreError> {
    let known = applied.iter().zip(MIGRATIONS).all(|(applied, migration)| applied == migration.id);
    if !known || applied.len() > MIGRATIONS.len() {
        return Err(StoreError::Schema(
            "the database was made by another or a newer version of this program: use that one, or another database"
                .to_owned(),
        ));
    }
    Ok(MIGRATIONS.iter().skip(applied.len()))
}
