//! Leases: one holder at a time. Time is an argument.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kubernetes::Fault;
use kubernetes::lease::{Hold, LeaseClaim};
use rstest::rstest;
use tokio::task::JoinSet;

use crate::place::{Kind, Place};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

impl Place {
    fn claim(&self, holder: &str) -> LeaseClaim {
        LeaseClaim {
            namespace: self.namespace.clone(),
            name: "adapter".to_owned(),
            holder: holder.to_owned(),
            duration: Duration::from_secs(15),
        }
    }

    async fn claimed(&self, holder: &str, now: i64) -> Hold {
        self.cluster.claim_lease(&self.claim(holder), at(now)).await.unwrap()
    }

    async fn released(&self, holder: &str) {
        self.cluster.release_lease(&self.claim(holder)).await.unwrap();
    }

    async fn lease(&self) -> Lease {
        self.api::<Lease>().get("adapter").await.unwrap()
    }
}

fn theirs(holder: &str, until: i64) -> Hold {
    Hold::Theirs { holder: holder.to_owned(), until: at(until) }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn it_is_held_renewed_and_taken_over_when_it_is_over(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    assert_eq!(place.claimed("a", 0).await, Hold::Ours(at(15)));
    let first = place.lease().await;
    assert_eq!(place.claimed("b", 14).await, theirs("a", 15));
    assert_eq!(place.lease().await.metadata.resource_version, first.metadata.resource_version);
    assert_eq!(place.claimed("a", 10).await, Hold::Ours(at(25)));
    assert_eq!(place.claimed("b", 24).await, theirs("a", 25));
    assert_eq!(place.claimed("b", 25).await, Hold::Ours(at(40)));
    assert_eq!(place.claimed("a", 26).await, theirs("b", 40));
    let spec = place.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("b"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(1)));
    assert_eq!((spec.acquire_time.unwrap().0, spec.renew_time.unwrap().0), (at(25), at(25)));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_back_can_be_claimed_at_once(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.released("a").await;
    assert_eq!(place.claimed("a", 0).await, Hold::Ours(at(15)));
    place.released("b").await;
    assert_eq!(place.claimed("b", 1).await, theirs("a", 15));
    place.released("a").await;
    assert_eq!(place.lease().await.spec.unwrap().holder_identity, None);
    assert_eq!(place.claimed("b", 1).await, Hold::Ours(at(16)));
    place.released("a").await;
    assert_eq!(place.claimed("a", 2).await, theirs("b", 16));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_claim_at_the_same_time_one_gets_it(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    // First there is no lease, then one that is over.
    for now in [0, 100, 200] {
        let mut claims = JoinSet::new();
        for number in 0..8 {
            let (cluster, claim) = (place.cluster.clone(), place.claim(&format!("{now}-{number}")));
            claims.spawn(async move {
                let hold = cluster.claim_lease(&claim, at(now)).await.unwrap();
                (hold == Hold::Ours(at(now + 15))).then_some(claim.holder)
            });
        }
        let holders: Vec<String> = claims.join_all().await.into_iter().flatten().collect();
        let [holder] = holders.as_slice() else { panic!("{holders:?}") };
        assert_eq!(place.lease().await.spec.unwrap().holder_identity.as_ref(), Some(holder));
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn without_its_namespace_there_is_none(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let claim = LeaseClaim { namespace: format!("{}-late", place.namespace), ..place.claim("a") };
    let refused = place.cluster.claim_lease(&claim, at(0)).await.unwrap_err();
    assert_eq!(refused.fault, Fault::NamespaceMissing, "{refused}");
    place.cluster.release_lease(&claim).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_comes_too_late_takes_it_from_nobody() {
    let place = Place::new(Kind::Emulator).await.unwrap();
    place.claimed("a", 0).await;
    place.emulator().inject("update/leases:slow(1s)".parse().unwrap());
    let (cluster, claim) = (place.cluster.clone(), place.claim("a"));
    let calls = place.emulator().calls().len();
    let release = tokio::spawn(async move { cluster.release_lease(&claim).await });
    place.emulator().wait_for_calls(calls + 2).await;
    assert_eq!(place.claimed("b", 20).await, Hold::Ours(at(35)));
    release.await.unwrap().unwrap();
    assert_eq!(place.claimed("a", 21).await, theirs("b", 35));
}
