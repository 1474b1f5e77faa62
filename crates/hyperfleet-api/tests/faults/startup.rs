//! Databases that are missing or unusable when a server starts.

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use crate::rig::{TestDatabase, start_at_once, until, variables};

/// Requests before the first migration are unavailable, not internal errors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_before_the_first_migration_are_unavailable() {
    for _ in 0..10 {
        for database in TestDatabase::all().await {
            let rig = start_at_once(&database.variables()).await;
            until("the first success", async || {
                let answer = rig.client.get("/clusters").await;
                assert!([200, 503].contains(&answer.status), "{answer:?}");
                answer.status == 200
            })
            .await;
            rig.end().await;
            database.end().await;
        }
    }
}

/// A database with the schema of a later version is not written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_neither_read_nor_written() {
    for database in TestDatabase::all().await {
        database.start().await.end().await;
        let newer = "INSERT INTO schema_migrations (id, applied_time) VALUES ('9999-later', 1)";
        match &database {
            TestDatabase::Sqlite(folder) => {
                let url = format!("sqlite://{}/api.db", folder.path().display());
                let mut connection = SqliteConnection::connect(&url).await.unwrap();
                sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
            }
            TestDatabase::Postgres { url, .. } => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
            }
        }
        let refused = start_at_once(&database.variables()).await.refuses().await;
        assert!(refused.to_string().contains("newer version"), "{refused}");
        database.end().await;
    }
}

/// Another program's tables of the same names are not changed.
#[tokio::test]
async fn an_unmanaged_sqlite_database_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/unmanaged.db", folder.path().display());
    let mut connection = SqliteConnection::connect(&format!("sqlite://{path}?mode=rwc")).await.unwrap();
    sqlx::raw_sql("CREATE TABLE resources (mine TEXT); INSERT INTO resources VALUES ('kept')")
        .execute(&mut connection)
        .await
        .unwrap();
    start_at_once(&variables(&path, None)).await.refuses().await;
    let tables: Vec<(String,)> = sqlx::query_as(AssertSqlSafe("SELECT name FROM sqlite_master".to_owned()))
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(tables, [("resources".to_owned(),)]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/garbage.db", folder.path().display());
    let garbage = b"this is not a database but a text file. ".repeat(500);
    daemon::file::replace(path.as_ref(), &garbage).unwrap();
    start_at_once(&variables(&path, None)).await.refuses().await;
    assert_eq!(std::fs::read(&path).unwrap(), garbage, "the file is overwritten");
}

/// The database comes up after the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_start_before_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/not/yet/api.db", folder.path().display());
    // The key file is in the folder of the database, so the folder exists; the database file does not.
    std::fs::create_dir_all(format!("{}/not/yet", folder.path().display())).unwrap();
    let rig = start_at_once(&variables(&path, None)).await;
    rig.ready().await;
    assert_eq!(rig.client.post("/clusters", &json!({"kind": "Cluster", "name": "one", "spec": {}})).await.status, 201);
    rig.end().await;
}
