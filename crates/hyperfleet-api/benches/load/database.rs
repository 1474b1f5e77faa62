//! The databases of the servers under load.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

/// Counts the resources anew.
const COUNTS: &str = "UPDATE resource_counts SET count = (SELECT COUNT(*) FROM resources r WHERE r.kind = \
                      resource_counts.kind AND r.tenancy = resource_counts.tenancy)";

/// A database, and how to reach it.
pub(crate) enum Database {
    Sqlite(tempfile::TempDir),
    Postgresql { admin: String, url: String },
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub(crate) async fn postgresql(admin: &str) -> Self {
        let name = format!("load_{}", uuid::Uuid::now_v7().simple());
        run_postgresql(admin, &format!("CREATE DATABASE {name}")).await;
        Self::Postgresql { admin: admin.to_owned(), url: format!("{}/{name}", admin.rsplit_once('/').unwrap().0) }
    }

    pub(crate) async fn end(self) {
        if let Self::Postgresql { admin, url } = self {
            run_postgresql(&admin, &format!("DROP DATABASE {} WITH (FORCE)", url.rsplit_once('/').unwrap().1)).await;
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgresql { .. } => "PostgreSQL",
        }
    }

    /// Copies the one stored cluster until there are `count`.
    pub(crate) async fn fill(&self, count: u64) {
        let series = match self {
            Self::Sqlite(_) => {
                format!("WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {count} - 1)")
            }
            Self::Postgresql { .. } => format!("WITH s AS (SELECT generate_series(1, {count} - 1) AS i)"),
        };
        let parts = [
            format!(
                "INSERT INTO resources (id, kind, name, href, tenancy, generation, created_time, created_by, \
                 updated_time, updated_by, spec, object, state) {series} SELECT 'c-' || i, kind, 'c-' || i, href, \
                 tenancy, generation, \
                 created_time + i, created_by, updated_time + i, updated_by, spec, \
                 {}, {} FROM s, resources WHERE id = 'c-0'",
                labelled("object"),
                labelled("state"),
            ),
            format!(
                "INSERT INTO resource_labels {series} SELECT 'c-' || i, key, \
                 CASE key WHEN 'shard' THEN '' || (i % 100) WHEN 'group' THEN '' || (i / 10) ELSE value END, kind, tenancy, \
                 created_time + i FROM s, resource_labels \
                 WHERE resource_id = 'c-0'"
            ),
            format!(
                "INSERT INTO resource_conditions {series} SELECT 'c-' || i, type, status, observed_generation, \
                 last_updated_time, last_transition_time, reason, kind, created_time + i FROM s, resource_conditions WHERE resource_id = 'c-0'"
            ),
            COUNTS.to_owned(),
        ];
        for sql in parts {
            match self {
                Self::Sqlite(folder) => {
                    let url = format!("sqlite://{}/api.db", folder.path().display());
                    let mut connection = SqliteConnection::connect(&url).await.unwrap();
                    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
                    connection.close().await.unwrap();
                }
                Self::Postgresql { url, .. } => run_postgresql(url, &sql).await,
            }
        }
        if let Self::Postgresql { url, .. } = self {
            // As autovacuum does in a running system.
            run_postgresql(url, "VACUUM ANALYZE").await;
        }
    }
}

/// Returns the SQL of a document of `c-0` with the id and the labels of the cluster with number `i`.
fn labelled(document: &str) -> String {
    let member =
        |name: &str, old: &str, new: &str| (format!("\"{name}\":\"{old}\""), format!("\"{name}\":\"' || {new} || '\""));
    let members =
        [member("id", "c-0", "'c-' || i"), member("shard", "0", "(i % 100)"), member("group", "0", "(i / 10)")];
    members.into_iter().fold(document.to_owned(), |sql, (old, new)| format!("replace({sql}, '{old}', '{new}')"))
}

pub(crate) async fn run_postgresql(url: &str, sql: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
