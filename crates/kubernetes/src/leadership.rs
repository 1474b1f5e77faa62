//! Leading by a Lease: one of several replicas, until it is told or has to fear that another does.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout, timeout_at};

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
    /// Until when another holds it by the other's clock, and since when it has said so.
    theirs: Option<(Timestamp, Instant)>,
    /// Whether the API server was last found to be out of reach: told once, not every two seconds.
    is_out_of_reach: bool,
}

impl Leadership {
    /// A claim on behalf of `holder` to the Lease of that name.
    pub fn new(cluster: Cluster, namespace: String, name: String, holder: String) -> Self {
        let claim = LeaseClaim { namespace, name, holder, duration: LEASE };
        Self { cluster, claim, theirs: None, is_out_of_reach: false }
    }

    /// Whether the Lease is ours now.
    pub async fn claim(&mut self) -> bool {
        let asked = timeout(PATIENCE, self.cluster.claim_lease(&self.claim, self.now())).await;
        let problem = match asked {
            Ok(Ok(hold)) => {
                self.is_out_of_reach = false;
                let Hold::Theirs { until, .. } = hold else {
                    self.theirs = None;
                    return true;
                };
                let same = self.theirs.filter(|(before, _)| *before == until);
                self.theirs = same.or_else(|| Some((until, Instant::now())));
                return false;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        if !std::mem::replace(&mut self.is_out_of_reach, true) {
            tracing::warn!(operation = "lead", lease = self.claim.name, problem, "the Lease cannot be claimed");
        }
        false
    }

    /// The time; or the end of a lease that its holder has not renewed for as long as it holds, whatever the holder's clock
    /// has written there.
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        let ended = self.theirs.filter(|(_, since)| since.elapsed() >= LEASE);
        ended.map_or(now, |(until, _)| now.max(until))
    }

    /// Returns when this one leads.
    pub async fn won(&mut self) {
        while !self.claim().await {
            sleep(CLAIM).await;
        }
    }

    /// Renews until another has it, or until it has not been renewed for too long.
    pub async fn lost(&mut self) {
        keep(self).await;
    }

    /// Lets another lead at once.
    pub async fn release(&mut self) {
        // If it fails, it ends by itself.
        let _ends_by_itself = timeout(PATIENCE, self.cluster.release_lease(&self.claim)).await;
    }
}

/// What is renewed.
trait Renewable {
    /// Whether it is ours; `None` if that could not be asked.
    fn renew(&mut self) -> impl Future<Output = Option<bool>> + Send;
}

impl Renewable for Leadership {
    async fn renew(&mut self) -> Option<bool> {
        let is_ours = self.claim().await;
        (is_ours || !self.is_out_of_reach).then_some(is_ours)
    }
}

/// Returns when it is not ours any more, or may soon not be. That is measured on this machine's own clock, and a question's
/// time before another may take over.
async fn keep(lease: &mut impl Renewable) {
    let mut renewed = Instant::now();
    loop {
        let asking = async {
            sleep(CLAIM).await;
            (Instant::now(), lease.renew().await)
        };
        match timeout_at(renewed + LEASE.saturating_sub(PATIENCE), asking).await {
            Ok((asked, Some(true))) => renewed = asked,
            Ok((_, None)) => {}
            Ok((_, Some(false))) | Err(_) => return,
        }
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Leadership").field("claim", &self.claim).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is renewed so often, and after that not answered, or not soon.
    struct Scripted {
        renewals: u32,
        silence: Duration,
    }

    impl Renewable for Scripted {
        async fn renew(&mut self) -> Option<bool> {
            let Some(left) = self.renewals.checked_sub(1) else {
                sleep(self.silence).await;
                return None;
            };
            self.renewals = left;
            Some(true)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_leads_longer_than_seven_seconds_after_the_last_renewal() {
        for silence in [Duration::ZERO, Duration::from_secs(1), PATIENCE] {
            let begin = Instant::now();
            keep(&mut Scripted { renewals: 5, silence }).await;
            assert_eq!(begin.elapsed(), CLAIM * 5 + Duration::from_secs(7), "{silence:?}");
        }
    }
}
