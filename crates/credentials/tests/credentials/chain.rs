//! The chain of events: each change of an event or a link is found, and keys can be withdrawn.

use std::sync::Arc;
use std::time::Duration;

use credentials::chain::{Fault, KnownLink, Verified};
use credentials::ledger::{Ledger, LedgerError, Reservation};
use database::sealed::{DigestKey, KeyBytes, Keyring};
use database::{Dialect, Parameters};
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;

use crate::database::Kind;
use crate::rig::Rig;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_000 + second).unwrap()
}

/// Adds this many events.
async fn add(rig: &Rig, count: usize) {
    let prefix = "hf".parse().unwrap();
    let reservations = (0..count).map(|_each| {
        let fresh = rig.sources().fresh(&prefix).unwrap();
        Reservation { fresh, registry: Rig::registry(), slot: None }
    });
    rig.database.ledger(&[1]).reserve(&reservations.collect::<Vec<_>>(), "test", second(0)).await.unwrap();
}

/// Two links of two events each.
async fn two_links(kind: Kind) -> Option<Rig> {
    let rig = Rig::new(kind).await?;
    for number in 1..=2 {
        add(&rig, 2).await;
        let link = rig.database.ledger(&[1]).link_events(second(number)).await.unwrap().unwrap();
        assert_eq!((link.number, link.through, link.time), (number, number * 2, second(number)));
    }
    Some(rig)
}

/// Does what an administrator of the database can.
async fn damage(rig: &Rig, statements: &[&str]) {
    let mut write = rig.database.database.begin().await.unwrap();
    let triggers = match write.dialect() {
        Dialect::Sqlite => ["events_stay", "events_remain", "event_links_stay", "event_links_remain"]
            .map(|name| format!("DROP TRIGGER IF EXISTS credential_{name}"))
            .to_vec(),
        Dialect::Postgres => ["events", "event_links"]
            .map(|name| format!("DROP TRIGGER IF EXISTS credential_{name}_stay ON credential_{name}"))
            .to_vec(),
    };
    for statement in triggers.into_iter().chain(statements.iter().map(|text| (*text).to_owned())) {
        write.execute(statement, Parameters::default()).await.unwrap();
    }
    write.commit().await.unwrap();
}

async fn verify(ledger: &Ledger, known: &[KnownLink]) -> Verified {
    ledger.verify_events(known).await.unwrap()
}

async fn known(ledger: &Ledger) -> KnownLink {
    let newest = verify(ledger, &[]).await.newest.unwrap();
    format!("{}:{}", newest.number, newest.hash).parse().unwrap()
}

#[rstest]
#[case("UPDATE credential_events SET actor = 'another' WHERE number = 1", Fault::Events { link: 1, first: 1, last: 2 })]
#[case("UPDATE credential_events SET time = time + 1 WHERE number = 3", Fault::Events { link: 2, first: 3, last: 4 })]
#[case("UPDATE credential_events SET remark = '' WHERE number = 2", Fault::Events { link: 1, first: 1, last: 2 })]
#[case("DELETE FROM credential_events WHERE number = 1", Fault::Events { link: 1, first: 1, last: 2 })]
#[case("DELETE FROM credential_events WHERE number = 4", Fault::Events { link: 2, first: 3, last: 4 })]
#[case("UPDATE credential_event_links SET time = time + 1 WHERE number = 1", Fault::Changed { link: 1 })]
#[case("UPDATE credential_event_links SET hash = upper(hash) WHERE number = 2", Fault::Events { link: 2, first: 3, last: 4 })]
#[case(
    "UPDATE credential_event_links SET seal = (SELECT seal FROM credential_event_links WHERE number = 1) WHERE number = 2",
    Fault::Changed { link: 2 }
)]
#[case("DELETE FROM credential_event_links WHERE number = 1", Fault::Missing { link: 1 })]
#[case("DELETE FROM credential_event_links WHERE number = 2", Fault::Missing { link: 2 })]
#[tokio::test]
async fn a_change_is_found(
    #[case] statement: &str,
    #[case] fault: Fault,
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
) {
    let Some(rig) = two_links(kind).await else { return };
    let ledger = rig.database.ledger(&[1]);
    let kept = known(&ledger).await;
    let whole = verify(&ledger, std::slice::from_ref(&kept)).await;
    assert_eq!((whole.links, whole.events, whole.unlinked, whole.fault), (2, 4, 0, None));
    damage(&rig, &[statement]).await;
    assert_eq!(verify(&ledger, &[kept]).await.fault, Some(fault));
}

/// Removing the newest link with its events looks like a ledger of that time, but for a link that is kept elsewhere.
#[rstest]
#[tokio::test]
async fn a_shortened_chain_is_found_by_a_kept_link(#[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind) {
    let Some(rig) = two_links(kind).await else { return };
    let ledger = rig.database.ledger(&[1]);
    let kept = known(&ledger).await;
    let shorten =
        ["DELETE FROM credential_event_links WHERE number = 2", "DELETE FROM credential_events WHERE number > 2"];
    damage(&rig, &shorten).await;
    assert_eq!(verify(&ledger, &[]).await.fault, None);
    assert_eq!(verify(&ledger, std::slice::from_ref(&kept)).await.fault, Some(Fault::Missing { link: 2 }));
    // What the service then goes on with is another chain.
    add(&rig, 1).await;
    assert_eq!(ledger.link_events(second(9)).await.unwrap().unwrap().number, 2);
    assert_eq!(verify(&ledger, &[kept]).await.fault, Some(Fault::Replaced { link: 2 }));
}

