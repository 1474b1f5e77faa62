//! Leading by an advisory lock in PostgreSQL, which lasts as long as the session that took it.

use std::str::FromStr as _;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};
use tokio::time::{sleep, timeout};

use kubernetes::leadership::{CALL_TIMEOUT, RETRY_PERIOD};

/// The server notices within ten seconds that the machine of a leader is gone, and gives the lock up.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; \
                         SET application_name = 'hyperfleet-sentinel'";

/// A claim to a lock.
pub struct ByLock {
    database_url: SecretString,
    key: i64,
    session: Option<PgConnection>,
    is_out_of_reach: bool,
}

impl ByLock {
    pub(super) fn new(database_url: SecretString, key: i64) -> Self {
        Self { database_url, key, session: None, is_out_of_reach: false }
    }

    /// Whether the lock is ours now.
    pub(super) async fn claim(&mut self) -> bool {
        let problem = match timeout(CALL_TIMEOUT, self.ask()).await {
            Ok(Ok(ours)) => {
                self.is_out_of_reach = false;
                return ours;
            }
            // The words of a driver may hold the URL's password.
            Ok(Err(sqlx::Error::Database(error))) => error.message().to_owned(),
            Ok(Err(_error)) => "it cannot be reached, or leader_election.database_url is wrong".to_owned(),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        self.session = None;
        if !std::mem::replace(&mut self.is_out_of_reach, true) {
            tracing::warn!(operation = "lead", problem, "PostgreSQL cannot be asked for the lock");
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

    /// Looks after the session until it breaks: then the lock is no longer ours.
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
            // If it fails, the server notices by itself.
            let _noticed = timeout(CALL_TIMEOUT, session.close()).await;
        }
    }
}

impl std::fmt::Debug for ByLock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ByLock").field("key", &self.key).finish_non_exhaustive()
    }
}
