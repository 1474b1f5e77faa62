//! Probes: if the database answers, and if it can be written.

use super::error::DatabaseError;
use super::pools::Database;
use super::sql::{Parameters, Value};

/// More than fits into a page, so that the write needs room; in bytes.
const LITTLE: usize = 16 * 1024;
/// Room for some writes of the largest rows, in bytes.
const RESERVE: usize = 4 * 1024 * 1024;

// === impl Database ===

impl Database {
    /// Fails if the database does not answer, or does not give its write lock.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        let mut transaction = self.begin().await?;
        transaction.fetch("SELECT 1".to_owned(), Parameters::default()).await?;
        transaction.commit().await
    }

    /// Returns true after a write for which the disk had no room, until [`Database::probe`] finds some.
    pub fn is_full(&self) -> bool {
        self.meter().is_full()
    }

    /// Writes a row; fails where nothing can be written. After a write for which the disk had no room it demands a reserve,
    /// so that the next few writes do not fail again.
    ///
    /// The component's schema has the table `write_probe` with the columns `id` (the primary key), `time` (microseconds
    /// since 1970) and `filler` (text). `now` is in microseconds since 1970.
    pub async fn probe(&self, now: i64) -> Result<(), DatabaseError> {
        self.write_probe(now, if self.is_full() { RESERVE } else { LITTLE }).await?;
        if self.is_full() {
            self.write_probe(now, LITTLE).await?;
            self.meter().has_room();
        }
        Ok(())
    }

    async fn write_probe(&self, now: i64, size: usize) -> Result<(), DatabaseError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "INSERT INTO write_probe (id, time, filler) VALUES (1, {}, {}) \
             ON CONFLICT (id) DO UPDATE SET time = excluded.time, filler = excluded.filler",
            parameters.add(Value::Number(now)),
            parameters.add(Value::Text("x".repeat(size))),
        );
        let mut transaction = self.begin().await?;
        transaction.execute(sql, parameters).await?;
        transaction.commit().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{on_postgresql, on_sqlite};

    const TABLE: &str = "CREATE TABLE write_probe (id INTEGER PRIMARY KEY, time BIGINT NOT NULL, filler TEXT NOT NULL)";

    async fn rows(database: &Database) -> Vec<(i64, i64)> {
        let sql = "SELECT time, CAST(LENGTH(filler) AS BIGINT) FROM write_probe".to_owned();
        let rows = database.fetch(sql, Parameters::default()).await.unwrap();
        rows.iter().map(|row| (row.number(0).unwrap(), row.number(1).unwrap())).collect()
    }

    async fn writes_one_row(database: &Database) {
        database.ping().await.unwrap();
        assert!(database.probe(1).await.is_err(), "there is no table yet");
        let mut write = database.begin().await.unwrap();
        write.run(TABLE).await.unwrap();
        write.commit().await.unwrap();
        for time in [1, 2] {
            database.probe(time).await.unwrap();
            assert_eq!(rows(database).await, [(time, 16 * 1024)]);
        }
    }

    #[tokio::test]
    async fn a_probe_writes_one_row() {
        on_sqlite(writes_one_row).await;
        on_postgresql(writes_one_row).await;
    }

    /// Limits the size of the file; SQLite answers as for a full disk.
    #[tokio::test]
    async fn a_full_disk_is_noticed_until_it_has_room_for_a_reserve() {
        on_sqlite(async |database| {
            let limit = async |pages: u32| {
                let mut write = database.begin().await.unwrap();
                let sql = format!("PRAGMA max_page_count = {pages}");
                write.fetch(sql, Parameters::default()).await.unwrap();
                write.commit().await.unwrap();
            };
            let mut write = database.begin().await.unwrap();
            write.run(TABLE).await.unwrap();
            write.commit().await.unwrap();
            limit(3).await;
            let error = database.probe(1).await.unwrap_err();
            assert!(error.is_unavailable() && database.is_full(), "{error:?}");
            // Room for the small row, but not for the reserve.
            limit(100).await;
            assert!(database.probe(2).await.unwrap_err().is_unavailable());
            assert!(database.is_full());
            limit(1_000_000).await;
            database.probe(3).await.unwrap();
            assert!(!database.is_full());
            assert_eq!(rows(database).await, [(3, 16 * 1024)]);
        })
        .await;
    }
}