/// A chain that an administrator of the database has made again, with a key of their own under the same id.
#[rstest]
#[tokio::test]
async fn a_chain_that_was_made_again_without_the_key_is_found(#[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind) {
    let Some(rig) = two_links(kind).await else { return };
    damage(&rig, &["UPDATE credential_events SET actor = 'another'", "DELETE FROM credential_event_links"]).await;
    let key = KeyBytes { id: "key-1".to_owned(), bytes: vec![9; 32].into() };
    let keyring = Keyring::new(vec![key], DigestKey::Derived("credentials/test/1")).unwrap();
    let forger = Ledger::new(rig.database.database.clone(), Arc::new(keyring));
    forger.link_events(second(3)).await.unwrap().unwrap();
    assert_eq!(verify(&forger, &[]).await.fault, None);
    let ledger = rig.database.ledger(&[1]);
    assert_eq!(verify(&ledger, &[]).await.fault, Some(Fault::Changed { link: 1 }));
    // Nor is it continued, so that nothing later proves it.
    assert!(matches!(ledger.link_events(second(4)).await, Err(LedgerError::Chain(1))));
}

#[rstest]
#[tokio::test]
async fn a_later_link_proves_those_of_a_withdrawn_key(#[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind) {
    let Some(rig) = two_links(kind).await else { return };
    let [old, both, new] = [&[1][..], &[2, 1], &[2]].map(|keys| rig.database.ledger(keys));
    assert_eq!(old.link_events(second(3)).await.unwrap(), None, "there is nothing new");
    assert_eq!(verify(&new, &[]).await.fault, Some(Fault::NoKey { first: 1 }));
    let link = both.link_events(second(4)).await.unwrap().unwrap();
    assert_eq!((link.number, link.through), (3, 4), "for the new key");
    assert_eq!(verify(&new, &[]).await.fault, None);
    damage(&rig, &["UPDATE credential_events SET actor = 'another' WHERE number = 1"]).await;
    assert_eq!(verify(&new, &[]).await.fault, Some(Fault::Events { link: 1, first: 1, last: 2 }));
}

#[tokio::test]
async fn a_link_is_made_each_day_and_has_a_limit() {
    let rig = two_links(Kind::Sqlite).await.unwrap();
    let (ledger, day) = (rig.database.ledger(&[1]), SignedDuration::from_hours(24));
    let daily = second(2) + day;
    assert_eq!(ledger.link_events(daily - SignedDuration::from_secs(1)).await.unwrap(), None);
    assert_eq!(ledger.link_events(daily).await.unwrap().map(|link| (link.number, link.through)), Some((3, 4)));
    add(&rig, 5_001).await;
    assert_eq!(verify(&ledger, &[]).await.unlinked, 5_001);
    assert_eq!(ledger.link_events(daily).await.unwrap().map(|link| (link.number, link.through)), Some((5, 5_005)));
    let verified = verify(&ledger, &[]).await;
    assert_eq!((verified.links, verified.events, verified.unlinked, verified.fault), (5, 5_005, 0, None));
}

/// A transaction that has its events' numbers and is not committed yet: a link waits for it, as it covers a range of numbers.
#[tokio::test]
async fn a_link_waits_for_events_that_are_being_committed() {
    let Some(rig) = Rig::new(Kind::Postgresql).await else { return };
    let ledger = rig.database.ledger(&[1]);
    let mut slow = rig.database.database.begin().await.unwrap();
    let event = "INSERT INTO credential_events (credential, registry, actor, action, outcome, reason, time) \
                 VALUES ('c', 'r', 'a', 'a', 'Recorded', 'Ordered', 1)";
    slow.execute(event.to_owned(), Parameters::default()).await.unwrap();
    add(&rig, 1).await;
    let link = ledger.link_events(second(1));
    tokio::pin!(link);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut link).await;
    assert!(early.is_err(), "linked before the lower number was committed");
    slow.commit().await.unwrap();
    assert_eq!(link.await.unwrap().map(|link| link.through), Some(2));
    let verified = verify(&ledger, &[]).await;
    assert_eq!((verified.events, verified.unlinked, verified.fault), (2, 0, None));
}

/// Two services link while others write; each event is covered once.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn replicas_make_one_chain(#[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let linking = |ledger: Ledger| async move {
        for number in 0..20 {
            ledger.link_events(second(number)).await.unwrap();
        }
    };
    let writing = async {
        for _each in 0..20 {
            add(&rig, 3).await;
        }
    };
    tokio::join!(linking(rig.database.ledger(&[1])), linking(rig.database.replica()), writing);
    let ledger = rig.database.ledger(&[1]);
    ledger.link_events(second(99)).await.unwrap();
    let verified = verify(&ledger, &[]).await;
    assert_eq!((verified.events, verified.unlinked, verified.fault), (60, 0, None));
}
