//! Transactions per second of the databases themselves.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Executor as _};
use tokio::process::Command;
use tokio::time::Instant;

use crate::CONNECTIONS;
use crate::database::Database;

/// Returns the transactions per second that the database itself reaches in that time, with the same connections.
pub(crate) async fn measure(database: &Database, time: Duration) -> f64 {
    match database {
        Database::Sqlite(folder) => sqlite(folder.path(), time).await,
        Database::Postgresql { url, .. } => postgresql(url, time).await,
    }
}

/// Commits one row after the other with the settings of the server.
async fn sqlite(folder: &std::path::Path, time: Duration) -> f64 {
    let options = SqliteConnectOptions::new()
        .filename(folder.join("baseline.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = options.connect().await.unwrap();
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, value TEXT)").await.unwrap();
    let (began, mut commits) = (Instant::now(), 0);
    while began.elapsed() < time {
        sqlx::query("INSERT INTO rows (value) VALUES ($1)").bind("a value").execute(&mut connection).await.unwrap();
        commits += 1;
    }
    f64::from(commits) / began.elapsed().as_secs_f64()
}

/// Runs `pgbench -N`.
async fn postgresql(url: &str, time: Duration) -> f64 {
    let url = url.replace("postgresql://", "postgres://");
    run(&["--initialize", "--quiet", "--scale", "10", &url]).await;
    let (connections, seconds) = (CONNECTIONS.to_string(), time.as_secs().max(1).to_string());
    let output = run(&["-N", "--client", &connections, "--jobs", "2", "-T", &seconds, &url]).await;
    let tps = output.lines().find_map(|line| line.strip_prefix("tps = "));
    tps.and_then(|tps| tps.split_whitespace().next()).unwrap().parse().unwrap()
}

async fn run(arguments: &[&str]) -> String {
    let output = Command::new("pgbench").args(arguments).output().await;
    let output = output.expect("pgbench must be on PATH; it comes with PostgreSQL");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
