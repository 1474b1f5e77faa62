//! The write-ahead log stays short, whether writes go on or readers hold it.

use std::path::Path;

use futures_util::FutureExt as _;

use super::*;
use crate::commits::{COMMITS, Commits};
use crate::sql::Parameters;
use crate::tests::on_sqlite;

/// Writes a row of that many bytes.
async fn write(database: &Database, bytes: usize) {
    let mut transaction = database.begin().await.unwrap();
    let sql = format!("INSERT INTO rows (value) VALUES (zeroblob({bytes}))");
    transaction.execute(sql, Parameters::default()).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn make_table(database: &Database) {
    let mut transaction = database.begin().await.unwrap();
    transaction.execute("CREATE TABLE rows (value BLOB)".to_owned(), Parameters::default()).await.unwrap();
    transaction.commit().await.unwrap();
}

/// Path of the database, which SQLite itself knows.
async fn path(database: &Database) -> String {
    let sql = "SELECT file FROM pragma_database_list WHERE name = 'main'".to_owned();
    database.fetch(sql, Parameters::default()).await.unwrap()[0].text(0).unwrap()
}

fn size(path: &str) -> u64 {
    Path::new(path).metadata().unwrap().len()
}

#[test]
fn a_checkpoint_is_due_after_enough_commits() {
    let commits = Commits::default();
    for _ in 0..2 {
        (1..COMMITS).for_each(|_| commits.add());
        assert_eq!(commits.are_enough().now_or_never(), None);
        commits.add();
        assert_eq!(commits.are_enough().now_or_never(), Some(()));
    }
}

/// Without checkpoints, the rows of so few commits would stay in the log.
#[tokio::test]
async fn commits_are_copied_while_writes_go_on() {
    on_sqlite(async |database| {
        make_table(database).await;
        let path = path(database).await;
        let written = async {
            for _ in 0..2 * COMMITS {
                write(database, 8192).await;
            }
            while size(&path) < u64::from(COMMITS) * 8192 {
                tokio::task::yield_now().await;
            }
        };
        let minute = std::time::Duration::from_mins(1);
        tokio::select! {
            () = database.make_checkpoints() => unreachable!("it never returns"),
            written = tokio::time::timeout(minute, written) => written.expect("the rows stay in the log"),
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_log_is_used_again_from_its_beginning() {
    on_sqlite(async |database| {
        make_table(database).await;
        write(database, usize::try_from(LONG).unwrap() * 4096).await;
        let log = format!("{}-wal", path(database).await);
        let long = size(&log);
        for _ in 0..3 {
            database.checkpoint().await.unwrap();
            write(database, 1_000_000).await;
        }
        assert_eq!(size(&log), long, "the log has grown");
    })
    .await;
}
