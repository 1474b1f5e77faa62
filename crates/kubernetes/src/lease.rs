//! Leases: at most one of several replicas holds one, by client-go's rule.
//!
//! A candidate counts the expiry of another's Lease on its own monotonic clock, from the moment at which it observed the last
//! change of the record. `renewTime` is written for people and never compared with a local clock. Two holders are kept apart
//! only as well as their clocks run at the same speed, so work under a Lease must be safe to repeat.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::verb::Verb;

/// A Lease, the identity that claims it, and its duration.
#[derive(Clone, Debug)]
pub struct LeaseClaim {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// The claimant's identity, such as its Pod's name.
    pub holder: String,
    /// Time until the Lease expires unless it is renewed; whole seconds.
    pub duration: Duration,
}

/// The time of one attempt on the claimant's two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The monotonic clock, by which expiry is decided.
    pub monotonic: Instant,
    /// The wall clock, which is only written into the record.
    pub wall: Timestamp,
}

/// The result of an attempt to acquire or renew a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// The claimant holds the Lease until then, unless it renews it.
    Acquired {
        /// The end on this process's monotonic clock.
        until: Instant,
    },
    /// Another process holds the Lease.
    HeldByOther {
        /// The holder's identity.
        holder: String,
        /// The time at which the Lease expires unless its record changes before, on this process's monotonic clock.
        until: Instant,
    },
}

/// One candidate for a Lease, with the record that it last observed.
#[derive(Clone, Debug)]
pub struct LeaseCandidate {
    cluster: Cluster,
    claim: LeaseClaim,
    observed: Option<Observation>,
}

/// A record, and the local time at which it was first observed.
#[derive(Clone, Debug)]
struct Observation {
    record: LeaseSpec,
    at: Instant,
}

/// The record to write for a claim, if any, and the state that results.
struct Decision {
    write: Option<LeaseSpec>,
    state: LeaseState,
}

impl Now {
    /// Reads both clocks.
    pub fn read() -> Self {
        Self { monotonic: Instant::now(), wall: Timestamp::now() }
    }
}

impl LeaseCandidate {
    /// A candidate that has observed nothing yet: it waits for a whole lease duration before it takes over from another.
    pub fn new(cluster: Cluster, claim: LeaseClaim) -> Self {
        Self { cluster, claim, observed: None }
    }

    /// The claim.
    pub fn claim(&self) -> &LeaseClaim {
        &self.claim
    }

    /// Acquires or renews the Lease if it is free, expired, or held by the claimant already.
    pub async fn try_acquire(&mut self, now: Now) -> Result<LeaseState, KubernetesError> {
        let (api, object) = self.api();
        let LeaseClaim { name, .. } = &self.claim;
        let found = self.cluster.call(Verb::Get, &object, api.get_opt(name)).await?;
        self.observed = observe(self.observed.take(), found.as_ref(), now.monotonic);
        let decision = decide(&self.claim, self.observed.as_ref(), now);
        let Some(spec) = decision.write else { return Ok(decision.state) };
        let parameters = self.cluster.creation();
        let written = match found {
            None => {
                let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(spec) };
                self.cluster.call(Verb::Create, &object, api.create(&parameters, &lease)).await
            }
            Some(mut lease) => {
                lease.spec = Some(spec);
                self.cluster.call(Verb::Replace, &object, api.replace(name, &parameters, &lease)).await
            }
        };
        match written {
            Ok(_) => Ok(decision.state),
            // Another candidate wrote first; the next attempt observes which.
            Err(error) if matches!(error.kind, ErrorKind::Changed | ErrorKind::AlreadyExists) => {
                Ok(LeaseState::HeldByOther { holder: "another candidate".to_owned(), until: now.monotonic })
            }
            Err(error) => Err(error),
        }
    }

    /// Releases the Lease, so that another candidate need not wait for its expiry. Not holding it is a success.
    pub async fn release(&self) -> Result<(), KubernetesError> {
        let (api, object) = self.api();
        let LeaseClaim { name, holder, .. } = &self.claim;
        let Some(mut lease) = self.cluster.call(Verb::Get, &object, api.get_opt(name)).await? else { return Ok(()) };
        let current = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        if current != Some(holder.as_str()) {
            return Ok(());
        }
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
        }
        let parameters = self.cluster.creation();
        match self.cluster.call(Verb::Replace, &object, api.replace(name, &parameters, &lease)).await {
            Err(error) if !matches!(error.kind, ErrorKind::Changed | ErrorKind::NotFound) => Err(error),
            _ => Ok(()),
        }
    }

    fn api(&self) -> (Api<Lease>, String) {
        let LeaseClaim { namespace, name, .. } = &self.claim;
        (Api::namespaced(self.cluster.client(), namespace), format!("lease {namespace}/{name}"))
    }
}

/// The observation after a read: an unchanged record keeps the time at which it was first observed.
fn observe(before: Option<Observation>, found: Option<&Lease>, now: Instant) -> Option<Observation> {
    let record = found?.spec.clone().unwrap_or_default();
    let unchanged = before.filter(|before| before.record == record);
    unchanged.or(Some(Observation { record, at: now }))
}

