//! Leases: one holder at a time. Time is an argument, on both clocks of the claimant.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kubernetes::ErrorKind;
use kubernetes::lease::{LeaseCandidate, LeaseClaim, LeaseState, Now};
use rstest::rstest;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::rig::{Kind, Rig};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// The clocks of one story, which begins at second 0.
#[derive(Clone, Copy)]
struct Clock {
    begin: Instant,
    /// Seconds by which the wall clock is wrong.
    skew: i64,
}

impl Clock {
    fn new() -> Self {
        Self { begin: Instant::now(), skew: 0 }
    }

    fn instant(self, second: u64) -> Instant {
        self.begin + Duration::from_secs(second)
    }

    fn now(self, second: u64) -> Now {
        Now { monotonic: self.instant(second), wall: at(i64::try_from(second).unwrap() + self.skew) }
    }

    fn acquired(self, until: u64) -> LeaseState {
        LeaseState::Acquired { until: self.instant(until) }
    }

    fn held(self, holder: &str, until: u64) -> LeaseState {
        LeaseState::HeldByOther { holder: holder.to_owned(), until: self.instant(until) }
    }
}

impl Rig {
    fn claim(&self, holder: &str) -> LeaseClaim {
        LeaseClaim {
            namespace: self.namespace.clone(),
            name: "adapter".to_owned(),
            holder: holder.to_owned(),
            duration: Duration::from_secs(15),
        }
    }

    fn candidate(&self, holder: &str) -> LeaseCandidate {
        LeaseCandidate::new(self.cluster.clone(), self.claim(holder))
    }

    async fn lease(&self) -> Lease {
        self.api::<Lease>().get("adapter").await.unwrap()
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn it_is_held_renewed_and_taken_over_when_it_is_over(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (clock, mut a, mut b) = (Clock::new(), rig.candidate("a"), rig.candidate("b"));
    assert_eq!(a.try_acquire(clock.now(0)).await.unwrap(), clock.acquired(15));
    let first = rig.lease().await;
    assert_eq!(b.try_acquire(clock.now(0)).await.unwrap(), clock.held("a", 15));
    assert_eq!(b.try_acquire(clock.now(14)).await.unwrap(), clock.held("a", 15));
    assert_eq!(rig.lease().await.metadata.resource_version, first.metadata.resource_version);
    assert_eq!(a.try_acquire(clock.now(14)).await.unwrap(), clock.acquired(29));
    assert_eq!(b.try_acquire(clock.now(16)).await.unwrap(), clock.held("a", 31), "it has just changed");
    assert_eq!(b.try_acquire(clock.now(30)).await.unwrap(), clock.held("a", 31));
    assert_eq!(b.try_acquire(clock.now(31)).await.unwrap(), clock.acquired(46));
    assert_eq!(a.try_acquire(clock.now(32)).await.unwrap(), clock.held("b", 47));
    let spec = rig.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("b"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(1)));
    assert_eq!((spec.acquire_time.unwrap().0, spec.renew_time.unwrap().0), (at(31), at(31)));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_with_a_wrong_clock_does_not_take_a_live_lease(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    for skew in [-86_400, -20, 20, 86_400] {
        let clock = Clock::new();
        let (mut leader, mut standby) = (rig.candidate("leader"), rig.candidate("standby"));
        assert_eq!(leader.try_acquire(clock.now(0)).await.unwrap(), clock.acquired(15), "skew {skew}");
        let wrong = Clock { skew, ..clock };
        for second in (5..60).step_by(5) {
            let state = standby.try_acquire(wrong.now(second)).await.unwrap();
            assert_eq!(state, clock.held("leader", second + 15), "skew {skew}");
            assert_eq!(leader.try_acquire(clock.now(second)).await.unwrap(), clock.acquired(second + 15));
        }
        // It observes the last renewal now, and takes over a whole duration later.
        assert_eq!(standby.try_acquire(wrong.now(60)).await.unwrap(), clock.held("leader", 75), "skew {skew}");
        assert_eq!(standby.try_acquire(wrong.now(74)).await.unwrap(), clock.held("leader", 75), "skew {skew}");
        assert_eq!(standby.try_acquire(wrong.now(75)).await.unwrap(), clock.acquired(90), "skew {skew}");
        standby.release().await.unwrap();
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_back_can_be_claimed_at_once(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (clock, mut a, mut b) = (Clock::new(), rig.candidate("a"), rig.candidate("b"));
    a.release().await.unwrap();
    assert_eq!(a.try_acquire(clock.now(0)).await.unwrap(), clock.acquired(15));
    b.release().await.unwrap();
    assert_eq!(b.try_acquire(clock.now(1)).await.unwrap(), clock.held("a", 16));
    a.release().await.unwrap();
    assert_eq!(rig.lease().await.spec.unwrap().holder_identity, None);
    assert_eq!(b.try_acquire(clock.now(1)).await.unwrap(), clock.acquired(16));
    a.release().await.unwrap();
    assert_eq!(a.try_acquire(clock.now(2)).await.unwrap(), clock.held("b", 17));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_claim_at_the_same_time_one_gets_it(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let clock = Clock::new();
    // First there is no Lease, then one that has expired for all of them.
    for now in [0, 100, 200] {
        let mut candidates: Vec<_> = (0..8).map(|number| rig.candidate(&format!("{now}-{number}"))).collect();
        for candidate in candidates.iter_mut().filter(|_| now > 0) {
            let state = candidate.try_acquire(clock.now(now - 20)).await.unwrap();
            assert!(matches!(state, LeaseState::HeldByOther { .. }), "{state:?}");
        }
        let mut claims = JoinSet::new();
        for mut candidate in candidates {
            claims.spawn(async move {
                let state = candidate.try_acquire(clock.now(now)).await.unwrap();
                (state == clock.acquired(now + 15)).then_some(candidate.claim().holder.clone())
            });
        }
        let holders: Vec<String> = claims.join_all().await.into_iter().flatten().collect();
        let [holder] = holders.as_slice() else { panic!("{holders:?}") };
        assert_eq!(rig.lease().await.spec.unwrap().holder_identity.as_ref(), Some(holder));
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn without_its_namespace_there_is_none(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let claim = LeaseClaim { namespace: format!("{}-late", rig.namespace), ..rig.claim("a") };
    let mut candidate = LeaseCandidate::new(rig.cluster.clone(), claim);
    let refused = candidate.try_acquire(Clock::new().now(0)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NamespaceMissing, "{refused}");
    candidate.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_comes_too_late_changes_nothing() {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    let (clock, mut a, mut b) = (Clock::new(), rig.candidate("a"), rig.candidate("b"));
    assert_eq!(a.try_acquire(clock.now(0)).await.unwrap(), clock.acquired(15));
    assert_eq!(b.try_acquire(clock.now(0)).await.unwrap(), clock.held("a", 15));
    rig.emulator().inject("update/leases:slow(1s)".parse().unwrap());
    let late = a.clone();
    let calls = rig.emulator().calls().len();
    let release = tokio::spawn(async move { late.release().await });
    rig.emulator().wait_for_calls(calls + 2).await;
    assert_eq!(b.try_acquire(clock.now(20)).await.unwrap(), clock.acquired(35));
    release.await.unwrap().unwrap();
    assert_eq!(a.try_acquire(clock.now(21)).await.unwrap(), clock.held("b", 36));
}
