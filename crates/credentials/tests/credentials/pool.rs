//! A new cluster gets a credential without waiting for the registry; failures of the registry on the way.

use std::time::Duration;

use credentials::credential::Approval;
use credentials::decide::Eta;
use credentials::ledger::Statement;
use credentials::reason::Reason;
use credentials::run::StepResult;
use credentials::state::{Lane, State};
use registry_account::probe::{Cause, Finding, Place, Verdict};
use registry_account::{ErrorKind, Fault, Operation};
use rstest::rstest;

use crate::database::Kind;
use crate::rig::Rig;

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_pool_is_filled_claimed_and_refilled(#[case] kind: Kind) {
    let Some(mut rig) = Rig::new(kind).await else { return };
    rig.pool = 3;
    let (worker, registry) = (rig.worker("one"), Rig::registry());
    let fill = async || {
        for _turn in 0..200 {
            let reserved = worker.refill(&registry).await.unwrap();
            let result = rig.step(&worker).await;
            let pool = worker.ledger.pool(&registry).await.unwrap();
            if (reserved, result, pool.ready) == (0, StepResult::Idle, 3) {
                return;
            }
        }
        panic!("the pool is never full");
    };
    worker.refill(&registry).await.unwrap();
    let expected = vec![Eta { lane: Lane::Refill, at: rig.world.registry.now() + Duration::from_secs(6) }];
    assert_eq!(worker.etas(&registry).await.unwrap(), expected, "two are reserved within the lead of refills");
    fill().await;
    assert_eq!(rig.world.created.lock().unwrap().len(), 3);
    assert_eq!(worker.etas(&registry).await.unwrap(), []);
    let cluster = rig.cluster("cls-1");
    // The registry is unavailable; the cluster has its credential all the same.
    rig.world.registry.inject(Operation::Create, Fault::Before(ErrorKind::Unavailable));
    let credential = rig.assign(&cluster, None).await;
    assert_eq!((credential.state, credential.has_password), (State::Probed, true));
    assert_eq!(rig.step(&worker).await, StepResult::Worked);
    assert_eq!(rig.get(credential.id).await.state, State::Published);
    fill().await;
    assert_eq!(rig.world.created.lock().unwrap().len(), 4);
    rig.until(&worker, &cluster, credential.id, State::Adopted).await;
}

#[rstest]
#[case::name_of_a_stranger(None, State::Spent, Reason::NameSpent)]
#[case::garbled(Some(Fault::Garbled), State::WaitedOut, Reason::Done)]
#[case::lost_answer(Some(Fault::After(ErrorKind::TimedOut)), State::Adopted, Reason::InUse)]
#[case::exhausted(Some(Fault::Before(ErrorKind::QuotaExceeded)), State::Adopted, Reason::InUse)]
#[case::denied(Some(Fault::Before(ErrorKind::PermissionDenied)), State::Adopted, Reason::InUse)]
#[tokio::test]
async fn a_cluster_gets_a_credential_whatever_the_creation_meets(
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
    #[case] fault: Option<Fault>,
    #[case] end: State,
    #[case] reason: Reason,
) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let first = rig.assign(&cluster, None).await;
    match fault {
        Some(fault) => rig.world.registry.inject(Operation::Create, fault),
        None => rig.world.registry.add_stranger(&first.account),
    }
    for _turn in 0..100 {
        rig.step(&worker).await;
        rig.live(&cluster);
    }
    let (found, last) = (rig.get(first.id).await, rig.assign(&cluster, None).await);
    assert_eq!((found.state, found.reason), (end, reason));
    assert_eq!((last.state, last.id == first.id), (State::Adopted, end == State::Adopted));
    // An account of another owner is never deleted.
    let stranger = (end == State::Spent).then_some(&first);
    let expected: Vec<_> = [Some(&last), stranger].into_iter().flatten().collect();
    rig.check(&expected).await;
}

