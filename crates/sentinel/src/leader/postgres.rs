//! Elects a leader by an advisory lock in PostgreSQL, which lasts as long as the session that has taken it.

use std::str::FromStr as _;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};
use tokio::time::{sleep, timeout};

use kubernetes::leadership::{CALL_TIMEOUT, RETRY_PERIOD};

/// Keepalive settings by which the server detects a lost connection within ten seconds and releases the lock.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; \
                         SET application_name = 'hyperfleet-sentinel'";

/// A claim to an advisory lock.
pub struct PostgresLock {
    database_url: SecretString,
    key: i64,
    session: Option<PgConnection>,
    is_unreachable: bool,
}

impl PostgresLock {
    pub(super) fn new(database_url: SecretString, key: i64) -> Self {
        Self { database_url, key, session: None, is_unreachable: false }
    }

    /// Tries to take the lock; returns true if this process holds it.
    pub(super) async fn claim(&mut self) -> bool {
        let problem = match timeout(CALL_TIMEOUT, self.ask()).await {
            Ok(Ok(is_held)) => {
                self.is_unreachable = false;
                return is_held;
            }
            // The driver's message may contain the password of the URL.
            Ok(Err(sqlx::Error::Database(error))) => error.message().to_owned(),
            Ok(Err(_error)) => "the server cannot be reached; check leader_election.database_url".to_owned(),
            Err(_elapsed) => "the server did not answer in time".to_owned(),
        };
        self.session = None;
        if !std::mem::replace(&mut self.is_unreachable, true) {
            tracing::warn!(operation = "lead", problem, "could not ask PostgreSQL for the leader lock; retrying");
        }
        false
    }

    async fn ask(&mut self) -> Result<bool, sqlx::Error> {
        let session = if let Some(session) = &mut self.session {
            session
        } else {
            let options = PgConnectOptions::from_str(self.database_url.expose_secret())?;
            let mut session = PgConnection::connect_with(&options).await?;
            session.execute(KEEPALIVE).await?;
            self.session.insert(session)
        };
        sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(self.key).fetch_one(session).await
    }

    /// Waits until the session breaks, which releases the lock.
    pub(super) async fn lost(&mut self) {
        while let Some(session) = &mut self.session {
            sleep(RETRY_PERIOD).await;
            if !matches!(timeout(CALL_TIMEOUT, session.ping()).await, Ok(Ok(()))) {
                self.session = None;
            }
        }
    }

    pub(super) async fn release(&mut self) {
        if let Some(session) = self.session.take() {
            // If this fails, the server detects the lost connection.
            let _result = timeout(CALL_TIMEOUT, session.close()).await;
        }
    }
}

impl std::fmt::Debug for PostgresLock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresLock").field("key", &self.key).finish_non_exhaustive()
    }
}
