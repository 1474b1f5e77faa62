//! Connection pools, transactions and rows of either database.

mod arguments;
mod interrupt;
mod lease;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use sqlx::postgres::{PgPool, PgRow};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr, Sqlite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::commits::Commits;
use super::error::DatabaseError;
use super::meter::{QueryLabels, QueryMeter};
use super::sql::{Dialect, Parameters};
use arguments::{postgres, sqlite};
use interrupt::Interrupt;
use lease::Lease;

/// Statements of writes find few rows by keys: one plan for all parameters saves planning each of them.
const BEGIN_WRITE: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan";
const COMMIT_AND_BEGIN_WRITE: &str = "COMMIT; BEGIN; SET LOCAL plan_cache_mode = force_generic_plan";

/// The connection pools of a database.
#[derive(Clone, Debug)]
pub struct Database {
    pools: Pools,
    /// Turns of searches, which may take long: half of the connections serve everything else.
    searches: Arc<Semaphore>,
    meter: QueryMeter,
}

/// The connections.
#[derive(Clone, Debug)]
pub(crate) enum Pools {
    /// One file. SQLite allows one writer at a time: writers queue for a connection instead of failing.
    Sqlite {
        /// Connections for reads; each reads the last commit.
        readers: SqlitePool,
        /// The single connection for writes.
        writer: SqlitePool,
        /// Commits since the last checkpoint.
        commits: Arc<Commits>,
    },
    /// A server.
    Postgres(PgPool),
}

/// A transaction; dropping it rolls it back.
#[derive(Debug)]
pub struct Transaction {
    open: Open,
    /// Ends the running statement when the transaction is dropped; only for reads on SQLite.
    interrupt: Option<Interrupt>,
    /// The turn of a search on SQLite; it ends with the transaction.
    turn: Option<OwnedSemaphorePermit>,
    /// Notes a commit of writes; only on SQLite.
    commits: Option<Arc<Commits>>,
    meter: QueryMeter,
}

#[derive(Debug)]
enum Open {
    /// On SQLite.
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    /// On PostgreSQL.
    Postgres(Lease),
}

/// A row of a result.
#[derive(Debug)]
pub enum Row {
    /// On SQLite.
    Sqlite(SqliteRow),
    /// On PostgreSQL.
    Postgres(PgRow),
}

/// Runs the same expression on either database.
macro_rules! either {
    ($value:expr, $inner:ident => $work:expr) => {
        match $value {
            Self::Sqlite($inner) => $work,
            Self::Postgres($inner) => $work,
        }
    };
}

// === impl Pools ===

impl Pools {
    /// Returns the maximum number of connections that read at the same time.
    fn readers(&self) -> u32 {
        match self {
            Self::Sqlite { readers, .. } => readers.options().get_max_connections(),
            Self::Postgres(pool) => pool.options().get_max_connections(),
        }
    }
}

// === impl Database ===

impl Database {
    pub(crate) fn new(pools: Pools, meter: QueryMeter) -> Self {
        let turns = usize::try_from(pools.readers() / 2).unwrap_or(1).max(1);
        Self { pools, searches: Arc::new(Semaphore::new(turns)), meter }
    }

    /// Returns the maximum number of connections that read at the same time.
    pub fn readers(&self) -> u32 {
        self.pools.readers()
    }

    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Returns the meter of its statements.
    pub fn meter(&self) -> &QueryMeter {
        &self.meter
    }

