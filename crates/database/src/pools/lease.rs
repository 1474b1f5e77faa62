//! A connection to PostgreSQL in use.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{PgConnection, Postgres, Row as _};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// Maximum time in which a connection must answer after its work was abandoned; then it is closed.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection of the pool. If it is dropped before it is released, its transaction is undone before another request gets
/// it; without an answer it is closed, so that it does not keep a slot of the pool.
///
/// PostgreSQL does not notice that a request has timed out or that its client has left: the statement of a search would go
/// on, until it runs into `statement_timeout`. So that is cancelled.
#[derive(Debug)]
pub(super) struct Lease {
    /// `None` once it is released.
    connection: Option<PoolConnection<Postgres>>,
    search: Option<Search>,
}

/// The means to cancel a search, and its turn, which lasts until the statement has ended.
#[derive(Debug)]
struct Search {
    pool: PgPool,
    backend: i32,
    _turn: Option<OwnedSemaphorePermit>,
}

// === impl Lease ===

impl Lease {
    /// Takes a connection.
    pub(super) async fn take(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Ok(Self { connection: Some(Box::pin(pool.acquire()).await?), search: None })
    }

    /// Takes a connection and begins a transaction with this statement.
    pub(super) async fn begin(pool: &PgPool, statement: &'static str) -> Result<Self, sqlx::Error> {
        let mut lease = Self::take(pool).await?;
        run(lease.connection()?, statement).await?;
        Ok(lease)
    }

    /// Makes its work a search, which has that turn. `pool` gives another connection, for the request to cancel.
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
        self.connection.as_deref_mut().ok_or(sqlx::Error::WorkerCrashed)
    }

    /// Runs a statement without parameters or rows.
    pub(super) async fn run(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        run(self.connection()?, statement).await
    }

    /// Ends the transaction with this statement and releases the connection.
    pub(super) async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        run(self.connection()?, statement).await?;
        self.release();
        Ok(())
    }

    /// Gives the connection back, whose work is done.
    pub(super) fn release(mut self) {
        drop(self.connection.take());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        // Without a runtime the process ends, and with it the connection.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(abandon(connection, self.search.take()))),
            Err(_ended) => connection.close_on_drop(),
        }
    }
}

/// Ends the work of a connection.
async fn abandon(mut connection: PoolConnection<Postgres>, search: Option<Search>) {
    if let Some(search) = &search {
        let cancel = sqlx::query("SELECT pg_cancel_backend($1)").bind(search.backend);
        let _without_success_the_server_ends_it = timeout(END_TIMEOUT, cancel.execute(&search.pool)).await;
    }
    // Outside of a transaction this is a warning of the server.
    let ended = timeout(END_TIMEOUT, run(&mut connection, "ROLLBACK")).await;
    if !matches!(ended, Ok(Ok(()))) {
        connection.close_on_drop();
    }
}

/// Runs a statement without parameters or rows. Its future is large: in a box those of all callers stay small.
async fn run(connection: &mut PgConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    Box::pin(sqlx::raw_sql(statement).execute(connection)).await.map(drop)
}
