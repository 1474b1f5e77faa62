//! Clusters leave AMS: import, shadow, issue, move, retire, and each way back, with faults and kills.

use std::collections::BTreeMap;

use credentials::ams::{BackError, Finding};
use credentials::decide::ams::{Difference, Obstacle, Phase};
use credentials::ledger::{Filter, LedgerError, RotationRequest};
use credentials::reason::Reason;
use credentials::rotation::ClusterProgress;
use credentials::state::{Action, State};
use database::Parameters;
use emulators::accounts_mgmt::Operation;
use registry_account::{Fault, Login, Operation as Call, Registry as _};
use rstest::rstest;
use secrecy::ExposeSecret as _;

use crate::database::Kind;
use crate::leaving_rig::{HOST, Leaving, OTHER, OTHER_TOKEN};
use crate::world::{Cut, Script};

/// Of so many clusters, one never reports.
const STRAGGLER: &str = "cls-0003";

fn login(username: &str, password: &str) -> Login {
    Login { username: username.to_owned(), password: password.to_owned().into() }
}

#[rstest]
#[case::sqlite(Kind::Sqlite, 8)]
#[case::postgresql(Kind::Postgresql, 8)]
#[case::a_thousand(Kind::Sqlite, 1000)]
#[tokio::test]
async fn a_fleet_goes_through_all_phases(#[case] kind: Kind, #[case] size: usize) {
    let faults = [
        "listCredentials:throttled(retry-after=30s)@2",
        "listCredentials:commit-then-cut@3",
        "listCredentials:insert@4",
        "token:unavailable",
        "getRegistry:internal-error",
        "deleteCredential:commit-then-cut@2",
        "deleteCredential:throttled(retry-after=5s)@4",
        "getCredential:unavailable@3",
    ];
    let Some(leaving) = Leaving::new(kind, size, &faults).await else { return };
    // Two clusters of one account, and one whose telemetry has the same credential.
    let world = &leaving.rig.world;
    let shared = world.clusters.login(&leaving.clusters[0], HOST).unwrap();
    world.clusters.put(&leaving.clusters[1], HOST, shared.clone());
    let telemetry = world.clusters.login(&leaving.clusters[2], HOST).unwrap();
    world.clusters.put(&leaving.clusters[2], "cloud.openshift.com", telemetry.clone());
    let before = leaving.named();

    let imported = leaving.import().await.unwrap();
    assert!(imported.is_proven() && imported.clusters == size, "{:?}", imported.counts);
    let quay = imported.counts.iter().find(|count| count.registry == "Quay_quay.io").unwrap();
    assert!(quay.imported >= size as u64, "the inserted row as well: {quay:?}");
    assert_eq!(leaving.phases().await, [(Phase::Imported, size)].into());
    leaving.compare_for_days().await;
    assert_eq!(leaving.phases().await, [(Phase::Compared, size)].into());

    let issued = leaving.issue().await;
    assert_eq!((issued.credentials.len(), issued.left_out.len()), (size, 0));
    leaving.until_held(size).await;
    assert_eq!(leaving.phases().await, [(Phase::Issued, size)].into());
    assert_eq!(leaving.named(), before, "nothing is published");

    let name = leaving.begin_to_move(u32::try_from(size).unwrap().div_ceil(4)).await;
    leaving.move_all(&name, &[STRAGGLER]).await;
    assert_eq!(leaving.phases().await, [(Phase::Moving, 1), (Phase::Moved, size - 1)].into());
    let failed = leaving.worker.ledger.rotation_members(&name, ClusterProgress::Failed, 10).await.unwrap();
    let failed: Vec<_> = failed.iter().map(|member| (member.cluster.as_str(), member.cause.as_deref())).collect();
    assert_eq!(failed, [(STRAGGLER, Some("NeverReported"))]);
    let straggler = leaving.status().await.remove(STRAGGLER).unwrap();
    assert_eq!(straggler.needs_a_person(), Some(Reason::NeverReported));

    retires_what_is_not_needed(&leaving, &before, &telemetry.username).await;
    assert_eq!(*world.violations.lock().unwrap(), [""; 0]);
}

