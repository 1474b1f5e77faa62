//! Leading by a Lease in Kubernetes.

use jiff::Timestamp;
use kubernetes::Cluster;
use kubernetes::lease::{Hold, LeaseClaim};
use tokio::time::{Instant, sleep, timeout};

use super::{CLAIM, LEASE, PATIENCE};

/// A claim to a Lease.
pub struct ByLease {
    cluster: Cluster,
    claim: LeaseClaim,
    /// Whether the API server was last found to be out of reach: told once, not every two seconds.
    is_out_of_reach: bool,
}

impl ByLease {
    pub(super) fn new(cluster: Cluster, claim: LeaseClaim) -> Self {
        Self { cluster, claim, is_out_of_reach: false }
    }

    /// Whether the Lease is ours now.
    pub(super) async fn claim(&mut self) -> bool {
        let asked = timeout(PATIENCE, self.cluster.claim_lease(&self.claim, Timestamp::now())).await;
        let problem = match asked {
            Ok(Ok(hold)) => {
                self.is_out_of_reach = false;
                return matches!(hold, Hold::Ours(_));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        if !std::mem::replace(&mut self.is_out_of_reach, true) {
            tracing::warn!(operation = "lead", lease = self.claim.name, problem, "the Lease cannot be claimed");
        }
        false
    }

    /// Renews until another has it, or until it has not been renewed for too long.
    pub(super) async fn lost(&mut self) {
        // Measured on this machine's own clock, and a question's time before another may take over.
        let mut renewed = Instant::now();
        while renewed.elapsed() < LEASE.saturating_sub(PATIENCE) {
            sleep(CLAIM).await;
            let asked = Instant::now();
            if self.claim().await {
                renewed = asked;
            } else if !self.is_out_of_reach {
                return;
            }
        }
    }

    pub(super) async fn release(&mut self) {
        // If it fails, it ends by itself.
        let _ends_by_itself = timeout(PATIENCE, self.cluster.release_lease(&self.claim)).await;
    }
}

impl std::fmt::Debug for ByLease {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ByLease").field("claim", &self.claim).finish_non_exhaustive()
    }
}
