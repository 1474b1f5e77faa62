//! Which of several Sentinels leads: one at a time, or for a moment two; events bear being told twice.

mod postgres;

use kubernetes::Cluster;
use kubernetes::leadership::{Leadership, RETRY_PERIOD};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::spread;

pub use postgres::ByLock;

/// How it is decided who leads.
#[derive(Debug)]
pub enum Election {
    /// There is but one.
    Alone,
    /// By a Lease in Kubernetes.
    Lease(Box<Leadership>),
    /// By an advisory lock in PostgreSQL.
    Lock(ByLock),
}

impl Election {
    /// By a Lease; whoever leads is named by `holder`.
    pub fn by_lease(cluster: Cluster, namespace: String, name: String, holder: String) -> Self {
        Self::Lease(Box::new(Leadership::new(cluster, namespace, name, holder)))
    }

    /// By a lock of that name in a database.
    pub fn by_lock(database_url: SecretString, name: &str) -> Self {
        Self::Lock(ByLock::new(database_url, spread::number(name).cast_signed()))
    }

    /// Returns when this one leads; `false` if told to stop before.
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

    /// Returns when this one leads no more. Keeps leading while it is polled.
    pub async fn lost(&mut self) {
        match self {
            Self::Alone => std::future::pending().await,
            Self::Lease(lease) => lease.renew_until_lost().await,
            Self::Lock(lock) => lock.lost().await,
        }
    }

    /// Lets another lead at once.
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
