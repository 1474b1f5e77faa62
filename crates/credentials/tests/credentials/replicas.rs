//! Two workers at the same time on one database.

use credentials::run::StepResult;
use credentials::state::State;
use rstest::rstest;
use tokio::join;

use crate::database::Kind;
use crate::rig::Rig;

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn two_workers_share_the_work_of_many_clusters(#[case] kind: Kind) {
    let Some(mut rig) = Rig::new(kind).await else { return };
    rig.pool = 2;
    let clusters: Vec<_> = (0..6).map(|number| rig.cluster(&format!("cls-{number}"))).collect();
    let (one, other) = (rig.worker("one"), rig.worker_on("other", rig.database.replica()));
    let registry = Rig::registry();
    let mut credentials = Vec::new();
    for cluster in &clusters {
        let (first, second) = join!(
            one.assign(&registry, cluster.clone(), None, "a"),
            other.assign(&registry, cluster.clone(), None, "b")
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!(first.id, second.id, "one credential of a slot");
        credentials.push(first);
    }
    for _round in 0..400 {
        let (first, second) = join!(rig.step(&one), rig.step(&other));
        let refilled = join!(one.refill(&registry), other.refill(&registry));
        assert!(refilled.0.is_ok() && refilled.1.is_ok(), "{refilled:?}");
        for cluster in &clusters {
            rig.live(cluster);
        }
        let mut adopted = 0;
        for credential in &credentials {
            adopted += usize::from(rig.get(credential.id).await.state == State::Adopted);
        }
        let pool = one.ledger.pool(&registry).await.unwrap();
        if adopted == clusters.len() && pool.ready == 2 && (first, second) == (StepResult::Idle, StepResult::Idle) {
            assert_eq!((pool.in_progress, rig.world.created.lock().unwrap().len()), (0, 8));
            assert_eq!(*rig.world.violations.lock().unwrap(), [""; 0]);
            return;
        }
    }
    panic!("not all clusters have adopted their credential");
}
