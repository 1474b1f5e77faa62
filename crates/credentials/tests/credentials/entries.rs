//! Entries of pull secrets in the ledger: since when, until when, made by whom.

use std::time::Duration;

use credentials::credential::ClusterRef;
use credentials::entries::{
    EntryCounts, EntryDigest, EntryDigests, Group, KnownEntry, ObservedEntry, ObservedPullSecret, Since, Validity,
};
use credentials::ledger::{EntryFilter, Ledger, PassKind};
use credentials::state::State;
use jiff::Timestamp;
use rstest::rstest;
use tokio::join;

use crate::database::Kind;
use crate::rig::Rig;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(2_000_000_000 + second).unwrap()
}

fn cluster(id: &str, incarnation: i64) -> ClusterRef {
    ClusterRef { id: id.to_owned(), incarnation }
}

fn entry(host: &str, digest: &str) -> ObservedEntry {
    let digest = EntryDigest { key: "key".to_owned(), digest: digest.to_owned() };
    ObservedEntry { host: host.to_owned(), digest, user: None, validity: Validity::default() }
}

fn observed(cluster: ClusterRef, generation: u32, entries: &[ObservedEntry]) -> ObservedPullSecret {
    ObservedPullSecret { cluster, generation: generation.into(), entries: Some(entries.to_vec()) }
}

fn digests(key: u8) -> EntryDigests {
    EntryDigests::new(vec![key; 32].into())
}

async fn all(ledger: &Ledger) -> Vec<KnownEntry> {
    ledger.entries(&EntryFilter::default()).await.unwrap()
}

