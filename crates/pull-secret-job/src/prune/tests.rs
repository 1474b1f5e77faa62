//! The rule, and the order of the calls, on a store in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;
use secret_store::{MemoryStore, NewSecret, NewVersion, Replication, Version};
use tokio_util::sync::CancellationToken;

use super::*;

fn number(number: u64) -> VersionNumber {
    VersionNumber::new(number).unwrap()
}

fn record(version: Option<u64>, added: &[u64]) -> Record {
    let added = added.iter().copied().map(number).collect();
    Record { version: version.map(number), added, ..Record::default() }
}

fn versions(states: &[(u64, VersionState)]) -> Vec<VersionSummary> {
    states.iter().map(|(of, state)| VersionSummary { number: number(*of), state: *state }).collect()
}

const LIVE: VersionState = VersionState::Live;
const GONE: VersionState = VersionState::Destroyed;
const OFF: VersionState = VersionState::Disabled;

#[rstest]
#[case::oldest_first(Some(5), &[1, 2, 3, 4, 5], &[], Ok(&[1, 2, 3][..]))]
#[case::not_more_than_kept(Some(2), &[1, 2], &[], Ok(&[][..]))]
#[case::only_our_own(Some(5), &[4, 5], &[], Ok(&[][..]))]
#[case::nothing_newer(Some(2), &[1, 2, 3, 4], &[], Ok(&[1][..]))]
#[case::never_the_current_one(Some(1), &[1, 2, 3, 4], &[], Ok(&[][..]))]
#[case::destroyed_ones_do_not_count(Some(5), &[1, 2, 3, 4, 5], &[(1, GONE), (3, GONE)], Ok(&[2][..]))]
#[case::disabled_ones_count(Some(3), &[1, 2, 3], &[(1, OFF)], Ok(&[1][..]))]
#[case::without_a_record(None, &[1, 2, 3], &[], Err("no record"))]
#[case::current_disabled(Some(5), &[1, 2, 3, 4, 5], &[(5, OFF)], Err("version 5, which is in use, is disabled"))]
#[case::current_destroyed(Some(5), &[1, 2, 3, 4, 5], &[(5, GONE)], Err("version 5, which is in use, is destroyed"))]
#[case::current_not_listed(Some(6), &[1, 2, 3, 4], &[], Err("version 6, which is in use, is not in the list"))]
fn two_are_kept(
    #[case] version: Option<u64>,
    #[case] added: &[u64],
    #[case] other: &[(u64, VersionState)],
    #[case] expected: Result<&[u64], &str>,
) {
    let state = |of: u64| other.iter().find(|(other, _)| *other == of).map_or(LIVE, |(_, state)| *state);
    let listed: Vec<_> = (1..=5).map(|of| (of, state(of))).collect();
    let decision = decide(&record(version, added), &versions(&listed), NonZeroUsize::new(2).unwrap());
    match expected {
        Ok(expected) => {
            let expected: BTreeSet<_> = expected.iter().copied().map(number).collect();
            assert!(matches!(&decision, Decision::Destroy { surplus, .. } if *surplus == expected), "{decision:?}");
        }
        Err(expected) => assert!(matches!(&decision, Decision::Keep(why) if why.contains(expected)), "{decision:?}"),
    }
}

struct Setup {
    store: MemoryStore,
    secret: SecretId,
    budget: Budget,
}

impl Setup {
    /// A secret with five versions, all added by this project, of which the last is in use.
    async fn new() -> Self {
        let (store, secret): (_, SecretId) = (MemoryStore::new(), "s".parse().unwrap());
        let mut annotations = BTreeMap::from([("team".to_owned(), "images".to_owned())]);
        record(Some(5), &[1, 2, 3, 4, 5]).write(&mut annotations);
        let replication = Replication::Automatic { kms_key: None };
        store.create(&secret, &NewSecret { labels: BTreeMap::new(), annotations, replication }).await.unwrap();
        for content in 1..=5_u8 {
            let content = vec![content].into();
            store.add_version(&secret, &NewVersion::without_record(VersionNumber::FIRST, &content)).await.unwrap();
        }
        Self { store, secret, budget: Budget::new(Duration::from_mins(5), CancellationToken::new()) }
    }