#[rstest]
#[case::denied(ErrorKind::PermissionDenied, Reason::Denied)]
#[case::not_prepared(ErrorKind::NotPrepared, Reason::Denied)]
#[case::ambiguous(ErrorKind::Internal, Reason::Ambiguous)]
#[tokio::test]
async fn a_failure_leaves_its_reason_and_counts(#[case] kind: ErrorKind, #[case] reason: Reason) {
    let Some(rig) = Rig::new(Kind::Sqlite).await else { return };
    let worker = rig.worker("one");
    let first = rig.assign(&rig.cluster("cls-1"), None).await;
    rig.world.registry.inject(Operation::Create, Fault::Before(kind));
    rig.step(&worker).await;
    let found = rig.get(first.id).await;
    assert_eq!((found.state, found.reason, found.record.attempts), (State::Reserved, reason, 1));
    assert!(found.record.retry_at.unwrap() > rig.world.registry.now());
}

#[rstest]
#[case::login(Verdict::Refused, Reason::LoginRefused)]
#[case::permission(Verdict::NotPermitted, Reason::PullNotPermitted)]
#[case::no_answer(Verdict::Inconclusive, Reason::Retrying)]
#[tokio::test]
async fn a_probe_that_is_not_served_has_its_reason(#[case] verdict: Verdict, #[case] reason: Reason) {
    let Some(rig) = Rig::new(Kind::Sqlite).await else { return };
    let worker = rig.worker("one");
    let first = rig.assign(&rig.cluster("cls-1"), None).await;
    rig.world.registry.inject_finding(Finding { verdict, place: Place::TokenEndpoint, cause: Cause::NoProof });
    while rig.get(first.id).await.record.attempts == 0 {
        rig.step(&worker).await;
    }
    let found = rig.get(first.id).await;
    assert_eq!((found.state, found.reason), (State::Permitted, reason));
}

#[tokio::test]
async fn a_revocation_at_once_is_tried_at_a_registry_that_is_exhausted() {
    let Some(rig) = Rig::new(Kind::Sqlite).await else { return };
    let (worker, cluster) = (rig.worker("one"), rig.cluster("cls-1"));
    let first = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, first.id, State::Adopted).await;
    let statement = Statement { actor: "ann", reason: "leaked", now: rig.world.registry.now() };
    *rig.world.may_delete_in_use.lock().unwrap() = true;
    worker.ledger.revoke(first.id, Approval::None, &statement).await.unwrap();
    rig.world.registry.inject(Operation::Delete, Fault::Before(ErrorKind::QuotaExceeded));
    while rig.get(first.id).await.reason != Reason::RateLimited {
        rig.step(&worker).await;
    }
    let (found, now) = (rig.get(first.id).await, rig.world.registry.now());
    let blocked = worker.ledger.budget(&Rig::registry()).await.unwrap().blocked_until;
    assert!(found.record.retry_at.unwrap() < blocked && blocked > now, "{found:?} {blocked}");
    while rig.get(first.id).await.record.last_delete.is_none() {
        rig.world.registry.advance(Duration::from_secs(1));
        worker.run_step(&Rig::registry()).await.unwrap();
    }
    assert!(rig.world.registry.now() < blocked, "it was deleted while other calls wait");
}

#[tokio::test]
async fn a_registry_that_is_exhausted_costs_no_attempt() {
    let Some(rig) = Rig::new(Kind::Sqlite).await else { return };
    let worker = rig.worker("one");
    let first = rig.assign(&rig.cluster("cls-1"), None).await;
    rig.world.registry.inject(Operation::Create, Fault::Before(ErrorKind::QuotaExceeded));
    rig.step(&worker).await;
    let found = rig.get(first.id).await;
    assert_eq!((found.reason, found.record.attempts, found.record.retry_at), (Reason::RateLimited, 0, None));
    assert_eq!(rig.step(&worker).await, StepResult::Idle);
    assert_eq!(rig.step(&worker).await, StepResult::Worked);
    assert_eq!(rig.get(first.id).await.state, State::Created);
}