/// Deletes what AMS has, but for the cluster that never reported and for telemetry's.
async fn retires_what_is_not_needed(leaving: &Leaving, before: &[String], telemetry: &str) {
    leaving.be_quiet();
    let clusters = leaving.status().await;
    let mut obstacles: BTreeMap<&str, Obstacle> = BTreeMap::new();
    for id in clusters.keys() {
        for retired in leaving.retire_of(&clusters, id, false).await.unwrap() {
            assert!(retired.is_deleted != retired.obstacle.is_some(), "{retired:?}");
            obstacles.extend(retired.obstacle.map(|obstacle| (id.as_str(), obstacle)));
        }
    }
    assert_eq!(obstacles, [("cls-0002", Obstacle::StillNamed), (STRAGGLER, Obstacle::NotMoved)].into());
    let left: Vec<String> = leaving.ams.credentials().into_values().map(|row| row.username).collect();
    for kept in [telemetry, &before[3]] {
        assert!(left.iter().any(|user| user == kept), "{kept} is deleted");
    }
    assert!(!left.contains(&before[0]) && !left.contains(&before[4]), "{left:?}");
    assert!(left.iter().filter(|user| user.starts_with("|ams-")).count() == before.len(), "{OTHER} is not taken over");
    let expected = [(Phase::Moving, 1), (Phase::Moved, 1), (Phase::Retired, clusters.len() - 2)];
    assert_eq!(leaving.phases().await, expected.into());
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn what_is_unknown_is_named_and_holds_its_cluster_back(#[case] kind: Kind) {
    let Some(leaving) = Leaving::new(kind, 6, &[]).await else { return };
    let put = |index: usize, host: &str, login| leaving.rig.world.clusters.put(&leaving.clusters[index], host, login);
    let former = leaving.rig.world.clusters.login(&leaving.clusters[1], HOST).unwrap();
    put(0, HOST, login("someone+else", "word-of-a-user"));
    put(1, HOST, login(&former.username, "word-of-a-user"));
    put(2, &format!("https://{HOST}/v1/"), former.clone());
    put(3, "registry.example.com", login("user", "word-of-a-user"));
    let imported = leaving.import().await.unwrap();
    let found: Vec<_> = imported.not_found.iter().map(|one| (one.cluster.as_str(), one.entry.finding)).collect();
    let expected = [("cls-0000", Finding::Unknown), ("cls-0001", Finding::OtherToken), ("cls-0003", Finding::Unknown)];
    assert_eq!((found.as_slice(), imported.is_proven()), (&expected[..], false));
    leaving.compare_for_days().await;
    let different: BTreeMap<String, Difference> = leaving
        .shadow()
        .await
        .different
        .iter()
        .map(|one| (one.cluster.id.clone(), one.differences[0].difference))
        .collect();
    let expected = [
        ("cls-0000".to_owned(), Difference::Foreign),
        ("cls-0001".to_owned(), Difference::OtherToken),
        ("cls-0002".to_owned(), Difference::SeveralSpellings),
    ];
    assert_eq!(different, expected.into(), "an entry that stays is no difference");
    assert_eq!(leaving.phases().await, [(Phase::Imported, 3), (Phase::Compared, 3)].into());
    assert_eq!(leaving.issue().await.left_out, ["cls-0000", "cls-0001", "cls-0002"]);
    // AMS has rotated a token: the next import knows it, and the former one until AMS deletes it.
    let id = leaving.ams.credentials().into_iter().find(|(_, row)| row.username == former.username).unwrap().0;
    leaving.ams.rotate(&id, "word-of-a-user").unwrap();
    let imported = leaving.import().await.unwrap();
    assert!(imported.not_found.iter().all(|one| one.cluster != "cls-0001"), "{imported:?}");
    // A cluster that is gone is forgotten.
    leaving.rig.world.clusters.remove(&leaving.clusters[0]);
    leaving.shadow().await;
    assert!(!leaving.status().await.contains_key("cls-0000"));
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn each_phase_has_its_way_back_until_the_last(#[case] kind: Kind) {
    let Some(leaving) = Leaving::new(kind, 2, &[]).await else { return };
    let before = leaving.named();
    leaving.import().await.unwrap();
    leaving.compare_for_days().await;
    assert!(matches!(leaving.back("cls-0000").await, Err(BackError::NothingIssued(_))));
    leaving.issue().await;
    leaving.until_held(2).await;

    let (ledger, all) = (&leaving.worker.ledger, leaving.worker.ledger.list(&Filter::default()).await.unwrap());
    let (waiting, statement) = (all.first().unwrap().id, leaving.statement());
    let fresh = leaving.rig.sources().fresh(&"hf".parse().unwrap()).unwrap();
    let replaced = ledger.replace(waiting, &fresh, &statement).await;
    assert!(matches!(replaced, Err(LedgerError::Held(id)) if id == waiting), "{replaced:?}");

    // From dual issue: the service's is deleted, and the cluster can get another one.
    leaving.back("cls-0000").await.unwrap();
    assert_eq!(leaving.phases().await, [(Phase::Compared, 1), (Phase::Issued, 1)].into());
    let again = leaving.issue().await;
    leaving.until_held(2).await;
    let own: Vec<_> = leaving.worker.ledger.list(&Filter::default()).await.unwrap();
    let gone = own.iter().find(|one| one.record.given_up == Some(Reason::RolledBack)).unwrap();
    assert!(gone.state >= State::Retiring && again.credentials.iter().all(|one| one.id != gone.id), "{gone:?}");

    // From the waves, before and after the adoption: AMS's entry is put back, and the service's waits.
    let name = leaving.begin_to_move(1).await;
    let refused = RotationRequest::Abort { put_back: true };
    let refused = leaving.worker.ledger.ask(&name, refused, &leaving.statement()).await;
    assert!(matches!(refused, Err(LedgerError::NoPutBack(_))));
    leaving.move_all(&name, &[]).await;
    assert_eq!(leaving.phases().await, [(Phase::Moved, 2)].into());
    assert!(leaving.named().iter().zip(&before).all(|(now, then)| now != then));
    *leaving.rig.world.script.lock().unwrap() = Some(Script { action: Action::Publish, after: 0, cut: Cut::Lost });
    leaving.back("cls-0001").await.unwrap();
    assert_eq!(leaving.named()[1], before[1]);
    assert_eq!(leaving.phases().await, [(Phase::Issued, 1), (Phase::Moved, 1)].into());
    for _turn in 0..20 {
        leaving.rig.step(&leaving.worker).await;
    }
    assert_eq!(leaving.named()[1], before[1], "the service does not publish its own again");
    leaving.shadow().await;
    leaving.be_quiet();
    assert_eq!(leaving.retire("cls-0001", true).await.unwrap()[0].obstacle, Some(Obstacle::NotMoved));

    // The last one has none.
    assert!(leaving.retire("cls-0000", false).await.unwrap()[0].is_deleted);
    let error = leaving.back("cls-0000").await.unwrap_err();
    assert!(error.to_string().contains("there is no way back"), "{error}");
    assert_eq!(leaving.phases().await, [(Phase::Issued, 1), (Phase::Retired, 1)].into());
}

/// Two clusters have one credential of AMS, which is returned; only `cls-0000` is proven to use the service's.
async fn one_of_two_is_moved() -> (Leaving, Login) {
    let leaving = Leaving::new(Kind::Sqlite, 2, &[]).await.unwrap();
    let clusters = &leaving.rig.world.clusters;
    let shared = clusters.login(&leaving.clusters[0], HOST).unwrap();
    clusters.put(&leaving.clusters[1], HOST, shared.clone());
    leaving.import().await.unwrap();
    leaving.compare_for_days().await;
    leaving.issue().await;
    leaving.until_held(2).await;
    let name = leaving.begin_to_move(2).await;
    leaving.move_all(&name, &["cls-0001"]).await;
    leaving.be_quiet();
    (leaving, shared)
}

/// Two clusters have one credential of AMS: it lives until both are moved, and while one of them pulls with it.
#[tokio::test]
async fn a_shared_credential_lives_as_long_as_one_cluster_needs_it() {
    let (leaving, shared) = one_of_two_is_moved().await;
    let world = &leaving.rig.world;
    assert_eq!(leaving.retire("cls-0000", true).await.unwrap()[0].obstacle, Some(Obstacle::Shared));
    leaving.rig.live(&leaving.clusters[1]);
    for _turn in 0..20 {
        leaving.rig.step(&leaving.worker).await;
    }
    leaving.be_quiet();
    // A node that was forgotten still pulls.
    let (repository, source) = ("release/image".parse().unwrap(), "192.0.2.9".parse().unwrap());
    assert!(world.registry.pull(&registry_account::Visit { login: &shared, repository: &repository, source }));
    assert_eq!(leaving.retire("cls-0000", false).await.unwrap()[0].obstacle, Some(Obstacle::StillUsed));
    leaving.be_quiet();
    assert!(leaving.retire("cls-0000", false).await.unwrap()[0].is_deleted);
    assert_eq!(leaving.phases().await, [(Phase::Retired, 2)].into());
}

/// A cluster that `ams.search` does not find any more has the credential still; one that is deleted has not.
#[tokio::test]
async fn a_shared_credential_lives_while_a_cluster_that_is_not_compared_exists() {
    let (leaving, _shared) = one_of_two_is_moved().await;
    let world = &leaving.rig.world;
    leaving.secrets.unlisted.lock().unwrap().insert("cls-0001".to_owned());
    leaving.shadow().await;
    assert_eq!(leaving.phases().await, [(Phase::Moving, 1), (Phase::Moved, 1)].into());
    assert_eq!(leaving.retire("cls-0000", true).await.unwrap()[0].obstacle, Some(Obstacle::Shared));
    world.clusters.remove(&leaving.clusters[1]);
    assert!(leaving.retire("cls-0000", false).await.unwrap()[0].is_deleted);
}

/// A process that dies at any call of AMS leaves nothing that the next one cannot finish.
#[rstest]
#[case::import(Operation::List, 2, true)]
#[case::registry(Operation::GetRegistry, 1, true)]
#[case::before_the_deletion(Operation::Delete, 1, false)]
#[case::look_before_the_deletion(Operation::Get, 1, false)]
#[tokio::test]
async fn a_kill_at_any_call_is_survived(#[case] operation: Operation, #[case] call: usize, #[case] at_import: bool) {
    let leaving = Leaving::new(Kind::Sqlite, 3, &[]).await.unwrap();
    let fault = || format!("{}:hang@{call}", operation.name()).parse().unwrap();
    if at_import {
        leaving.ams.inject(fault());
        tokio::select! {
            result = leaving.import() => panic!("it hangs: {result:?}"),
            () = leaving.ams.wait_for_calls(operation, call) => {}
        }
        assert!(leaving.worker.ledger.ams_import().await.unwrap().is_none(), "half an import is none");
    }
    assert!(leaving.import().await.unwrap().is_proven());
    leaving.compare_for_days().await;
    leaving.issue().await;
    leaving.until_held(3).await;
    let name = leaving.begin_to_move(3).await;
    leaving.move_all(&name, &[]).await;
    leaving.be_quiet();
    if !at_import {
        leaving.ams.inject(fault());
        tokio::select! {
            result = leaving.retire("cls-0000", false) => panic!("it hangs: {result:?}"),
            () = leaving.ams.wait_for_calls(operation, call) => {}
        }
    }
    assert!(leaving.retire("cls-0000", false).await.unwrap()[0].is_deleted);
    assert_eq!(leaving.phases().await, [(Phase::Moved, 2), (Phase::Retired, 1)].into());
}

/// The service compares beside people: an import that is not done, and a second comparison, change nothing of what is known.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_comparison_beside_other_work_starts_no_time_anew(#[case] kind: Kind) {
    let Some(leaving) = Leaving::new(kind, 6, &[]).await else { return };
    leaving.import().await.unwrap();
    leaving.compare_for_days().await;
    leaving.ams.inject("listCredentials:hang@2".parse().unwrap());
    let before = leaving.ams.counts()[Operation::List.name()];
    tokio::select! {
        result = leaving.import() => panic!("it hangs: {result:?}"),
        () = leaving.ams.wait_for_calls(Operation::List, before + 2) => {}
    }
    for _round in 0..10 {
        let (one, two) = tokio::join!(leaving.shadow(), leaving.shadow());
        assert!(one.different.is_empty() && two.different.is_empty(), "{one:?} {two:?}");
    }
    assert_eq!(leaving.phases().await, [(Phase::Compared, 6)].into());
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn no_token_of_ams_is_printed_or_stored_in_clear(#[case] kind: Kind) {
    let Some(leaving) = Leaving::new(kind, 2, &[]).await else { return };
    leaving.rig.world.clusters.put(&leaving.clusters[0], "a.example.com", login("user", "word-of-a-user"));
    let imported = leaving.import().await.unwrap();
    let clusters = leaving.status().await;
    let database = &leaving.rig.database;
    let tables = [
        database.dump("SELECT id, registry, username, token, account, resource FROM ams_credentials", 6).await,
        database.dump("SELECT counts FROM ams_imports", 1).await,
        database.dump("SELECT cluster_id, differences FROM ams_clusters", 2).await,
        database.dump("SELECT cluster_id, host, username, finding, credential FROM ams_entries", 5).await,
    ];
    let debug = format!("{imported:?} {clusters:?} {:?}", leaving.client);
    for text in tables.iter().chain([&debug]) {
        for secret in [OTHER_TOKEN, "password-", "word-of-a-user"] {
            assert!(text.len() > 10 && !text.contains(secret), "{text}");
        }
    }
    // The tokens are bound to their rows, and sealed anew with the passwords.
    let row = leaving.worker.ledger.ams_of_users(1, &["|ams-0".to_owned()]).await.unwrap().remove(0);
    let both = database.ledger(&[2, 1]);
    assert_eq!(both.rekey().await.unwrap().resealed, 4);
    assert_eq!(both.keys_in_use().await.unwrap(), [("key-2".to_owned(), 4)].into());
    let new = database.ledger(&[2]);
    assert_eq!(new.ams_token(&row).await.unwrap().unwrap().expose_secret(), format!("{OTHER_TOKEN}0"));
    let error = database.ledger(&[1]).ams_token(&row).await.unwrap_err();
    assert!(matches!(error, LedgerError::AmsToken(_)) && !format!("{error:?}").contains(OTHER_TOKEN));
    let mut write = database.database.begin().await.unwrap();
    let swap = "UPDATE ams_credentials SET token = (SELECT token FROM ams_credentials WHERE username = '|ams-1')";
    write.execute(swap.to_owned(), Parameters::default()).await.unwrap();
    write.commit().await.unwrap();
    assert!(new.ams_token(&row).await.is_err());
    // A lost key costs nothing that AMS does not have.
    new.remove_lost("key-2", &leaving.statement()).await.unwrap();
    assert!(new.ams_token(&row).await.unwrap().is_none() && new.keys_in_use().await.unwrap().is_empty());
    assert!(!leaving.import().await.unwrap().counts.is_empty());
    leaving.worker.ledger.forget_ams().await.unwrap();
    assert!(leaving.status().await.is_empty() && leaving.worker.ledger.ams_import().await.unwrap().is_none());
    assert!(
        leaving.ams.credentials().len() == 4
            && leaving.rig.world.registry.list(None).await.unwrap().accounts.len() == 2
    );
}

/// The answer to its creation is damaged, so that another account takes its place.
#[tokio::test]
async fn what_takes_the_place_of_a_held_credential_is_held_too() {
    let Some(leaving) = Leaving::new(Kind::Sqlite, 1, &[]).await else { return };
    let before = leaving.named();
    leaving.import().await.unwrap();
    leaving.compare_for_days().await;
    leaving.rig.world.registry.inject(Call::Create, Fault::Garbled);
    leaving.issue().await;
    leaving.until_held(1).await;
    let all = leaving.worker.ledger.list(&Filter::default()).await.unwrap();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!((leaving.named(), leaving.phases().await), (before, [(Phase::Issued, 1)].into()));
}
