//! No password is in the tables, in events, errors or `Debug`; sealed ones are bound to their place and sealed anew.

use std::collections::BTreeMap;

use credentials::ledger::{Filter, LedgerError, Statement};
use credentials::reason::Reason;
use credentials::state::State;
use database::Parameters;
use rstest::rstest;
use secrecy::ExposeSecret as _;

use crate::database::Kind;
use crate::rig::Rig;

/// The beginning of every password of the registry in memory.
const PASSWORD: &str = "password-";

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn no_password_is_printed_or_stored_in_clear(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let old = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, old.id, State::Adopted).await;
    let new = rig.assign(&cluster, Some(old.id)).await;
    rig.until(&worker, &cluster, old.id, State::Retiring).await;
    let found = rig.get(new.id).await;
    let password = worker.ledger.password(&found).await.unwrap().unwrap();
    assert!(password.expose_secret().starts_with(PASSWORD));
    let login = rig.world.clusters.login(&cluster, "memory.invalid").unwrap();
    assert_eq!(login.password.expose_secret(), password.expose_secret());
    let tables = [
        rig.database.dump("SELECT id, account, state, reason, record, password FROM credentials", 6).await,
        rig.database.dump("SELECT actor, action, outcome, reason, remark FROM credential_events", 5).await,
    ];
    let debug = format!("{worker:?} {found:?} {:?} {:?}", worker.ledger, worker.ledger.events(old.id).await.unwrap());
    for text in tables.iter().chain([&debug]) {
        assert!(text.len() > 100 && !text.contains(PASSWORD), "{text}");
    }
}

/// One cluster waits for its credential, one has it, one credential is in the pool: all their passwords are lost.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_lost_key_costs_no_cluster_its_credential(#[case] kind: Kind) {
    let Some(mut rig) = Rig::new(kind).await else { return };
    rig.pool = 2;
    let (has, waits, worker) = (rig.cluster("cls-1"), rig.cluster("cls-2"), rig.worker("one"));
    let had = rig.assign(&has, None).await;
    rig.until(&worker, &has, had.id, State::Adopted).await;
    while worker.ledger.pool(&Rig::registry()).await.unwrap().ready < 2 {
        worker.refill(&Rig::registry()).await.unwrap();
        rig.step(&worker).await;
    }
    let waiting = rig.assign(&waits, None).await;
    assert_eq!((waiting.state, waiting.has_password), (State::Probed, true));
    let statement = Statement { actor: "ann", reason: "the disk is gone", now: rig.world.registry.now() };
    let ledger = rig.database.ledger(&[2]);
    assert_eq!(ledger.remove_lost("key-2", &statement).await.unwrap(), []);
    assert_eq!(ledger.remove_lost("key-1", &statement).await.unwrap().len(), 3);
    assert_eq!(ledger.keys_in_use().await.unwrap(), BTreeMap::new());
    let worker = rig.worker_on("two", ledger);
    for _turn in 0..300 {
        worker.refill(&Rig::registry()).await.unwrap();
        rig.step(&worker).await;
        rig.live(&has);
        rig.live(&waits);
    }
    assert_eq!(rig.get(had.id).await.state, State::Adopted, "it is in use");
    let lost = rig.get(waiting.id).await;
    assert_eq!((lost.state, lost.record.given_up), (State::WaitedOut, Some(Reason::PasswordLost)));
    let another = rig.assign(&waits, None).await;
    assert!(another.id != waiting.id && another.state == State::Adopted, "{another:?}");
    let events = worker.ledger.events(waiting.id).await.unwrap();
    let removed = events.iter().find(|event| event.action == "RemoveLostPassword").unwrap();
    assert_eq!((removed.actor.as_str(), removed.remark.as_deref()), ("ann", Some("the disk is gone")));
    let pooled = worker.ledger.pool(&Rig::registry()).await.unwrap();
    assert_eq!((pooled.ready, pooled.in_progress), (2, 0), "the pool is filled anew");
    let filter = Filter { state: Some(State::Pooled), ..Filter::default() };
    let pool = worker.ledger.list(&filter).await.unwrap();
    assert!(pool.iter().all(|credential| credential.has_password));
    rig.check(&[&had, &another, &pool[0], &pool[1]]).await;
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn passwords_are_sealed_anew_and_bound_to_their_account(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (one, other) = (rig.cluster("cls-1"), rig.cluster("cls-2"));
    let worker = rig.worker("one");
    let (one, other) = (rig.assign(&one, None).await, rig.assign(&other, None).await);
    for _turn in 0..12 {
        rig.step(&worker).await;
    }
    let (one, other) = (rig.get(one.id).await, rig.get(other.id).await);
    assert!(one.has_password && other.has_password);
    let before = worker.ledger.password(&one).await.unwrap().unwrap();
    let both = rig.database.ledger(&[2, 1]);
    assert_eq!(both.rekey().await.unwrap().resealed, 2);
    assert_eq!(both.rekey().await.unwrap().resealed, 0);
    assert_eq!(both.keys_in_use().await.unwrap(), [("key-2".to_owned(), 2)].into());
    let new = rig.database.ledger(&[2]);
    assert_eq!(new.password(&one).await.unwrap().unwrap().expose_secret(), before.expose_secret());
    let lost = rig.database.ledger(&[1]);
    let error = lost.password(&one).await.unwrap_err();
    assert!(matches!(error, LedgerError::Unopened { .. }) && !format!("{error} {error:?}").contains(PASSWORD));
    assert_eq!(lost.rekey().await.unwrap().unopened.len(), 2);
    // A password that is moved to another row cannot be opened.
    let mut write = rig.database.database.begin().await.unwrap();
    let swap = format!(
        "UPDATE credentials SET password = (SELECT password FROM credentials WHERE id = '{}') WHERE id = '{}'",
        one.id, other.id
    );
    write.execute(swap, Parameters::default()).await.unwrap();
    write.commit().await.unwrap();
    assert!(matches!(new.password(&other).await, Err(LedgerError::Unopened { .. })));
}