    /// Returns the SQL dialect.
    pub fn dialect(&self) -> Dialect {
        match self.pools {
            Pools::Sqlite { .. } => Dialect::Sqlite,
            Pools::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the rows of one statement, which reads one snapshot of the database.
    pub async fn fetch(&self, sql: String, parameters: Parameters) -> Result<Vec<Row>, DatabaseError> {
        self.read(sql, parameters, None).await
    }

    /// Returns the rows of a search when it is its turn; a caller that stops waiting loses its place, and one that stops
    /// reading ends the statement.
    pub async fn search(&self, sql: String, parameters: Parameters) -> Result<Vec<Row>, DatabaseError> {
        // The semaphore is never closed.
        let turn = Arc::clone(&self.searches).acquire_owned().await.ok();
        self.read(sql, parameters, turn).await
    }

    /// Returns the rows of a search that reads a range of an index, when it is its turn. It is short, so that it need not be
    /// ended for a caller that stops reading.
    pub async fn search_range(&self, sql: String, parameters: Parameters) -> Result<Vec<Row>, DatabaseError> {
        // The semaphore is never closed.
        let _turn = self.searches.acquire().await.ok();
        self.read(sql, parameters, None).await
    }

    async fn read(
        &self,
        sql: String,
        parameters: Parameters,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let labels = self.meter.labels(&sql);
        let rows = async {
            Ok(match &self.pools {
                Pools::Sqlite { readers, .. } => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), sqlite(parameters)?);
                    let mut connection = readers.acquire().await?;
                    let _interrupt = Interrupt::when_dropped(&mut connection).await?;
                    query.fetch_all(&mut *connection).await?.into_iter().map(Row::Sqlite).collect()
                }
                Pools::Postgres(pool) => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), postgres(parameters)?);
                    let mut lease = Lease::take(pool).await?;
                    if turn.is_some() {
                        lease.search(pool, turn).await?;
                    }
                    let rows = query.fetch_all(lease.connection()?).await?;
                    lease.release();
                    rows.into_iter().map(Row::Postgres).collect()
                }
            })
        };
        self.meter.measure(labels, rows).await
    }

    /// Begins a transaction of reads from one snapshot of the database.
    pub async fn snapshot(&self) -> Result<Transaction, DatabaseError> {
        let open = match &self.pools {
            Pools::Sqlite { readers, .. } => readers.begin().await.map(Open::Sqlite),
            Pools::Postgres(pool) => {
                Lease::begin(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map(Open::Postgres)
            }
        };
        let mut transaction = self.opened(open)?;
        if let Open::Sqlite(reading) = &mut transaction.open {
            transaction.interrupt = Some(Interrupt::when_dropped(reading).await?);
        }
        Ok(transaction)
    }

    /// Begins a snapshot for a search when it is its turn; a caller that stops waiting loses its place.
    pub async fn snapshot_of_search(&self) -> Result<Transaction, DatabaseError> {
        // The semaphore is never closed.
        let turn = Arc::clone(&self.searches).acquire_owned().await.ok();
        let mut transaction = self.snapshot().await?;
        match (&mut transaction.open, &self.pools) {
            (Open::Postgres(reading), Pools::Postgres(pool)) => reading.search(pool, turn).await?,
            _ => transaction.turn = turn,
        }
        Ok(transaction)
    }

    /// Begins a transaction of reads and writes. On SQLite it takes the single write lock; on PostgreSQL rows are locked as
    /// they are read.
    pub async fn begin(&self) -> Result<Transaction, DatabaseError> {
        let open = match &self.pools {
            Pools::Sqlite { writer, .. } => writer.begin_with("BEGIN IMMEDIATE").await.map(Open::Sqlite),
            Pools::Postgres(pool) => Lease::begin(pool, BEGIN_WRITE).await.map(Open::Postgres),
        };
        let mut transaction = self.opened(open)?;
        if let Pools::Sqlite { commits, .. } = &self.pools {
            transaction.commits = Some(Arc::clone(commits));
        }
        Ok(transaction)
    }

    fn opened(&self, open: Result<Open, sqlx::Error>) -> Result<Transaction, DatabaseError> {
        let meter = self.meter.clone();
        open.map(|open| Transaction { open, interrupt: None, turn: None, commits: None, meter })
            .map_err(|error| self.meter.failed(error.into()))
    }

    /// Closes all connections.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { readers, writer, .. } => {
                readers.close().await;
                writer.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }

    /// Returns the number of open connections and the number of those in use.
    pub fn connections(&self) -> (u32, u32) {
        let count = |size: u32, idle: usize| (size, size.saturating_sub(u32::try_from(idle).unwrap_or(u32::MAX)));
        match &self.pools {
            Pools::Sqlite { readers, writer, .. } => {
                let (open, used) = count(readers.size(), readers.num_idle());
                let (more, more_used) = count(writer.size(), writer.num_idle());
                (open + more, used + more_used)
            }
            Pools::Postgres(pool) => count(pool.size(), pool.num_idle()),
        }
    }
}

// === impl Transaction ===

