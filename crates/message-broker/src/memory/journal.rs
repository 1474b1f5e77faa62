//! The journal of the broker in the process: an SQLite file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Row as _, SqlitePool};

use crate::error::{BrokerError, ErrorKind, Operation};
use crate::memory::queues::Item;
use crate::message::Message;
use crate::name::Subscription;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS subscriptions (topic TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (topic, id)) STRICT;
CREATE TABLE IF NOT EXISTS items (
  number INTEGER PRIMARY KEY,
  topic TEXT NOT NULL,
  subscription TEXT NOT NULL,
  body BLOB NOT NULL,
  attributes TEXT NOT NULL,
  attempt INTEGER NOT NULL
) STRICT;
";

/// Name of the journal in errors; the operator knows its path.
const NAME: &str = "the journal of the broker in memory";

#[derive(Debug)]
pub(super) struct Journal {
    pool: SqlitePool,
}

impl Journal {
    pub(super) async fn open(path: &Path) -> Result<Self, BrokerError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Enough for a killed process: the kernel has every write.
            .synchronous(SqliteSynchronous::Normal)
            // Two processes with one journal would each deliver everything.
            .locking_mode(SqliteLockingMode::Exclusive)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
            .connect_with(options)
            .await
            .map_err(|error| failed(&error))?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await.map_err(|error| failed(&error))?;
        Ok(Self { pool })
    }

    pub(super) async fn subscriptions(&self) -> Result<Vec<Subscription>, BrokerError> {
        let rows = sqlx::query("SELECT topic, id FROM subscriptions").fetch_all(&self.pool).await;
        let rows = rows.map_err(|error| failed(&error))?;
        rows.iter().map(|row| subscription(row.get("topic"), row.get("id"))).collect()
    }

    pub(super) async fn items(&self) -> Result<Vec<(Subscription, Item)>, BrokerError> {
        let sql = "SELECT number, topic, subscription, body, attributes, attempt FROM items ORDER BY number";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await.map_err(|error| failed(&error))?;
        let item = |row: &sqlx::sqlite::SqliteRow| {
            let attributes: &str = row.get("attributes");
            let attributes = serde_json::from_str(attributes).map_err(|_quotes| unreadable())?;
            let message = Arc::new(Message { body: row.get("body"), attributes });
            let number = u64::try_from(row.get::<i64, _>("number")).map_err(|_negative| unreadable())?;
            let attempt = row.get("attempt");
            Ok((subscription(row.get("topic"), row.get("subscription"))?, Item { number, message, attempt }))
        };
        rows.iter().map(item).collect()
    }

    pub(super) async fn subscribe(&self, subscription: &Subscription) -> Result<(), BrokerError> {
        let done = sqlx::query("INSERT OR IGNORE INTO subscriptions (topic, id) VALUES (?, ?)")
            .bind(subscription.topic.as_str())
            .bind(subscription.id.as_str())
            .execute(&self.pool)
            .await;
        done.map(drop).map_err(|error| failed(&error))
    }

    /// All of them or none.
    pub(super) async fn add(&self, copies: &[(Subscription, Item)]) -> Result<(), BrokerError> {
        let add = async {
            let mut transaction = self.pool.begin().await?;
            for (subscription, item) in copies {
                sqlx::query(
                    "INSERT INTO items (number, topic, subscription, body, attributes, attempt) \
                     VALUES (?, ?, ?, ?, ?, ?)",
                )
                .bind(item.number.cast_signed())
                .bind(subscription.topic.as_str())
                .bind(subscription.id.as_str())
                .bind(item.message.body.as_slice())
                .bind(serde_json::json!(item.message.attributes).to_string())
                .bind(item.attempt)
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await
        };
        add.await.map_err(|error| failed(&error))
    }

    pub(super) async fn count(&self, item: &Item) -> Result<(), BrokerError> {
        let done = sqlx::query("UPDATE items SET attempt = ? WHERE number = ?")
            .bind(item.attempt)
            .bind(item.number.cast_signed())
            .execute(&self.pool)
            .await;
        done.map(drop).map_err(|error| failed(&error))
    }

    pub(super) async fn remove(&self, item: &Item) -> Result<(), BrokerError> {
        let done =
            sqlx::query("DELETE FROM items WHERE number = ?").bind(item.number.cast_signed()).execute(&self.pool).await;
        done.map(drop).map_err(|error| failed(&error))
    }

    /// Makes every write fail, as on a full disk.
    #[cfg(test)]
    pub(super) async fn refuse_all(&self) {
        sqlx::raw_sql("PRAGMA query_only = ON").execute(&self.pool).await.unwrap();
    }
}

fn subscription(topic: &str, id: &str) -> Result<Subscription, BrokerError> {
    Subscription::new(topic, id).map_err(|_invalid| unreadable())
}

fn unreadable() -> BrokerError {
    BrokerError::new(Operation::Connect, NAME, ErrorKind::Incompatible)
        .with_detail("it is not a journal of this broker")
}

fn failed(error: &sqlx::Error) -> BrokerError {
    let locked = error.as_database_error().is_some_and(|error| error.message().contains("locked"));
    let (kind, detail) = if locked {
        (ErrorKind::Unavailable, "another process has it open".to_owned())
    } else {
        (ErrorKind::Internal, error.to_string())
    };
    BrokerError::new(Operation::Connect, NAME, kind).with_detail(detail)
}
