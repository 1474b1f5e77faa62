//! The contract of versions and their content.

use std::collections::BTreeMap;
use std::sync::Arc;

use daemon::retry::Transient as _;
use secret_store::{
    Adds, ErrorKind, LiveVersion, NewVersion, Records, SecretStore, Version, VersionNumber, VersionState,
    VersionSummary,
};
use tokio::task::JoinSet;

use super::subject::{Subject, record_of};
use crate::rig::{bytes, number};

pub(super) async fn versions_are_numbered_from_one(subject: &Subject<impl SecretStore>) {
    subject.create().await;
    for expected in 1..=3 {
        assert_eq!(subject.add(b"content").await.unwrap().get(), expected);
    }
}

pub(super) async fn every_content_is_read_as_it_was_added(subject: &Subject<impl SecretStore>) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let contents: [&[u8]; 6] =
        [b"{\"auths\":{}}", b" \r\n ", &[0], &[0xff, 0xfe], "gr\u{f6}\u{df}e".as_bytes(), &every_byte];
    subject.create().await;
    for content in contents {
        let added = subject.add(content).await.unwrap();
        subject.reads(added.get(), content).await;
    }
    subject.reads(1, b"{\"auths\":{}}").await;
}

pub(super) async fn the_largest_content_fits<S: SecretStore>(subject: &Subject<S>) {
    let size = subject.store.capabilities().max_content_bytes;
    // Azure counts content that is not UTF-8 as it is encoded.
    let byte = if size == 64 * 1024 { 0xa5 } else { b'x' };
    subject.create().await;
    let largest = vec![byte; size];
    subject.add(&largest).await.unwrap();
    subject.reads(1, &largest).await;
}

pub(super) async fn content_of_the_wrong_size_is_refused<S: SecretStore>(subject: &Subject<S>) {
    subject.create().await;
    for size in [subject.store.capabilities().max_content_bytes + 1, 0] {
        let refused = subject.add(&vec![b'x'; size]).await;
        assert!(refused.as_ref().is_err_and(|error| !error.is_transient()), "{size} bytes: {refused:?}");
        subject.refused(refused, ErrorKind::Invalid);
    }
    assert_eq!(subject.store.list_versions(&subject.secret).await.unwrap(), []);
}

pub(super) async fn numbers_without_a_version_are_absent(subject: &Subject<impl SecretStore>) {
    assert!(matches!(subject.read(1).await, Version::Absent), "there is no secret");
    subject.create().await;
    assert!(matches!(subject.read(1).await, Version::Absent), "there is no version");
    subject.add(b"content").await.unwrap();
    for beyond in [2, i64::MAX.unsigned_abs()] {
        assert!(matches!(subject.read(beyond).await, Version::Absent), "{beyond}");
    }
    subject.reads(1, b"content").await;
}

pub(super) async fn nothing_is_added_to_an_absent_secret(subject: &Subject<impl SecretStore>) {
    subject.refused(subject.add(b"content").await, ErrorKind::NotFound);
    assert_eq!(subject.store.find(&subject.secret).await.unwrap(), None);
}

pub(super) async fn versions_are_listed_newest_first<S: SecretStore>(subject: &Subject<S>) {
    let count = subject.store.capabilities().versions_kept.unwrap_or(30).min(30);
    subject.create_with(&vec!["content"; count]).await;
    let newest = count as u64;
    subject.destroy(5).await.unwrap();
    subject.disable(newest).await;
    let state = |number| match number {
        5 => VersionState::Destroyed,
        number if number == newest => VersionState::Disabled,
        _ => VersionState::Live,
    };
    let expected: Vec<_> =
        (1..=newest).rev().map(|version| VersionSummary { number: number(version), state: state(version) }).collect();
    assert_eq!(subject.store.list_versions(&subject.secret).await.unwrap(), expected);
}

pub(super) async fn a_secret_without_versions_lists_none(subject: &Subject<impl SecretStore>) {
    subject.create().await;
    assert_eq!(subject.store.list_versions(&subject.secret).await.unwrap(), []);
}

pub(super) async fn an_absent_secret_lists_nothing(subject: &Subject<impl SecretStore>) {
    subject.refused(subject.store.list_versions(&subject.secret).await, ErrorKind::NotFound);
}

pub(super) async fn a_disabled_version_is_not_read(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["a", "b"]).await;
    subject.disable(2).await;
    assert!(matches!(subject.read(2).await, Version::Disabled));
    subject.reads(1, b"a").await;
    assert_eq!(subject.add(b"c").await.unwrap().get(), 3);
}

pub(super) async fn a_destroyed_version_is_gone_for_good(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["a", "b"]).await;
    for _ in 0..2 {
        subject.destroy(1).await.unwrap();
        assert!(matches!(subject.read(1).await, Version::Destroyed));
    }
    subject.reads(2, b"b").await;
}

pub(super) async fn a_destroyed_number_is_not_given_again(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["a", "b"]).await;
    subject.destroy(2).await.unwrap();
    assert_eq!(subject.add(b"c").await.unwrap().get(), 3);
    assert!(matches!(subject.read(2).await, Version::Destroyed));
}

pub(super) async fn a_disabled_version_can_be_destroyed(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["a"]).await;
    subject.disable(1).await;
    subject.destroy(1).await.unwrap();
    assert!(matches!(subject.read(1).await, Version::Destroyed));
}

