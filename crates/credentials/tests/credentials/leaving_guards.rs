//! Clusters that leave AMS keep AMS's entry until they are moved: unlisted, deleted, retired, and taken back.

use std::time::Duration;

use credentials::ams::BackError;
use credentials::credential::{Approval, Credential};
use credentials::decide::ams::Phase;
use credentials::ledger::Filter;
use credentials::reason::Reason;
use credentials::state::State;
use rstest::rstest;

use crate::database::Kind;
use crate::leaving_rig::{HOST, Leaving};
use crate::rig::Rig;

/// A fleet whose clusters all have a credential that waits beside that of AMS.
async fn issued(kind: Kind, size: usize) -> Option<Leaving> {
    let leaving = Leaving::new(kind, size, &[]).await?;
    leaving.import().await.unwrap();
    leaving.compare_for_days().await;
    leaving.issue().await;
    leaving.until_held(size).await;
    Some(leaving)
}

async fn steps(leaving: &Leaving, number: usize) {
    for _turn in 0..number {
        leaving.rig.step(&leaving.worker).await;
    }
}

/// The newest credential of a cluster.
async fn newest(leaving: &Leaving, index: usize) -> Credential {
    let filter = Filter { cluster: Some(leaving.clusters[index].id.clone()), ..Filter::default() };
    leaving.worker.ledger.list(&filter).await.unwrap().pop().unwrap()
}

