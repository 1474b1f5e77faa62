//! Statements that are given up end, so that their connection serves others.

use std::path::Path;
use std::time::Duration;

use super::Database;
use crate::connect::PoolSettings;
use crate::sql::Parameters;
use crate::tests::{POOL, on_postgresql, sqlite};

/// Counts for hours.
const ENDLESS: &str = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000000) \
                       SELECT COUNT(*) FROM n";

fn database(folder: &Path, max_connections: u32) -> Database {
    sqlite(folder, PoolSettings { max_connections, acquire_timeout: Duration::from_secs(20), ..POOL })
}

/// Reads get a connection while as many searches as there are connections run, or wait for their turn.
#[tokio::test]
async fn searches_leave_connections_to_reads() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), 4);
    // As the migration does: the first connection makes the file one with a write-ahead log, for which it must be alone.
    let _rows = database.fetch("SELECT 1".to_owned(), Parameters::default()).await.unwrap();
    let searches = [(); 4].map(|()| database.clone()).map(|database| {
        tokio::spawn(async move {
            let mut snapshot = database.snapshot_of_search().await.unwrap();
            snapshot.fetch(ENDLESS.to_owned(), Parameters::default()).await.map(drop)
        })
    });
    while database.searches.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        let rows = database.fetch("SELECT 1".to_owned(), Parameters::default()).await.unwrap();
        assert_eq!(rows[0].number(0).unwrap(), 1);
    }
    for search in searches {
        search.abort();
        assert!(search.await.unwrap_err().is_cancelled());
    }
    // Their turns have ended with them.
    drop(database.snapshot_of_search().await.unwrap());
    assert_eq!(database.searches.available_permits(), 2);
}

#[tokio::test]
async fn a_statement_ends_with_its_request() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), 1);
    let fetch = async |sql: &str| database.fetch(sql.to_owned(), Parameters::default()).await.unwrap()[0].number(0);
    let given_up = Duration::from_millis(50);
    for _ in 0..3 {
        assert!(tokio::time::timeout(given_up, fetch(ENDLESS)).await.is_err());
        // There is one connection: it is free again, and not interrupted any more.
        assert_eq!(fetch("SELECT 1").await.unwrap(), 1);
        let in_snapshot = async {
            let mut snapshot = database.snapshot().await.unwrap();
            snapshot.fetch(ENDLESS.to_owned(), Parameters::default()).await.map(drop)
        };
        assert!(tokio::time::timeout(given_up, in_snapshot).await.is_err());
        let mut snapshot = database.snapshot().await.unwrap();
        let counted =
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) SELECT COUNT(*) FROM n";
        let rows = snapshot.fetch(counted.to_owned(), Parameters::default()).await.unwrap();
        assert_eq!(rows[0].number(0).unwrap(), 20_000);
        snapshot.commit().await.unwrap();
    }
}

/// One message commits and begins the next transaction, unless others may wait for the connection.
#[tokio::test]
async fn a_spare_connection_begins_the_next_transaction() {
    on_postgresql(async |database| {
        let mut write = database.begin().await.unwrap();
        write.run("CREATE TABLE kept (number BIGINT)").await.unwrap();
        let mut next = write.commit_and_begin(database).await.unwrap().expect("the pool has others");
        next.run("INSERT INTO kept VALUES (1)").await.unwrap();
        let plans = next.fetch("SHOW plan_cache_mode".to_owned(), Parameters::default()).await.unwrap();
        assert_eq!(plans[0].text(0).unwrap(), "force_generic_plan");
        next.roll_back().await.unwrap();
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(database.begin().await.unwrap());
        }
        let mut last = taken.pop().unwrap();
        last.run("INSERT INTO kept VALUES (2)").await.unwrap();
        assert!(last.commit_and_begin(database).await.unwrap().is_none(), "others may wait for the connection");
        let kept =
            database.fetch("SELECT SUM(number)::bigint FROM kept".to_owned(), Parameters::default()).await.unwrap();
        assert_eq!(kept[0].number(0).unwrap(), 2, "what was undone is not kept, what was committed is");
    })
    .await;
}
