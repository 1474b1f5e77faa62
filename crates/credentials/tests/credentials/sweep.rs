//! Accounts that the ledger does not know are named with their age, and left alone.

use std::time::Duration;

use credentials::state::State;
use credentials::sweep::{Stray, Sweep, Sweeping, Swept};
use registry_account::{NewAccount, Registry as _};
use rstest::rstest;

use crate::database::Kind;
use crate::rig::Rig;
use crate::world::Outside;

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn strays_are_named_and_kept(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker, registry) = (rig.cluster("cls-1"), rig.worker("one"), Rig::registry());
    let known = rig.assign(&cluster, None).await;
    let spent = rig.assign(&rig.cluster("cls-2"), None).await;
    rig.world.registry.add_stranger(&spent.account);
    rig.until(&worker, &cluster, known.id, State::Adopted).await;
    rig.until(&worker, &cluster, spent.id, State::Spent).await;
    rig.world.registry.add_stranger(&"other-robot".parse().unwrap());
    let lost = rig.sources().fresh(&"hf".parse().unwrap()).unwrap();
    let created = rig.world.registry.now();
    let new = NewAccount { name: lost.account.clone(), credential: lost.id, description: String::new() };
    rig.world.registry.create(&new).await.unwrap();
    for _each in 0..120 {
        let name = rig.sources().fresh(&"zz".parse().unwrap()).unwrap().account;
        rig.world.registry.add_stranger(&name);
    }
    rig.world.registry.advance(Duration::from_hours(1));
    let (outside, prefix) = (Outside(std::sync::Arc::clone(&rig.world)), "hf".parse().unwrap());
    let sweeping =
        Sweeping { ledger: &worker.ledger, registry: &outside, name: &registry, prefix: &prefix, per_minute: 4 };
    let mut sweep = Sweep::default();
    assert_eq!(sweep.next(&sweeping, rig.world.registry.now()).await.unwrap(), Swept::More);
    let wait = sweep.next(&sweeping, rig.world.registry.now()).await.unwrap();
    assert!(matches!(wait, Swept::Wait(until) if until > rig.world.registry.now()), "{wait:?}");
    rig.world.registry.advance(Duration::from_mins(5));
    assert_eq!(sweep.next(&sweeping, rig.world.registry.now()).await.unwrap(), Swept::Done);
    let mut expected = vec![
        Stray { account: lost.account, created: Some(created), credential: Some(lost.id), state: None },
        Stray { account: spent.account, created: None, credential: None, state: Some(State::Spent) },
    ];
    sweep.strays.sort_by(|one, other| one.account.cmp(&other.account));
    expected.sort_by(|one, other| one.account.cmp(&other.account));
    for (found, expected) in sweep.strays.iter_mut().zip(&expected) {
        found.created = found.created.filter(|_| expected.created.is_some());
    }
    assert_eq!(sweep.strays, expected);
    assert_eq!(rig.world.registry.list(None).await.unwrap().accounts.len(), 100, "nothing was deleted");
}
