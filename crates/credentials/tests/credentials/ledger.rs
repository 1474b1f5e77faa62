//! Claims, fences, slots and events of the ledger.

use std::time::Duration;

use credentials::credential::Record;
use credentials::decide::Grant;
use credentials::ledger::{
    Call, Change, Claim, Claimed, Filter, Fresh, Outcome, Password, Reservation, Slot, Start, Started,
};
use credentials::reason::Reason;
use credentials::state::{Action, Lane, State};
use database::Parameters;
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use tokio::join;

use crate::database::Kind;
use crate::rig::Rig;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_000 + second).unwrap()
}

fn claim<'a>(worker: &'a str, registry: &'a credentials::credential::RegistryName, now: i64) -> Claim<'a> {
    Claim { worker, registry, lane: Some(Lane::Audit), now: second(now), until: second(now + 60) }
}

fn change(state: State, now: i64) -> Change<'static> {
    Change {
        action: Some(Action::Create),
        outcome: Outcome::Succeeded,
        state,
        record: Record::default(),
        reason: Reason::ToPermit,
        standing: Reason::ToPermit,
        password: Password::Keep,
        lane: Some(Lane::Refill),
        due: Some(second(now)),
        instead: None,
        actor: "test",
        now: second(now),
    }
}

fn start(action: Action, call: Option<Call>, now: i64) -> Start<'static> {
    Start { action, reason: Reason::ToCreate, call, record: Record::default(), actor: "test", now: second(now) }
}

