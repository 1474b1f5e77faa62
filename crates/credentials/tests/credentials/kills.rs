//! A worker is killed at each call; another one goes on. No account is lost, leaked, used twice or deleted while in use.

use std::time::Duration;

use credentials::ledger::Statement;
use credentials::state::{Action, State};
use rstest::rstest;

use crate::database::Kind;
use crate::rig::{LEASE, Rig};
use crate::world::{Cut, Script};

/// The actions of a rotation, and their calls before the one that is cut off.
const CALLS: [(Action, u32); 12] = [
    (Action::Create, 0),
    (Action::Permit, 0),
    (Action::Probe, 0),
    (Action::Publish, 0),
    (Action::ObserveAdoption, 0),
    (Action::ObserveUsage, 0),
    (Action::Create, 1),
    (Action::Publish, 1),
    (Action::ObserveUsage, 1),
    (Action::ObserveUsage, 2),
    (Action::Delete, 0),
    (Action::ConfirmRefused, 0),
];

/// Rotates one cluster from a first credential to a second one while a call is cut off. With `resume` a killed worker is only
/// suspended, and goes on after another one has done some steps.
async fn rotates(kind: Kind, script: Script, resume: Option<u32>) {
    let Some(rig) = Rig::new(kind).await else { return };
    let cluster = rig.cluster("cls-1");
    let (first, second) = (rig.worker("first"), rig.worker_on("second", rig.database.replica()));
    *rig.world.script.lock().unwrap() = Some(script);
    let old = rig.assign(&cluster, None).await;
    let work = async {
        rig.until(&first, &cluster, old.id, State::Adopted).await;
        let new = rig.assign(&cluster, Some(old.id)).await;
        rig.until(&first, &cluster, old.id, State::WaitedOut).await;
        new
    };
    let mut work = Box::pin(work);
    let done = tokio::select! {
        new = &mut work => Some(new),
        () = rig.world.reached.notified() => None,
    };
    assert!(rig.world.script.lock().unwrap().is_none(), "the call was never made");
    if done.is_none() {
        assert!(matches!(script.cut, Cut::Before | Cut::After));
        rig.world.registry.advance(LEASE + Duration::from_secs(1));
        if let Some(steps) = resume {
            for _turn in 0..steps {
                rig.step(&second).await;
                rig.live(&cluster);
            }
            rig.world.resumed.notify_one();
            work.await;
        } else {
            // The first worker dies here.
            drop(work);
            rig.until(&second, &cluster, old.id, State::Adopted).await;
        }
    }
    let new = rig.assign(&cluster, Some(old.id)).await;
    rig.until(&second, &cluster, old.id, State::WaitedOut).await;
    assert_eq!(rig.get(new.id).await.state, State::Adopted);
    assert!(!rig.get(old.id).await.has_password, "the password of a dead credential is erased");
    rig.check(&[&new]).await;
}

#[rstest]
#[tokio::test]
async fn a_worker_that_is_killed_at_any_call_is_succeeded(
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
    #[values(Cut::Before, Cut::After, Cut::Lost, Cut::Refused)] cut: Cut,
) {
    for (action, after) in CALLS {
        Box::pin(rotates(kind, Script { action, after, cut }, None)).await;
    }
}

#[rstest]
#[tokio::test]
async fn a_worker_that_wakes_up_late_changes_nothing(
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
    #[values(Cut::Before, Cut::After)] cut: Cut,
    #[values(1, 4)] steps: u32,
) {
    for (action, after) in CALLS {
        Box::pin(rotates(kind, Script { action, after, cut }, Some(steps))).await;
    }
}

/// The old credential's publication goes out when the new one is in use.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_publication_that_comes_late_displaces_nothing(
    #[case] kind: Kind,
    #[values(Action::Publish, Action::ObserveDocument)] action: Action,
) {
    let Some(rig) = Rig::new(kind).await else { return };
    let cluster = rig.cluster("cls-1");
    let (first, second) = (rig.worker("first"), rig.worker_on("second", rig.database.replica()));
    // An observation with a password is that of a publication.
    *rig.world.script.lock().unwrap() = Some(Script { action, after: 0, cut: Cut::Before });
    let old = rig.assign(&cluster, None).await;
    let mut late = Box::pin(async {
        for _turn in 0..4 {
            rig.step(&first).await;
        }
    });
    tokio::select! {
        () = &mut late => panic!("the publication was not cut off"),
        () = rig.world.reached.notified() => {}
    }
    rig.world.registry.advance(LEASE + Duration::from_secs(1));
    rig.until(&second, &cluster, old.id, State::Adopted).await;
    let new = rig.assign(&cluster, Some(old.id)).await;
    rig.until(&second, &cluster, new.id, State::Adopted).await;
    rig.world.resumed.notify_one();
    late.await;
    let login = rig.world.clusters.login(&cluster, "memory.invalid").unwrap();
    assert_eq!(Some(login.username), rig.get(new.id).await.record.login);
    rig.until(&second, &cluster, old.id, State::WaitedOut).await;
    rig.check(&[&new]).await;
}

/// A credential is revoked while the request that creates its account is on its way, or its answer is lost.
#[rstest]
#[tokio::test]
async fn an_account_that_is_created_late_is_deleted_all_the_same(
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
    #[values(Cut::Before, Cut::After, Cut::Lost, Cut::Refused)] cut: Cut,
) {
    let Some(rig) = Rig::new(kind).await else { return };
    let cluster = rig.cluster("cls-1");
    let (first, second) = (rig.worker("first"), rig.worker_on("second", rig.database.replica()));
    *rig.world.script.lock().unwrap() = Some(Script { action: Action::Create, after: 0, cut });
    let credential = rig.assign(&cluster, None).await;
    let mut late = Box::pin(rig.step(&first));
    let reached = tokio::select! {
        _turn = &mut late => false,
        () = rig.world.reached.notified() => true,
    };
    assert_eq!(reached, matches!(cut, Cut::Before | Cut::After));
    let statement = Statement { actor: "ann", reason: "mistake", now: rig.world.registry.now() };
    second.ledger.retire(credential.id, &statement).await.unwrap();
    for _turn in 0..3 {
        rig.step(&second).await;
    }
    assert_eq!(rig.get(credential.id).await.state, State::Retiring);
    rig.world.resumed.notify_one();
    if reached {
        late.await;
    }
    rig.until(&second, &cluster, credential.id, State::WaitedOut).await;
    rig.check(&[]).await;
}
