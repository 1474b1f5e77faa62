//! Copies SQLite's write-ahead log into the database beside the writes.
//!
//! By itself SQLite does that within the commit that brings the log to 1,000 pages: every write waits for it, 10 to 20 ms on a
//! common disk. A passive checkpoint by another connection lets writes go on. As it stops at the commit that was the last
//! when it began, a log that has become long is also emptied by the connection that writes, which has little left to copy.

use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::error::DatabaseError;
use super::pools::{Database, Pools};

#[cfg(test)]
mod tests;

/// Pages in the log at which a commit makes a checkpoint after all, because this one has fallen behind: 64 MiB.
pub(crate) const LIMIT: &str = "16384";

/// Pages in the log from which on it is emptied by the connection that writes: 8 MiB.
const LONG: i64 = 2048;

impl Database {
    /// Makes checkpoints when they are due; never returns. PostgreSQL makes its own.
    pub async fn make_checkpoints(&self) {
        let Pools::Sqlite { commits, .. } = self.pools() else { return std::future::pending().await };
        loop {
            commits.are_enough().await;
            if let Err(error) = self.checkpoint().await {
                // Commits make checkpoints at the limit.
                tracing::debug!(operation = "checkpoint", %error, "cannot copy the write-ahead log; retrying");
            }
        }
    }

    async fn checkpoint(&self) -> Result<(), DatabaseError> {
        let Pools::Sqlite { readers, writer, .. } = self.pools() else { return Ok(()) };
        let pages = checkpoint(&mut *readers.acquire().await?).await?;
        if pages >= LONG {
            checkpoint(&mut *writer.acquire().await?).await?;
        }
        Ok(())
    }
}

/// Copies what no reader still needs as it was; returns the number of pages in the log.
async fn checkpoint(connection: &mut SqliteConnection) -> Result<i64, DatabaseError> {
    let row = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").fetch_one(connection).await?;
    Ok(row.try_get("log")?)
}