fn decide(claim: &LeaseClaim, observed: Option<&Observation>, now: Now) -> Decision {
    let record = observed.map(|observed| &observed.record);
    let holder = record.and_then(|record| record.holder_identity.clone()).filter(|holder| !holder.is_empty());
    let is_held = holder.as_deref() == Some(claim.holder.as_str());
    if let (Some(observed), Some(holder), false) = (observed, &holder, is_held) {
        let seconds = observed.record.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let until = observed.at + seconds.map_or(claim.duration, Duration::from_secs);
        if now.monotonic < until {
            return Decision { write: None, state: LeaseState::HeldByOther { holder: holder.clone(), until } };
        }
    }
    let transitions = record.and_then(|record| record.lease_transitions).unwrap_or_default();
    let acquired = record.and_then(|record| record.acquire_time.clone()).filter(|_| is_held);
    let is_same_term = is_held || record.is_none();
    let spec = LeaseSpec {
        holder_identity: Some(claim.holder.clone()),
        lease_duration_seconds: Some(i32::try_from(claim.duration.as_secs()).unwrap_or(i32::MAX)),
        renew_time: Some(MicroTime(now.wall)),
        acquire_time: acquired.or(Some(MicroTime(now.wall))),
        lease_transitions: Some(if is_same_term { transitions } else { transitions.saturating_add(1) }),
        ..LeaseSpec::default()
    };
    Decision { write: Some(spec), state: LeaseState::Acquired { until: now.monotonic + claim.duration } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn claim(holder: &str) -> LeaseClaim {
        LeaseClaim { namespace: "n".to_owned(), name: "l".to_owned(), holder: holder.to_owned(), duration: LEASE }
    }

    /// A candidate that claims against a record in memory, with a wall clock that is wrong by `skew` seconds.
    struct Candidate {
        claim: LeaseClaim,
        observed: Option<Observation>,
        begin: Instant,
        skew: i64,
    }

    impl Candidate {
        fn new(holder: &str, begin: Instant, skew: i64) -> Self {
            Self { claim: claim(holder), observed: None, begin, skew }
        }

        /// Claims at that second; returns true if the record is now the candidate's.
        fn claims(&mut self, record: &mut Option<LeaseSpec>, second: u64) -> bool {
            let wall = Timestamp::from_second(1_700_000_000 + i64::try_from(second).unwrap() + self.skew).unwrap();
            let now = Now { monotonic: self.begin + Duration::from_secs(second), wall };
            let found = record.clone().map(|spec| Lease { spec: Some(spec), ..Lease::default() });
            self.observed = observe(self.observed.take(), found.as_ref(), now.monotonic);
            let decision = decide(&self.claim, self.observed.as_ref(), now);
            assert_eq!(decision.write.is_some(), matches!(decision.state, LeaseState::Acquired { .. }));
            if let Some(written) = decision.write {
                *record = Some(written);
                return true;
            }
            false
        }
    }

    #[test]
    fn a_lease_passes_from_one_holder_to_the_next() {
        let begin = Instant::now();
        let (mut a, mut b) = (Candidate::new("a", begin, 0), Candidate::new("b", begin, 0));
        let mut record = None;
        assert!(a.claims(&mut record, 100));
        assert!(!b.claims(&mut record, 101));
        assert!(a.claims(&mut record, 110));
        let renewed = record.clone().unwrap();
        assert_eq!(
            (renewed.acquire_time.clone().unwrap().0.as_second() % 1000, renewed.lease_transitions),
            (100, Some(0))
        );
        assert!(!b.claims(&mut record, 115), "the renewal is observed");
        assert!(!b.claims(&mut record, 129), "15 seconds count from that observation");
        assert!(b.claims(&mut record, 130));
        let taken = record.clone().unwrap();
        assert_eq!((taken.acquire_time.clone().unwrap().0.as_second() % 1000, taken.lease_transitions), (130, Some(1)));
        record = Some(LeaseSpec { holder_identity: None, ..taken });
        assert!(a.claims(&mut record, 131), "a released Lease is free at once");
    }

    #[test]
    fn a_standby_with_a_wrong_clock_does_not_take_a_live_lease() {
        for skew in [-1_000_000, -3_600, 3_600, 1_000_000] {
            let begin = Instant::now();
            let (mut leader, mut standby) = (Candidate::new("a", begin, 0), Candidate::new("b", begin, skew));
            let mut record = None;
            for second in (0..600).step_by(2) {
                assert!(leader.claims(&mut record, second), "skew {skew}, second {second}");
                assert!(!standby.claims(&mut record, second + 1), "skew {skew}, second {second}");
            }
            // The leader renewed for the last time at 598, which the standby observed at 599.
            assert!(!standby.claims(&mut record, 613), "skew {skew}");
            assert!(standby.claims(&mut record, 614), "skew {skew}");
        }
    }

    #[test]
    fn a_standby_that_has_just_started_waits_for_a_whole_duration() {
        let begin = Instant::now();
        let mut record = None;
        assert!(Candidate::new("a", begin, -1_000_000).claims(&mut record, 0));
        let mut late = Candidate::new("b", begin, 0);
        assert!(!late.claims(&mut record, 500));
        assert!(!late.claims(&mut record, 514));
        assert!(late.claims(&mut record, 515));
    }
}