async fn reserve(rig: &Rig, count: usize) {
    let prefix = "hf".parse().unwrap();
    let fresh = |_each| rig.sources().fresh(&prefix).unwrap();
    let reservations: Vec<_> =
        (0..count).map(fresh).map(|fresh| Reservation { fresh, registry: Rig::registry(), slot: None }).collect();
    rig.database.ledger(&[1]).reserve(&reservations, "test", second(0)).await.unwrap();
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_row_belongs_to_one_replica_until_its_lease_ends(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    reserve(&rig, 2).await;
    let (one, other, registry) = (rig.database.ledger(&[1]), rig.database.replica(), Rig::registry());
    let (first, next) = (claim("one", &registry, 0), claim("other", &registry, 0));
    let (mine, theirs) = join!(one.claim(&first), other.claim(&next));
    let (mine, theirs) = (mine.unwrap().unwrap(), theirs.unwrap().unwrap());
    assert_ne!(mine.credential.id, theirs.credential.id);
    assert!(one.claim(&claim("one", &registry, 59)).await.unwrap().is_none());
    assert!(one.claim(&claim("one", &registry, 60)).await.unwrap().is_some(), "the lease has ended");
    assert!(
        !one.finish(&mine, &change(State::Created, 61)).await.unwrap() || {
            !other.finish(&theirs, &change(State::Created, 61)).await.unwrap()
        }
    );
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn an_overtaken_replica_changes_nothing(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    reserve(&rig, 1).await;
    let (ledger, registry) = (rig.database.ledger(&[1]), Rig::registry());
    let mut old = ledger.claim(&claim("old", &registry, 0)).await.unwrap().unwrap();
    assert_eq!(ledger.begin(&mut old, &start(Action::Create, None, 1)).await.unwrap(), Started::Recorded);
    let stale: Claimed = old.clone();
    let new = ledger.claim(&claim("new", &registry, 100)).await.unwrap().unwrap();
    let set = Change { password: Password::Set("late".to_owned().into()), ..change(State::Permitted, 101) };
    assert!(!ledger.finish(&old, &set).await.unwrap());
    assert_eq!(ledger.begin(&mut old, &start(Action::Permit, None, 101)).await.unwrap(), Started::Overtaken);
    ledger.release(&stale, None, second(0)).await.unwrap();
    let found = ledger.get(new.credential.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.has_password), (State::Reserved, false));
    assert!(ledger.finish(&new, &change(State::Created, 102)).await.unwrap());
    let actions: Vec<_> =
        ledger.events(found.id).await.unwrap().into_iter().map(|event| (event.action, event.outcome)).collect();
    let expected = [("Reserve", Outcome::Recorded), ("Create", Outcome::Started), ("Create", Outcome::Succeeded)];
    assert_eq!(actions, expected.map(|(action, outcome)| (action.to_owned(), outcome)));
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn replicas_share_the_calls_of_a_registry(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    reserve(&rig, 20).await;
    let (one, other, registry) = (rig.database.ledger(&[1]), rig.database.replica(), Rig::registry());
    let call = Call { lane: Lane::Refill, per_minute: 60 };
    let mut granted = 0;
    for round in 0..20 {
        let ledger = if round % 2 == 0 { &one } else { &other };
        let mut claimed = ledger.claim(&claim("any", &registry, 0)).await.unwrap().unwrap();
        match ledger.begin(&mut claimed, &start(Action::Create, Some(call), 0)).await.unwrap() {
            Started::Recorded => granted += 1,
            Started::NoCall(until) => {
                assert_eq!(until, second(1));
                assert_eq!(ledger.events(claimed.credential.id).await.unwrap().len(), 1, "nothing is recorded");
            }
            Started::Overtaken => panic!("it was claimed"),
        }
    }
    assert_eq!(granted, 6, "the lead of refills at 60 calls a minute");
    // A read of the usage in ten requests is a call, and nine that are paid for.
    one.pay(&registry, 9, 60).await.unwrap();
    assert_eq!(other.take_call(&registry, call, second(0)).await.unwrap(), Grant::Wait(second(10)));
    one.block(&registry, second(90)).await.unwrap();
    one.block(&registry, second(80)).await.unwrap();
    assert_eq!(other.budget(&registry).await.unwrap().blocked_until, second(90));
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn urgent_lanes_are_claimed_first_and_lanes_without_a_call_are_not(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    reserve(&rig, 1).await;
    let first = rig.assign(&rig.cluster("cls-1"), None).await;
    let (ledger, registry) = (rig.database.ledger(&[1]), Rig::registry());
    let refused = Claim { lane: None, ..claim("a", &registry, 0) };
    assert!(ledger.claim(&refused).await.unwrap().is_none());
    let claimed = ledger.claim(&claim("a", &registry, 0)).await.unwrap().unwrap();
    assert_eq!(claimed.credential.id, first.id, "a new cluster comes before a refill");
    let urgent = Claim { lane: Some(Lane::NewCluster), ..claim("a", &registry, 0) };
    assert!(ledger.claim(&urgent).await.unwrap().is_none(), "the refill has no call");
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_credential_that_is_given_up_leaves_its_slot_to_another(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let cluster = rig.cluster("cls-1");
    let first = rig.assign(&cluster, None).await;
    assert_eq!(rig.assign(&cluster, None).await.id, first.id);
    let (ledger, registry) = (rig.database.ledger(&[1]), Rig::registry());
    let claimed = ledger.claim(&claim("a", &registry, 0)).await.unwrap().unwrap();
    let fresh: Fresh = rig.sources().fresh(&"hf".parse().unwrap()).unwrap();
    let spent = Change { instead: Some(fresh.clone()), ..change(State::Spent, 1) };
    assert!(ledger.finish(&claimed, &spent).await.unwrap());
    let of_cluster = Filter { cluster: Some("cls-1".to_owned()), ..Filter::default() };
    let second = rig.assign(&cluster, None).await;
    assert_eq!((second.id, &second.account), (fresh.id, &fresh.account));
    assert_eq!(ledger.list(&of_cluster).await.unwrap().len(), 2);
    // Another incarnation has a slot of its own.
    let slot =
        Slot { cluster: credentials::credential::ClusterRef { incarnation: 8, ..cluster }, registry, replaces: None };
    let other = rig.sources().fresh(&"hf".parse().unwrap()).unwrap();
    assert_eq!(ledger.assign(&slot, &other, "test", second_time()).await.unwrap().id, other.id);
    // The name of an account is used once.
    let again = Reservation { fresh: Fresh { account: fresh.account, ..other }, registry: Rig::registry(), slot: None };
    assert!(ledger.reserve(&[again], "test", second_time()).await.is_err());
}

fn second_time() -> Timestamp {
    second(2)
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn events_are_only_ever_added(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    reserve(&rig, 1).await;
    for sql in ["UPDATE credential_events SET actor = 'x'", "DELETE FROM credential_events"] {
        let mut write = rig.database.database.begin().await.unwrap();
        assert!(write.execute(sql.to_owned(), Parameters::default()).await.is_err(), "{sql}");
    }
    let late = second(0).saturating_add(SignedDuration::from_secs(1)).unwrap();
    assert_eq!(rig.database.ledger(&[1]).migrate(Duration::from_secs(1), late).await.unwrap(), [""; 0]);
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_cluster_is_read_with_its_assignments(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let first = rig.assign(&rig.cluster("cls-1"), None).await;
    let second = rig.assign(&rig.cluster("cls-1"), Some(first.id)).await;
    rig.assign(&rig.cluster("cls-2"), None).await;
    let ledger = rig.database.ledger(&[1]);
    let found = ledger.of_cluster("cls-1").await.unwrap();
    let mut ids: Vec<_> = found.iter().map(|found| (found.credential.id, found.has_place)).collect();
    ids.sort_by_key(|(id, _)| *id != first.id);
    assert_eq!(ids, [(first.id, true), (second.id, true)]);
    let events = ledger.assignments("cls-1").await.unwrap();
    let events: Vec<_> = events.iter().map(|event| (event.credential, event.action.as_str())).collect();
    assert_eq!(events, [(first.id, "Reserve"), (second.id, "Reserve")]);
    assert!(ledger.of_cluster("cls-3").await.unwrap().is_empty());
}
