//! Leading by a Lease: one of several replicas, until it is told or has to fear that another does.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::Cluster;
use crate::lease::{Hold, LeaseClaim};

/// A lease holds so long after its last renewal. A standby takes over within this, one [`CLAIM`] and one [`PATIENCE`].
pub const LEASE: Duration = Duration::from_secs(10);
/// So often a leader renews, and a standby asks.
pub const CLAIM: Duration = Duration::from_secs(2);
/// One question may take so long.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// A claim to lead.
pub struct Leadership {
    cluster: Cluster,
    claim: LeaseClaim,
    /// Whether the API server was last found to be out of reach: told once, not every two seconds.
    is_out_of_reach: bool,
}

impl Leadership {
    /// A claim on behalf of `holder` to the Lease of that name.
    pub fn new(cluster: Cluster, namespace: String, name: String, holder: String) -> Self {
        let claim = LeaseClaim { namespace, name, holder, duration: LEASE };
        Self { cluster, claim, is_out_of_reach: false }
    }

    /// Whether the Lease is ours now.
    pub async fn claim(&mut self) -> bool {
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

    /// Returns when this one leads.
    pub async fn won(&mut self) {
        while !self.claim().await {
            sleep(CLAIM).await;
        }
    }

    /// Renews until another has it, or until it has not been renewed for too long.
    pub async fn lost(&mut self) {
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

    /// Lets another lead at once.
    pub async fn release(&mut self) {
        // If it fails, it ends by itself.
        let _ends_by_itself = timeout(PATIENCE, self.cluster.release_lease(&self.claim)).await;
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Leadership").field("claim", &self.claim).finish_non_exhaustive()
    }
}
