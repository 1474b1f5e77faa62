//! Ends a search on PostgreSQL whose request has ended.

use std::time::Duration;

use sqlx::postgres::PgPool;
use sqlx::{PgConnection, Postgres, Row as _};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// Maximum time in which a cancelled statement must end; then its connection is closed.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A transaction. If it is dropped as a search, the statement that runs is cancelled.
///
/// PostgreSQL does not notice that a request has timed out or that its client has left: the statement would go on and keep
/// the connection from other requests, until it runs into `statement_timeout`.
#[derive(Debug)]
pub(super) struct Cancellable {
    /// `None` once it has ended.
    transaction: Option<sqlx::Transaction<'static, Postgres>>,
    search: Option<Search>,
}

/// The means to cancel a search, and its turn, which lasts until the statement has ended.
#[derive(Debug)]
struct Search {
    pool: PgPool,
    backend: i32,
    _turn: Option<OwnedSemaphorePermit>,
}

// === impl Cancellable ===

impl Cancellable {
    pub(super) fn new(transaction: sqlx::Transaction<'static, Postgres>) -> Self {
        Self { transaction: Some(transaction), search: None }
    }

    /// Makes it a search, which has that turn. `pool` gives another connection, for the request to cancel.
    pub(super) async fn search(
        &mut self,
        pool: &PgPool,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<(), sqlx::Error> {
        let row = sqlx::query("SELECT pg_backend_pid()").fetch_one(self.connection()?).await?;
        self.search = Some(Search { pool: pool.clone(), backend: row.try_get(0)?, _turn: turn });
        Ok(())
    }

    pub(super) fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.transaction.as_deref_mut().ok_or(sqlx::Error::WorkerCrashed)
    }

    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        match self.transaction.take() {
            Some(transaction) => transaction.commit().await,
            None => Ok(()),
        }
    }

    pub(super) async fn roll_back(mut self) -> Result<(), sqlx::Error> {
        match self.transaction.take() {
            Some(transaction) => transaction.rollback().await,
            None => Ok(()),
        }
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        let (Some(transaction), Some(search)) = (self.transaction.take(), self.search.take()) else { return };
        // Without a runtime the process ends, and with it the connection.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(search.cancel(transaction));
        }
    }
}

// === impl Search ===

impl Search {
    async fn cancel(self, transaction: sqlx::Transaction<'static, Postgres>) {
        // The transaction keeps its connection, so that no other statement is cancelled.
        let cancel = sqlx::query("SELECT pg_cancel_backend($1)").bind(self.backend);
        let _without_success_the_server_ends_it = cancel.execute(&self.pool).await;
        // Otherwise the pool closes the connection.
        let _ended = timeout(END_TIMEOUT, transaction.rollback()).await;
    }
}