pub(super) async fn an_absent_version_is_not_destroyed(subject: &Subject<impl SecretStore>) {
    subject.refused(subject.destroy(1).await, ErrorKind::NotFound);
    subject.create_with(&["a"]).await;
    subject.refused(subject.destroy(2).await, ErrorKind::NotFound);
    subject.reads(1, b"a").await;
}

pub(super) async fn of_many_adders_all_get_a_number_or_one_does<S: SecretStore + 'static>(subject: &Subject<S>) {
    subject.create().await;
    let mut adders = JoinSet::new();
    for adder in 0..20_u8 {
        let (store, secret) = (Arc::clone(&subject.store), subject.secret.clone());
        adders.spawn(async move {
            let content = bytes(&[adder]);
            let new = NewVersion::without_record(VersionNumber::FIRST, &content);
            store.add_version(&secret, &new).await.map(|version| (version.get(), adder))
        });
    }
    let (added, refused): (Vec<_>, Vec<_>) = adders.join_all().await.into_iter().partition(Result::is_ok);
    let mut added: Vec<_> = added.into_iter().flatten().collect();
    added.sort_unstable();
    let expected = match subject.store.capabilities().adds {
        Adds::Open => 20,
        Adds::Exclusive => 1,
    };
    assert!(added.iter().map(|(version, _)| *version).eq(1..=expected), "{added:?}");
    for refused in refused {
        subject.refused(refused, ErrorKind::Changed);
    }
    for (version, adder) in added {
        subject.reads(version, &[adder]).await;
    }
}

pub(super) async fn the_same_version_is_added_once_where_the_number_is_stated<S: SecretStore>(subject: &Subject<S>) {
    subject.create_with(&["a"]).await;
    let again = subject.add_as(1, b"a").await.unwrap().get();
    let expected = match subject.store.capabilities().adds {
        Adds::Open => 2,
        Adds::Exclusive => 1,
    };
    assert_eq!(again, expected);
    assert_eq!(subject.store.list_versions(&subject.secret).await.unwrap().len() as u64, expected);
}

pub(super) async fn a_number_that_is_not_the_next_one_is_not_given<S: SecretStore>(subject: &Subject<S>) {
    subject.create_with(&["a", "b"]).await;
    for taken_or_beyond in [1, 2, 4] {
        let added = subject.add_as(taken_or_beyond, b"c").await;
        match subject.store.capabilities().adds {
            Adds::Open => assert!(added.is_ok_and(|number| number.get() > 2)),
            Adds::Exclusive => {
                subject.refused(added, ErrorKind::Changed);
                assert!(matches!(subject.read(3).await, Version::Absent));
            }
        }
    }
    subject.reads(1, b"a").await;
    subject.reads(2, b"b").await;
}

pub(super) async fn a_record_is_read_with_its_version_where_versions_have_one<S: SecretStore>(subject: &Subject<S>) {
    subject.create_with(&["a", "b"]).await;
    for (version, content) in [(1, b"a"), (2, b"b")] {
        let Version::Live(LiveVersion { record, .. }) = subject.read(version).await else { panic!("{version}") };
        let expected = match subject.store.capabilities().records {
            Records::UnderEtag => BTreeMap::new(),
            Records::WithVersion => record_of(content),
        };
        assert_eq!(record, expected);
    }
}

/// States and stale etags are recognised by the store's message, which quote the secret's name and are cut.
pub(super) async fn the_longest_name_hides_no_state(subject: &Subject<impl SecretStore>) {
    let (store, secret) = (&subject.store, "s".repeat(255).parse().unwrap());
    store.create(&secret, &crate::rig::new_secret(subject.replication.clone())).await.unwrap();
    let stale = store.find(&secret).await.unwrap().unwrap().metadata;
    store.update(&secret, &stale).await.unwrap();
    assert_eq!(store.update(&secret, &stale).await.unwrap_err().kind, ErrorKind::Changed);
    let content = bytes(b"content");
    let added = store.add_version(&secret, &NewVersion::without_record(VersionNumber::FIRST, &content)).await.unwrap();
    for _ in 0..2 {
        store.destroy_version(&secret, added).await.unwrap();
        assert!(matches!(store.read_version(&secret, added).await.unwrap(), Version::Destroyed));
    }
}

pub(super) async fn the_newest_version_is_known_by_number_and_state(subject: &Subject<impl SecretStore>) {
    let newest = async || {
        let newest = subject.store.newest_version(&subject.secret).await.unwrap();
        newest.map(|VersionSummary { number, state }| (number.get(), state))
    };
    assert_eq!(newest().await, None, "there is no secret");
    subject.create().await;
    assert_eq!(newest().await, None, "there is no version");
    for content in [b"1", b"2", b"3"] {
        subject.add(content).await.unwrap();
    }
    assert_eq!(newest().await, Some((3, VersionState::Live)));
    subject.disable(3).await;
    assert_eq!(newest().await, Some((3, VersionState::Disabled)));
    subject.destroy(3).await.unwrap();
    assert_eq!(newest().await, Some((3, VersionState::Destroyed)), "a destroyed version stays the newest");
    subject.add(b"4").await.unwrap();
    assert_eq!(newest().await, Some((4, VersionState::Live)));
}
