//! Leadership by a Lease: one of several replicas leads until another does, or may.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::cluster::Cluster;
use crate::lease::{LeaseCandidate, LeaseClaim, LeaseState, Now};

/// Time until a Lease expires after its last renewal. A standby that observes it takes over within this, one
/// [`RETRY_PERIOD`] and one [`CALL_TIMEOUT`].
pub const LEASE_DURATION: Duration = Duration::from_secs(10);
/// Time between two renewals of a leader, and between two attempts of a standby.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// Time between a renewal without an answer and the next one.
const UNANSWERED_PERIOD: Duration = Duration::from_millis(500);
/// Maximum time of one attempt.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// Time after its last renewal at which a leader stops: one call before another may take over.
const RENEW_DEADLINE: Duration = LEASE_DURATION.saturating_sub(CALL_TIMEOUT);

/// A candidate for leadership.
pub struct Leadership {
    candidate: LeaseCandidate,
    /// True while the API server does not answer: that is logged once, not at every attempt.
    is_unreachable: bool,
}

impl Leadership {
    /// A candidate with the identity `holder` for the Lease of that name.
    pub fn new(cluster: Cluster, namespace: String, name: String, holder: String) -> Self {
        let claim = LeaseClaim { namespace, name, holder, duration: LEASE_DURATION };
        Self { candidate: LeaseCandidate::new(cluster, claim), is_unreachable: false }
    }

    /// Tries once to acquire or renew the Lease; returns true if this process holds it.
    pub async fn try_acquire(&mut self) -> bool {
        let error = match timeout(CALL_TIMEOUT, self.candidate.try_acquire(Now::read())).await {
            Ok(Ok(state)) => {
                self.is_unreachable = false;
                return matches!(state, LeaseState::Acquired { .. });
            }
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        if !std::mem::replace(&mut self.is_unreachable, true) {
            let lease = &self.candidate.claim().name;
            tracing::warn!(operation = "acquire_lease", lease, error, "cannot acquire or renew the Lease; retrying");
        }
        false
    }

    /// Returns once this process leads.
    pub async fn acquire(&mut self) {
        while !self.try_acquire().await {
            sleep(RETRY_PERIOD).await;
        }
    }

    /// Renews the Lease; returns when another process holds it, or soon may.
    pub async fn renew_until_lost(&mut self) {
        renew(self).await;
    }

    /// Releases the Lease, so that another process can lead at once.
    pub async fn release(&mut self) {
        // Without a release the Lease expires.
        let _expires = timeout(CALL_TIMEOUT, self.candidate.release()).await;
    }
}

/// A lease that can be renewed.
trait Renewable {
    /// Returns true if it is still held, `None` if the server did not answer.
    fn renew(&mut self) -> impl Future<Output = Option<bool>> + Send;
}

impl Renewable for Leadership {
    async fn renew(&mut self) -> Option<bool> {
        let is_held = self.try_acquire().await;
        (is_held || !self.is_unreachable).then_some(is_held)
    }
}

/// Renews until the lease is lost, or was not renewed within [`RENEW_DEADLINE`] of this machine's own clock.
async fn renew(lease: &mut impl Renewable) {
    let (mut renewed, mut pause) = (Instant::now(), RETRY_PERIOD);
    loop {
        let attempt = async {
            sleep(pause).await;
            (Instant::now(), lease.renew().await)
        };
        match timeout_at(renewed + RENEW_DEADLINE, attempt).await {
            Ok((began, Some(true))) => (renewed, pause) = (began, RETRY_PERIOD),
            // Else one call without an answer would use up the time.
            Ok((_, None)) => pause = UNANSWERED_PERIOD,
            Ok((_, Some(false))) | Err(_) => return,
        }
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Leadership").field("claim", self.candidate.claim()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is renewed that many times; after that each attempt gets no answer for `silence`.
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
    async fn a_leader_stops_seven_seconds_after_its_last_renewal() {
        for silence in [Duration::ZERO, Duration::from_secs(1), CALL_TIMEOUT] {
            let begin = Instant::now();
            renew(&mut Scripted { renewals: 5, silence }).await;
            assert_eq!(begin.elapsed(), RETRY_PERIOD * 5 + Duration::from_secs(7), "{silence:?}");
        }
    }

    /// Gets no answer to every other renewal, for as long as a call may take.
    struct EveryOther(u32);

    impl Renewable for EveryOther {
        async fn renew(&mut self) -> Option<bool> {
            self.0 += 1;
            if self.0 % 2 == 1 {
                sleep(CALL_TIMEOUT).await;
                return None;
            }
            Some(self.0 < 10)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_without_an_answer_costs_no_leadership() {
        let mut lease = EveryOther(0);
        renew(&mut lease).await;
        assert_eq!(lease.0, 10, "until another process holds it");
    }
}
