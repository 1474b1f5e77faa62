//! Former credentials that clusters get back.

use credentials::credential::{Approval, ClusterRef, Credential, Retire};
use credentials::ledger::Statement;
use credentials::reason::Reason;
use credentials::run::Worker;
use credentials::state::State;
use registry_account::{CredentialId, Registry as _};
use rstest::rstest;

use crate::database::Kind;
use crate::rig::Rig;
use crate::world::Outside;

const TURNS: usize = 300;

/// A cluster whose old credentials live until a person retires them.
struct Back {
    rig: Rig,
    worker: Worker<Outside, Outside>,
    cluster: ClusterRef,
    first: Credential,
}

// === impl Back ===

impl Back {
    async fn new(kind: Kind) -> Option<Self> {
        let mut rig = Rig::new(kind).await?;
        rig.policy.retire = Retire::Manual;
        let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
        let first = rig.assign(&cluster, None).await;
        let back = Self { rig, worker, cluster, first };
        back.until(back.first.id, State::Adopted).await;
        Some(back)
    }

    fn statement(&self, reason: &'static str) -> Statement<'static> {
        Statement { actor: "ann", reason, now: self.rig.world.registry.now() }
    }

    async fn until(&self, id: CredentialId, state: State) {
        self.rig.until(&self.worker, &self.cluster, id, state).await;
    }

    /// Replaces a credential; the cluster adopts the new one.
    async fn replace(&self, id: CredentialId) -> Credential {
        let new = self.rig.assign(&self.cluster, Some(id)).await;
        self.until(new.id, State::Adopted).await;
        new
    }

    async fn put_back(&self, id: CredentialId) -> Option<Vec<CredentialId>> {
        self.worker.ledger.put_back(id, &self.statement("it cannot pull")).await.unwrap()
    }

    /// Works for a long time, after which the cluster uses this credential and no other one.
    async fn settles_on(&self, used: &Credential) {
        for _turn in 0..TURNS {
            self.rig.step(&self.worker).await;
            self.rig.live(&self.cluster);
        }
        let found = self.rig.get(used.id).await;
        assert_eq!((found.state, found.record.order, found.record.given_up), (State::Adopted, None, None));
        let named = self.rig.world.clusters.login(&self.cluster, self.rig.world.registry.host()).unwrap().username;
        assert_eq!(found.record.login, Some(named));
    }
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_credential_is_put_back_over_two_newer_ones(#[case] kind: Kind) {
    let Some(back) = Back::new(kind).await else { return };
    let second = back.replace(back.first.id).await;
    let third = back.replace(second.id).await;
    assert_eq!(back.put_back(back.first.id).await, Some(vec![second.id, third.id]));
    assert_eq!(back.put_back(back.first.id).await, None, "it is on its way already");
    assert_eq!(back.rig.get(back.first.id).await.state, State::Probed);
    back.until(back.first.id, State::Adopted).await;
    for newer in [&second, &third] {
        back.until(newer.id, State::WaitedOut).await;
        assert_eq!(back.rig.get(newer.id).await.record.given_up, Some(Reason::RolledBack));
    }
    back.settles_on(&back.first).await;
    back.rig.check(&[&back.first]).await;
}

/// The newer one was revoked, and the pull secret names it still.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_credential_is_put_back_over_one_that_is_over(#[case] kind: Kind) {
    let Some(back) = Back::new(kind).await else { return };
    let second = back.replace(back.first.id).await;
    *back.rig.world.may_delete_in_use.lock().unwrap() = true;
    back.worker.ledger.revoke(second.id, Approval::None, &back.statement("a leak")).await.unwrap();
    for _turn in 0..TURNS {
        if back.rig.get(second.id).await.state.is_over() {
            break;
        }
        back.rig.step(&back.worker).await;
    }
    assert_eq!(back.put_back(back.first.id).await, Some(Vec::new()), "there is nothing left to retire");
    // Between the two its nodes cannot pull.
    for _turn in 0..TURNS {
        if back.rig.get(back.first.id).await.state >= State::Published {
            break;
        }
        back.rig.step(&back.worker).await;
    }
    back.until(back.first.id, State::Adopted).await;
    back.settles_on(&back.first).await;
    let order = back.rig.get(second.id).await.record.order.unwrap();
    assert_eq!((order.reason.as_str(), order.break_glass), ("a leak", true));
    back.rig.check(&[&back.first]).await;
}

/// The newer one was never sent to the registry; the order to retire the former one came before it.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn what_is_put_back_is_not_retired(#[case] kind: Kind) {
    let Some(back) = Back::new(kind).await else { return };
    back.worker.ledger.retire(back.first.id, &back.statement("yearly")).await.unwrap();
    let second = back.rig.assign(&back.cluster, Some(back.first.id)).await;
    assert_eq!(back.put_back(back.first.id).await, Some(vec![second.id]));
    back.settles_on(&back.first).await;
    assert_eq!(back.rig.get(second.id).await.state, State::Spent);
    back.rig.check(&[&back.first]).await;
}

/// It has lost its place, and a third one has come meanwhile.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_credential_that_was_given_up_is_put_back(#[case] kind: Kind, #[values(false, true)] has_third: bool) {
    let Some(back) = Back::new(kind).await else { return };
    let second = back.replace(back.first.id).await;
    assert_eq!(back.put_back(back.first.id).await, Some(vec![second.id]));
    let mut retired = Vec::new();
    if has_third {
        back.until(back.first.id, State::Adopted).await;
        retired.push(back.rig.assign(&back.cluster, Some(back.first.id)).await.id);
    }
    assert_eq!(back.put_back(second.id).await, Some(retired));
    assert_eq!(back.put_back(second.id).await, None);
    back.until(second.id, State::Adopted).await;
    back.settles_on(&second).await;
    assert_eq!(back.worker.ledger.successor(back.first.id).await.unwrap().unwrap().id, second.id);
    let first = back.rig.get(back.first.id).await;
    assert_eq!((first.state, first.reason), (State::Quiet, Reason::AwaitingApproval));
    back.rig.check(&[&first, &second]).await;
}