async fn is_of_ams(leaving: &Leaving, index: usize) -> bool {
    leaving.worker.ledger.is_of_ams(&leaving.clusters[index], &["elsewhere.invalid", HOST]).await.unwrap()
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_cluster_that_the_search_does_not_find_stays_known_while_it_exists(#[case] kind: Kind) {
    let Some(leaving) = Leaving::new(kind, 2, &[]).await else { return };
    leaving.import().await.unwrap();
    let before = leaving.status().await.remove("cls-0001").unwrap();
    leaving.secrets.unlisted.lock().unwrap().insert("cls-0001".to_owned());
    leaving.rig.world.registry.advance(Duration::from_hours(1));
    assert_eq!(leaving.shadow().await.clusters, 1);
    let after = leaving.status().await;
    assert_eq!(after["cls-0001"].compared, before.compared, "it is not compared");
    assert!(after["cls-0000"].compared.compared_at > before.compared.compared_at);
    assert!(is_of_ams(&leaving, 1).await, "it gets no credential by itself");
    leaving.rig.world.clusters.remove(&leaving.clusters[1]);
    leaving.shadow().await;
    assert!(!leaving.status().await.contains_key("cls-0001") && !is_of_ams(&leaving, 1).await);
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_cluster_is_of_ams_until_its_credentials_of_ams_are_deleted(#[case] kind: Kind) {
    let Some(leaving) = issued(kind, 2).await else { return };
    assert!(is_of_ams(&leaving, 0).await);
    let name = leaving.begin_to_move(2).await;
    leaving.move_all(&name, &[]).await;
    assert!(is_of_ams(&leaving, 0).await && is_of_ams(&leaving, 1).await);
    leaving.be_quiet();
    assert!(leaving.retire("cls-0000", false).await.unwrap()[0].is_deleted);
    assert_eq!(leaving.phases().await, [(Phase::Moved, 1), (Phase::Retired, 1)].into());
    assert!(!is_of_ams(&leaving, 0).await, "a credential at a host that stays AMS's keeps nothing back");
    assert!(is_of_ams(&leaving, 1).await);
    let own = newest(&leaving, 0).await;
    assert_eq!(leaving.rig.assign(&leaving.clusters[0], None).await.id, own.id, "it has one already");
}

#[rstest]
#[case::retired(Kind::Sqlite, false)]
#[case::revoked(Kind::Sqlite, true)]
#[case::revoked_postgresql(Kind::Postgresql, true)]
#[tokio::test]
async fn a_held_credential_that_is_over_gives_way_to_another(#[case] kind: Kind, #[case] revokes: bool) {
    let Some(leaving) = issued(kind, 2).await else { return };
    let (ledger, before) = (&leaving.worker.ledger, leaving.named());
    for turns_between in [0, 20] {
        let (former, statement) = (newest(&leaving, 0).await, leaving.statement());
        if revokes {
            ledger.revoke(former.id, Approval::None, &statement).await.unwrap();
        } else {
            ledger.retire(former.id, &statement).await.unwrap();
        }
        steps(&leaving, turns_between).await;
        if turns_between > 0 {
            let over = leaving.rig.get(former.id).await;
            assert!(over.state >= State::Retiring && over.record.held, "{over:?}");
            assert!(matches!(leaving.back("cls-0000").await, Err(BackError::NothingIssued(_))));
        }
        leaving.shadow().await;
        let issued = leaving.issue().await;
        assert!(issued.left_out.is_empty() && issued.credentials.len() == 2, "{issued:?}");
        let another = issued.credentials.iter().find(|one| one.cluster == former.cluster).unwrap();
        assert!(another.id != former.id && another.record.held, "{another:?}");
        leaving.until_held(2).await;
        assert_eq!(leaving.issue().await.credentials.len(), 2, "the same ones again");
        assert_eq!(newest(&leaving, 0).await.id, another.id);
        assert!(!leaving.rig.get(former.id).await.record.held);
    }
    assert_eq!(leaving.phases().await, [(Phase::Issued, 2)].into());
    assert_eq!(leaving.named(), before, "nothing is published");
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn the_end_of_a_cluster_ends_its_held_credential(#[case] kind: Kind) {
    let Some(leaving) = issued(kind, 2).await else { return };
    steps(&leaving, 10).await;
    let (gone, stays) = (newest(&leaving, 0).await, newest(&leaving, 1).await);
    assert_eq!((gone.reason, stays.reason), (Reason::Held, Reason::Held));
    leaving.rig.world.clusters.remove(&leaving.clusters[0]);
    leaving.rig.world.registry.advance(leaving.rig.policy.resync);
    steps(&leaving, 20).await;
    let (gone, stays) = (leaving.rig.get(gone.id).await, leaving.rig.get(stays.id).await);
    assert!(gone.state >= State::Retiring, "{gone:?}");
    assert_eq!((stays.state, stays.reason, stays.record.held), (State::Probed, Reason::Held, true));
}

/// A replacement is on its way when a cluster is taken back: it does not displace AMS's entry.
#[rstest]
#[case::reserved(Kind::Sqlite, State::Reserved)]
#[case::created(Kind::Sqlite, State::Created)]
#[case::permitted(Kind::Postgresql, State::Permitted)]
#[case::published(Kind::Sqlite, State::Published)]
#[tokio::test]
async fn a_replacement_does_not_undo_the_way_back(#[case] kind: Kind, #[case] state: State) {
    let Some(leaving) = issued(kind, 1).await else { return };
    let of_ams = leaving.named();
    let name = leaving.begin_to_move(1).await;
    leaving.move_all(&name, &[]).await;
    assert_eq!(leaving.phases().await, [(Phase::Moved, 1)].into());
    let former = newest(&leaving, 0).await;
    let fresh = leaving.rig.sources().fresh(&"hf".parse().unwrap()).unwrap();
    let newer = leaving.worker.ledger.replace(former.id, &fresh, &leaving.statement()).await.unwrap();
    leaving.rig.until(&leaving.worker, &leaving.clusters[0], newer.id, state).await;
    leaving.back("cls-0000").await.unwrap();
    steps(&leaving, 40).await;
    assert_eq!(leaving.named(), of_ams, "the service publishes none of its own");
    assert_eq!(leaving.phases().await, [(Phase::Issued, 1)].into());
    let (former, newer) = (leaving.rig.get(former.id).await, leaving.rig.get(newer.id).await);
    assert!(former.record.held && former.state == State::Probed, "{former:?}");
    if state < State::Published {
        assert_eq!((newer.record.given_up, newer.record.held), (Some(Reason::RolledBack), false));
        assert!(newer.state >= State::Retiring, "{newer:?}");
    } else {
        assert!(newer.record.held && newer.state == State::Probed, "{newer:?}");
    }
    // The same again gives up what is kept.
    leaving.back("cls-0000").await.unwrap();
    for own in [former.id, newer.id] {
        assert_eq!(leaving.rig.get(own).await.record.given_up, Some(Reason::RolledBack));
    }
    assert!(matches!(leaving.back("cls-0000").await, Err(BackError::NothingIssued(_))));
    assert_eq!(leaving.worker.ledger.own_credentials(&Rig::registry()).await.unwrap().len(), 0);
}

/// A credential that is released and not published yet is taken back as well.
#[tokio::test]
async fn a_credential_on_its_way_to_its_cluster_is_taken_back() {
    let leaving = issued(Kind::Sqlite, 1).await.unwrap();
    let before = leaving.named();
    leaving.begin_to_move(1).await;
    for _pass in 0..3 {
        leaving.worker.rotate(&Rig::registry()).await.unwrap();
    }
    let own = newest(&leaving, 0).await;
    assert!(!own.record.held && !own.may_be_named(), "{own:?}");
    leaving.back("cls-0000").await.unwrap();
    steps(&leaving, 20).await;
    assert_eq!(leaving.named(), before);
    assert_eq!(leaving.rig.get(own.id).await.record.given_up, Some(Reason::RolledBack));
}