impl Transaction {
    /// Returns the SQL dialect.
    pub fn dialect(&self) -> Dialect {
        match self.open {
            Open::Sqlite(_) => Dialect::Sqlite,
            Open::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the rows of a statement.
    pub async fn fetch(&mut self, sql: String, parameters: Parameters) -> Result<Vec<Row>, DatabaseError> {
        let labels = self.meter.labels(&sql);
        let rows = async {
            Ok(match &mut self.open {
                Open::Sqlite(transaction) => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), sqlite(parameters)?);
                    query.fetch_all(&mut **transaction).await?.into_iter().map(Row::Sqlite).collect()
                }
                Open::Postgres(lease) => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), postgres(parameters)?);
                    query.fetch_all(lease.connection()?).await?.into_iter().map(Row::Postgres).collect()
                }
            })
        };
        self.meter.measure(labels, rows).await
    }

    /// Executes a statement and returns the number of changed rows.
    pub async fn execute(&mut self, sql: String, parameters: Parameters) -> Result<u64, DatabaseError> {
        let labels = self.meter.labels(&sql);
        let done = async {
            Ok(match &mut self.open {
                Open::Sqlite(transaction) => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), sqlite(parameters)?);
                    query.execute(&mut **transaction).await?.rows_affected()
                }
                Open::Postgres(lease) => {
                    let query = sqlx::query_with(AssertSqlSafe(sql), postgres(parameters)?);
                    query.execute(lease.connection()?).await?.rows_affected()
                }
            })
        };
        self.meter.measure(labels, done).await
    }

    /// Executes several statements without parameters.
    pub async fn run(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        self.run_text(sql).await
    }

    /// Executes several statements without parameters, whose text holds nothing from outside of the program.
    pub(crate) async fn run_text(&mut self, sql: impl SqlSafeStr) -> Result<(), DatabaseError> {
        match &mut self.open {
            Open::Sqlite(transaction) => sqlx::raw_sql(sql).execute(&mut **transaction).await.map(|_done| ())?,
            Open::Postgres(lease) => sqlx::raw_sql(sql).execute(lease.connection()?).await.map(drop)?,
        }
        Ok(())
    }

    /// Commits the transaction. Changes may be published only after it.
    pub async fn commit(self) -> Result<(), DatabaseError> {
        let Self { open, commits, meter, interrupt: _until_the_end, turn: _likewise } = self;
        let committed = async {
            match open {
                Open::Sqlite(transaction) => transaction.commit().await?,
                Open::Postgres(lease) => lease.end("COMMIT").await?,
            }
            if let Some(commits) = commits {
                commits.add();
            }
            Ok(())
        };
        meter.measure(QueryLabels::COMMIT, committed).await
    }

    /// Commits the transaction, and in the same message begins another one of reads and writes on its connection if the pool
    /// has others; `None` if it has only committed.
    pub async fn commit_and_begin(mut self, database: &Database) -> Result<Option<Self>, DatabaseError> {
        let (Open::Postgres(lease), Pools::Postgres(pool)) = (&mut self.open, &database.pools) else {
            return self.commit().await.map(|()| None);
        };
        if pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections() {
            return self.commit().await.map(|()| None);
        }
        let committed = async { Ok(lease.run(COMMIT_AND_BEGIN_WRITE).await?) };
        self.meter.measure(QueryLabels::COMMIT, committed).await?;
        Ok(Some(self))
    }

    /// Undoes the transaction and releases its locks.
    pub async fn roll_back(self) -> Result<(), DatabaseError> {
        let done = match self.open {
            Open::Sqlite(transaction) => transaction.rollback().await,
            Open::Postgres(lease) => lease.end("ROLLBACK").await,
        };
        done.map_err(|error| self.meter.failed(error.into()))
    }
}

// === impl Row ===

impl Row {
    /// Returns the text in that column.
    pub fn text(&self, column: usize) -> Result<String, DatabaseError> {
        Ok(either!(self, row => row.try_get(column)?))
    }

    /// Returns the text in that column, or `None` for NULL.
    pub fn optional_text(&self, column: usize) -> Result<Option<String>, DatabaseError> {
        Ok(either!(self, row => row.try_get(column)?))
    }

    /// Returns the number in that column.
    pub fn number(&self, column: usize) -> Result<i64, DatabaseError> {
        Ok(either!(self, row => row.try_get(column)?))
    }

    /// Returns the number in that column, or `None` for NULL.
    pub fn optional_number(&self, column: usize) -> Result<Option<i64>, DatabaseError> {
        Ok(either!(self, row => row.try_get(column)?))
    }
}