/// Each read comes after one at time 0 at generation 2 of `a` with the digest `1`.
#[rstest]
#[case::same(observed(cluster("cls-1", 7), 3, &[entry("a", "1")]), Since::FirstObserved(second(0)))]
#[case::changed(observed(cluster("cls-1", 7), 3, &[entry("a", "2")]), Since::FirstObserved(second(9)))]
#[case::other_incarnation(observed(cluster("cls-1", 8), 3, &[entry("a", "1")]), Since::FirstObserved(second(9)))]
#[case::late(observed(cluster("cls-1", 7), 1, &[entry("a", "2")]), Since::FirstObserved(second(0)))]
#[case::late_incarnation(observed(cluster("cls-1", 6), 9, &[entry("a", "2")]), Since::FirstObserved(second(0)))]
#[case::other_key(
    observed(cluster("cls-1", 7), 3, &[ObservedEntry {
        digest: EntryDigest { key: "new".to_owned(), digest: "9".to_owned() },
        ..entry("a", "")
    }]),
    Since::FirstObserved(second(0))
)]
#[case::states_its_beginning(
    observed(cluster("cls-1", 7), 3, &[ObservedEntry {
        validity: Validity { issued: Some(second(-50)), expires: None },
        ..entry("a", "1")
    }]),
    Since::Made(second(-50))
)]
#[tokio::test]
async fn a_credential_is_as_old_as_its_first_observation(
    #[case] read: ObservedPullSecret,
    #[case] since: Since,
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
) {
    let Some(rig) = Rig::new(kind).await else { return };
    let ledger = rig.database.ledger(&[1]);
    ledger.record_pull_secret(&observed(cluster("cls-1", 7), 2, &[entry("a", "1")]), second(0)).await.unwrap();
    ledger.record_pull_secret(&read, second(9)).await.unwrap();
    let found = all(&ledger).await;
    assert_eq!(found.iter().map(|entry| (entry.host.as_str(), entry.since)).collect::<Vec<_>>(), [("a", since)]);
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn the_credential_of_the_ledger_is_found_by_its_login(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (its, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let credential = rig.assign(&its, None).await;
    rig.until(&worker, &its, credential.id, State::Published).await;
    let record = rig.get(credential.id).await.record;
    let own = ObservedEntry { user: record.login, ..entry("memory.invalid", "1") };
    let others = cluster("cls-2", 7);
    for (of, generation) in [(&its, 2), (&others, 1)] {
        worker
            .ledger
            .record_pull_secret(&observed(of.clone(), generation, std::slice::from_ref(&own)), second(0))
            .await
            .unwrap();
    }
    let found = all(&worker.ledger).await;
    let of = |id: &str| found.iter().find(|entry| entry.cluster == id).unwrap();
    assert_eq!(
        (of("cls-1").credential, of("cls-1").since),
        (Some(credential.id), Since::Made(record.created.unwrap()))
    );
    assert_eq!(
        (of("cls-2").credential, of("cls-2").since),
        (None, Since::FirstObserved(second(0))),
        "it is not the account of cls-2"
    );
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn entries_are_selected_counted_and_forgotten(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let ledger = rig.database.ledger(&[1]);
    let ends = |host: &str, at: i64| ObservedEntry {
        validity: Validity { issued: None, expires: Some(second(at)) },
        ..entry(host, "1")
    };
    let week = 7 * 24 * 3600;
    let reads = [
        observed(cluster("cls-1", 7), 1, &[ends("a", -1), ends("b", week), entry("c", "1")]),
        observed(cluster("cls-2", 7), 1, &[ends("a", week + 1), ends("d", 5)]),
        ObservedPullSecret { entries: None, ..observed(cluster("cls-3", 7), 1, &[]) },
    ];
    for (read, at) in reads.iter().zip([-100, -50, -10]) {
        ledger.record_pull_secret(read, second(at)).await.unwrap();
    }
    let names = async |filter: EntryFilter| {
        let found = ledger.entries(&filter).await.unwrap();
        found.iter().map(|entry| format!("{}/{}", entry.cluster, entry.host)).collect::<Vec<_>>().join(" ")
    };
    let of = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (EntryFilter::default(), "cls-1/a cls-2/d cls-1/b cls-2/a cls-1/c"),
        (EntryFilter { cluster: of("cls-1"), ..EntryFilter::default() }, "cls-1/a cls-1/b cls-1/c"),
        (EntryFilter { host: of("a"), ..EntryFilter::default() }, "cls-1/a cls-2/a"),
        (EntryFilter { expires_before: Some(second(6)), ..EntryFilter::default() }, "cls-1/a cls-2/d"),
        (EntryFilter { since_before: Some(second(-60)), ..EntryFilter::default() }, "cls-1/a cls-1/b cls-1/c"),
        (EntryFilter { host: of("a"), since_before: Some(second(-60)), ..EntryFilter::default() }, "cls-1/a"),
    ] {
        assert_eq!(names(filter.clone()).await, expected, "{filter:?}");
    }
    let elsewhere = Group { number: 5, oldest: Some(second(-100)), expired: 1, soon: 2 };
    let expected = EntryCounts { service: Group::default(), elsewhere, unread: 1 };
    assert_eq!(ledger.entry_counts(second(0)).await.unwrap(), expected);
    let known: Vec<_> = ledger.last_reads(&digests(1)).await.unwrap().into_keys().collect();
    assert_eq!(known, ["cls-1", "cls-2", "cls-3"]);
    ledger.forget_pull_secrets(&["cls-1".to_owned(), "cls-3".to_owned()]).await.unwrap();
    assert_eq!(names(EntryFilter::default()).await, "cls-2/d cls-2/a");
    assert_eq!(ledger.entry_counts(second(0)).await.unwrap().unread, 0);
    // An entry that the pull secret does not have any more.
    ledger.record_pull_secret(&observed(cluster("cls-2", 7), 2, &[entry("d", "1")]), second(1)).await.unwrap();
    assert_eq!(names(EntryFilter::default()).await, "cls-2/d");
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn of_many_replicas_one_makes_a_pass(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (one, two) = (rig.database.replica(), rig.database.replica());
    let pass = async |kind: PassKind, at: i64| {
        let take = async |ledger: &Ledger| ledger.take_pass(kind, Duration::from_mins(5), second(at)).await.unwrap();
        let (one, two) = join!(take(&one), take(&two));
        usize::from(one) + usize::from(two)
    };
    let mut taken = Vec::new();
    for at in [0, 299, 300, 301, 600] {
        taken.push(pass(PassKind::Entries, at).await);
    }
    assert_eq!(taken, [1, 0, 1, 0, 1]);
    assert_eq!(pass(PassKind::Shadow, 601).await, 1, "a pass of another kind is not in the way");
}

/// After a change of the key a pull secret is read again at the same generation, so that the credential after it is observed as new.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn digests_under_a_former_key_are_made_anew(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let ledger = rig.database.ledger(&[1]);
    let under = |key: u8, generation: u32, digest: &str| {
        let digest = EntryDigest { key: digests(key).key_id().to_owned(), digest: digest.to_owned() };
        observed(cluster("cls-1", 7), generation, &[ObservedEntry { digest, ..entry("a", "") }])
    };
    let is_known = async |key: u8| {
        let last_reads = ledger.last_reads(&digests(key)).await.unwrap();
        assert_eq!(last_reads.keys().collect::<Vec<_>>(), ["cls-1"], "it is forgotten only when the cluster is gone");
        last_reads["cls-1"].is_some()
    };
    ledger.record_pull_secret(&under(1, 1, "one"), second(0)).await.unwrap();
    assert!(is_known(1).await && !is_known(2).await);
    ledger.record_pull_secret(&under(2, 1, "uno"), second(5)).await.unwrap();
    assert!(is_known(2).await && !is_known(1).await);
    assert_eq!(all(&ledger).await[0].since, Since::FirstObserved(second(0)));
    ledger.record_pull_secret(&under(2, 2, "due"), second(9)).await.unwrap();
    assert_eq!(all(&ledger).await[0].since, Since::FirstObserved(second(9)));
}

/// Two reads of the same pull secret at once: the rows are those of one of them.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn two_reads_at_once_lose_no_time(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (one, two) = (rig.database.replica(), rig.database.replica());
    one.record_pull_secret(&observed(cluster("cls-1", 7), 1, &[entry("a", "1")]), second(0)).await.unwrap();
    for round in 2..12 {
        let read = observed(cluster("cls-1", 7), round, &[entry("a", "1"), entry("b", &round.to_string())]);
        let (first, second) = join!(one.record_pull_secret(&read, second(1)), two.record_pull_secret(&read, second(1)));
        first.unwrap();
        second.unwrap();
    }
    let found = all(&one).await;
    assert_eq!(found.iter().map(|entry| entry.host.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(found.first().unwrap().since, Since::FirstObserved(second(0)));
}
