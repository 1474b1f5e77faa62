//! Elects the leader of several Sentinels. Two may lead for a moment, since duplicate events are harmless.

mod postgres;

use kubernetes::Cluster;
use kubernetes::leadership::{Leadership, RETRY_PERIOD};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::resync_slot;

pub use postgres::PostgresLock;

/// The way in which the leader is elected.
#[derive(Debug)]
pub enum Election {
    /// No election, as there is only one process.
    Alone,
    /// By a Lease in Kubernetes.
    Lease(Box<Leadership>),
    /// By an advisory lock in PostgreSQL.
    Lock(PostgresLock),
}

impl Election {
    /// Creates an election by a Lease that this process claims as `holder`.
    pub fn by_lease(cluster: Cluster, namespace: String, name: String, holder: String) -> Self {
        Self::Lease(Box::new(Leadership::new(cluster, namespace, name, holder)))
    }

    /// Creates an election by a PostgreSQL lock of this name.
    pub fn by_lock(database_url: SecretString, name: &str) -> Self {
        Self::Lock(PostgresLock::new(database_url, resync_slot::number(name).cast_signed()))
    }

    /// Waits until this process leads; returns `false` if the stop token is cancelled before.
    pub async fn won(&mut self, stop: &CancellationToken) -> bool {
        loop {
            let claim = async {
                match self {
                    Self::Alone => true,
                    Self::Lease(lease) => lease.try_acquire().await,
                    Self::Lock(lock) => lock.claim().await,
                }
            };
            match stop.run_until_cancelled(claim).await {
                None => return false,
                Some(true) => return true,
                Some(false) => {}
            }
            if stop.run_until_cancelled(tokio::time::sleep(RETRY_PERIOD)).await.is_none() {
                return false;
            }
        }
    }

    /// Waits until this process does not lead any more; renews its claim while it is polled.
    pub async fn lost(&mut self) {
        match self {
            Self::Alone => std::future::pending().await,
            Self::Lease(lease) => lease.renew_until_lost().await,
            Self::Lock(lock) => lock.lost().await,
        }
    }

    /// Gives up leadership, so that another process can lead at once.
    pub async fn resign(&mut self) {
        match self {
            Self::Alone => {}
            Self::Lease(lease) => lease.release().await,
            Self::Lock(lock) => lock.release().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubernetes::leadership::{CALL_TIMEOUT, LEASE_DURATION, RETRY_PERIOD};

    #[test]
    fn a_standby_takes_over_within_fifteen_seconds() {
        // The lease ends, a standby asks, and gets an answer.
        assert!(LEASE_DURATION + RETRY_PERIOD + CALL_TIMEOUT <= Duration::from_secs(15));
    }
}