    async fn metadata(&self) -> Metadata {
        self.store.find(&self.secret).await.unwrap().unwrap().metadata
    }

    async fn prune(&self, listed: Metadata) -> Pruned {
        let options = Options { retain: NonZeroUsize::new(2).unwrap(), budget: &self.budget };
        prune(&self.store, &self.secret, listed, options).await.unwrap()
    }

    async fn live(&self) -> Vec<u64> {
        let mut live = Vec::new();
        for of in 1..=6 {
            let read = self.store.read_version(&self.secret, number(of)).await.unwrap();
            live.extend(matches!(read, Version::Live(_)).then_some(of));
        }
        live
    }
}

#[tokio::test]
async fn what_is_superseded_is_destroyed_and_forgotten() {
    let setup = Setup::new().await;
    let pruned = setup.prune(setup.metadata().await).await;
    assert_eq!(pruned, Pruned { versions: [1, 2, 3].into(), because: None });
    assert_eq!(setup.live().await, [4, 5]);
    let metadata = setup.metadata().await;
    assert_eq!(Record::read(&metadata.annotations), record(Some(5), &[4, 5]));
    assert_eq!(metadata.annotations["team"], "images");
    assert_eq!(setup.prune(metadata).await, Pruned { versions: BTreeSet::new(), because: None });
}

/// A list may lag behind a run of the Job that has changed the record, or behind a secret that was deleted and created again.
#[tokio::test]
async fn a_record_that_has_changed_is_read_again_before_anything_is_destroyed() {
    let setup = Setup::new().await;
    let listed = setup.metadata().await;
    let mut changed = listed.clone();
    record(Some(2), &[1, 2]).write(&mut changed.annotations);
    setup.store.update(&setup.secret, &changed).await.unwrap();
    assert_eq!(setup.prune(listed).await, Pruned { versions: BTreeSet::new(), because: None });
    assert_eq!(setup.live().await, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_pruning_that_was_killed_is_continued() {
    let setup = Setup::new().await;
    setup.store.destroy_version(&setup.secret, number(1)).await.unwrap();
    let pruned = setup.prune(setup.metadata().await).await;
    assert_eq!(pruned.versions, [2, 3].into());
    assert_eq!(setup.live().await, [4, 5]);
    assert_eq!(Record::read(&setup.metadata().await.annotations).added, [4, 5].map(number).into());
}

/// Jobs may have changed the record at each attempt to take what was destroyed out of it.
#[tokio::test]
async fn destroyed_versions_that_stayed_listed_are_forgotten() {
    let setup = Setup::new().await;
    for of in [1, 2, 3] {
        setup.store.destroy_version(&setup.secret, number(of)).await.unwrap();
    }
    assert_eq!(setup.prune(setup.metadata().await).await, Pruned { versions: BTreeSet::new(), because: None });
    assert_eq!(Record::read(&setup.metadata().await.annotations), record(Some(5), &[4, 5]));
}

#[tokio::test]
async fn nothing_is_destroyed_while_the_version_in_use_cannot_be_read() {
    let setup = Setup::new().await;
    setup.store.disable_version(&setup.secret, number(5)).unwrap();
    let pruned = setup.prune(setup.metadata().await).await;
    assert!(pruned.versions.is_empty() && pruned.because.is_some_and(|because| because.contains("disabled")));
    assert_eq!(setup.live().await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_secret_that_was_deleted_is_left_alone() {
    let setup = Setup::new().await;
    let listed = setup.metadata().await;
    setup.store.delete(&setup.secret, &listed.etag).await.unwrap();
    assert_eq!(setup.prune(listed).await, Pruned::nothing(Some(DELETED.to_owned())));
}
