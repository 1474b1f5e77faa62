//! Databases that are not there yet, or not what they should be, when a server starts.

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use crate::rig::{Place, start_at_once, until, variables};

/// Until the schema is there, requests are told to wait; a server's first moments are no internal error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_before_the_first_migration_are_unavailable() {
    for _ in 0..10 {
        for place in Place::all().await {
            let rig = start_at_once(&place.variables()).await;
            until("the first success", async || {
                let answer = rig.client.get("/clusters").await;
                assert!([200, 503].contains(&answer.status), "{answer:?}");
                answer.status == 200
            })
            .await;
            rig.end().await;
            place.end().await;
        }
    }
}

/// A schema of a later version means something else than this program thinks: nothing may be written to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_neither_read_nor_written() {
    for place in Place::all().await {
        place.start().await.end().await;
        let newer = "INSERT INTO schema_migrations (id, applied_time) VALUES ('9999-later', 1)";
        match &place {
            Place::Sqlite(folder) => {
                let url = format!("sqlite://{}/api.db", folder.path().display());
                let mut connection = SqliteConnection::connect(&url).await.unwrap();
                sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
            }
            Place::Postgres { url, .. } => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
            }
        }
        let refused = start_at_once(&place.variables()).await.refuses().await;
        assert!(refused.to_string().contains("newer version"), "{refused}");
        place.end().await;
    }
}

/// Another program's tables of the same names are not touched either.
#[tokio::test]
async fn a_foreign_sqlite_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/foreign.db", folder.path().display());
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
async fn a_file_that_is_no_database_makes_nothing_but_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/garbage.db", folder.path().display());
    let garbage = b"this is no database, but somebody's diary. ".repeat(500);
    daemon::file::replace(path.as_ref(), &garbage).unwrap();
    start_at_once(&variables(&path, None)).await.refuses().await;
    assert_eq!(std::fs::read(&path).unwrap(), garbage, "nobody's file is overwritten");
}

/// The database comes up after the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_be_there_before_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/not/yet/api.db", folder.path().display());
    // The key lies beside the database, so the folder is needed for it; the database file is not.
    std::fs::create_dir_all(format!("{}/not/yet", folder.path().display())).unwrap();
    let rig = start_at_once(&variables(&path, None)).await;
    rig.ready().await;
    assert_eq!(rig.client.post("/clusters", &json!({"kind": "Cluster", "name": "one", "spec": {}})).await.status, 201);
    rig.end().await;
}
