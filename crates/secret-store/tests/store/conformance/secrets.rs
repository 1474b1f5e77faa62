//! The contract of secrets and their metadata.

use std::collections::BTreeSet;
use std::sync::Arc;

use secret_store::{ErrorKind, Metadata, NewSecret, Permission, Permissions, SecretStore, Version};
use tokio::task::JoinSet;

use super::subject::Subject;
use crate::rig::{new_secret, texts};

pub(super) async fn an_absent_secret_is_not_found(subject: &Subject<impl SecretStore>) {
    assert_eq!(subject.store.find(&subject.secret).await.unwrap(), None);
}

pub(super) async fn a_created_secret_shows_its_labels_and_annotations(subject: &Subject<impl SecretStore>) {
    let new = NewSecret {
        labels: texts(&[("team", "fleet"), ("empty", "")]),
        annotations: texts(&[("hyperfleet.io", "Größe: 1/2\n\"x\""), ("Other_1", "")]),
        replication: subject.replication.clone(),
    };
    subject.store.create(&subject.secret, &new).await.unwrap();
    let Metadata { labels, annotations, etag } = subject.metadata().await;
    assert_eq!((labels, annotations), (new.labels, new.annotations));
    assert!(!etag.is_empty());
}

pub(super) async fn a_secret_is_created_once(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["kept"]).await;
    let before = subject.metadata().await;
    let again = NewSecret { labels: texts(&[]), ..new_secret(subject.replication.clone()) };
    subject.refused(subject.store.create(&subject.secret, &again).await, ErrorKind::AlreadyExists);
    assert_eq!(subject.metadata().await, before);
    subject.reads(1, b"kept").await;
}

pub(super) async fn of_many_creators_one_creates(subject: &Subject<impl SecretStore + 'static>) {
    let mut creators = JoinSet::new();
    for _ in 0..10 {
        let (store, secret) = (Arc::clone(&subject.store), subject.secret.clone());
        let new = new_secret(subject.replication.clone());
        creators.spawn(async move { store.create(&secret, &new).await });
    }
    let (created, refused): (Vec<_>, Vec<_>) = creators.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!(created.len(), 1);
    for refused in refused {
        subject.refused(refused, ErrorKind::AlreadyExists);
    }
}

pub(super) async fn an_update_replaces_labels_and_annotations(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["kept"]).await;
    let labels = texts(&[("cost-center", "7")]);
    for annotations in [texts(&[("other", "Another note"), ("more", "")]), texts(&[])] {
        let wanted = Metadata { labels: labels.clone(), annotations, etag: subject.metadata().await.etag };
        let etag = subject.store.update(&subject.secret, &wanted).await.unwrap();
        assert_ne!(etag, wanted.etag);
        assert_eq!(subject.metadata().await, Metadata { etag, ..wanted });
    }
    subject.reads(1, b"kept").await;
}

pub(super) async fn the_etag_of_an_update_serves_the_next_one(subject: &Subject<impl SecretStore>) {
    subject.create().await;
    let mut metadata = subject.metadata().await;
    for revision in ["a", "b", "c"] {
        metadata.labels = texts(&[("revision", revision)]);
        metadata.etag = subject.store.update(&subject.secret, &metadata).await.unwrap();
    }
    assert_eq!(subject.metadata().await, metadata);
}

pub(super) async fn a_stale_update_changes_nothing(subject: &Subject<impl SecretStore>) {
    subject.create().await;
    let stale = subject.metadata().await;
    let mut current = Metadata { labels: texts(&[("revision", "2")]), ..stale.clone() };
    current.etag = subject.store.update(&subject.secret, &current).await.unwrap();
    subject.refused(subject.store.update(&subject.secret, &stale).await, ErrorKind::Changed);
    assert_eq!(subject.metadata().await, current);
}

pub(super) async fn of_many_updates_at_one_etag_one_is_made(subject: &Subject<impl SecretStore + 'static>) {
    subject.create().await;
    let revision = subject.metadata().await;
    let mut writers = JoinSet::new();
    for writer in 0..10 {
        let (store, secret) = (Arc::clone(&subject.store), subject.secret.clone());
        let metadata = Metadata { labels: texts(&[("writer", &writer.to_string())]), ..revision.clone() };
        writers.spawn(async move {
            let updated = store.update(&secret, &metadata).await;
            updated.map(|etag| Metadata { etag, ..metadata })
        });
    }
    let (mut made, refused): (Vec<_>, Vec<_>) = writers.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    for refused in refused {
        subject.refused(refused, ErrorKind::Changed);
    }
    assert_eq!(subject.metadata().await, made.remove(0).unwrap());
}

pub(super) async fn an_absent_secret_is_not_updated(subject: &Subject<impl SecretStore>) {
    let metadata = Metadata { etag: "1".to_owned(), ..Metadata::default() };
    subject.refused(subject.store.update(&subject.secret, &metadata).await, ErrorKind::NotFound);
}

pub(super) async fn a_deleted_secret_is_gone_with_its_versions(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["gone"]).await;
    let etag = subject.metadata().await.etag;
    assert!(subject.store.delete(&subject.secret, &etag).await.unwrap());
    assert_eq!(subject.store.find(&subject.secret).await.unwrap(), None);
    assert!(matches!(subject.read(1).await, Version::Absent));
    assert!(!subject.store.delete(&subject.secret, &etag).await.unwrap());
}

pub(super) async fn an_absent_secret_is_not_deleted(subject: &Subject<impl SecretStore>) {
    assert!(!subject.store.delete(&subject.secret, "1").await.unwrap());
}

pub(super) async fn a_stale_deletion_deletes_nothing(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["kept"]).await;
    let stale = subject.metadata().await;
    subject.store.update(&subject.secret, &stale).await.unwrap();
    let current = subject.metadata().await;
    subject.refused(subject.store.delete(&subject.secret, &stale.etag).await, ErrorKind::Changed);
    assert_eq!(subject.metadata().await, current);
    subject.reads(1, b"kept").await;
}

pub(super) async fn a_secret_created_again_starts_anew(subject: &Subject<impl SecretStore>) {
    subject.create_with(&["a", "b"]).await;
    assert!(subject.store.delete(&subject.secret, &subject.metadata().await.etag).await.unwrap());
    let bare = NewSecret { labels: texts(&[]), annotations: texts(&[]), replication: subject.replication.clone() };
    subject.store.create(&subject.secret, &bare).await.unwrap();
    let metadata = subject.metadata().await;
    assert!(metadata.labels.is_empty() && metadata.annotations.is_empty());
    assert!(matches!(subject.read(1).await, Version::Absent));
    assert_eq!(subject.add(b"c").await.unwrap().get(), 1);
    subject.reads(1, b"c").await;
}

pub(super) async fn an_etag_does_not_outlive_its_secret(subject: &Subject<impl SecretStore>) {
    subject.create().await;
    let former = subject.metadata().await;
    assert!(subject.store.delete(&subject.secret, &former.etag).await.unwrap());
    subject.create().await;
    subject.refused(subject.store.update(&subject.secret, &former).await, ErrorKind::Changed);
    subject.refused(subject.store.delete(&subject.secret, &former.etag).await, ErrorKind::Changed);
}

pub(super) async fn an_empty_etag_changes_nothing(subject: &Subject<impl SecretStore>) {
    subject.create().await;
    let before = subject.metadata().await;
    subject.refused(subject.store.update(&subject.secret, &Metadata::default()).await, ErrorKind::Changed);
    subject.refused(subject.store.delete(&subject.secret, "").await, ErrorKind::Changed);
    assert_eq!(subject.metadata().await, before);
}

pub(super) async fn no_permission_is_missing(subject: &Subject<impl SecretStore>) {
    subject.create().await;
    let wanted = BTreeSet::from([
        Permission::Find,
        Permission::Update,
        Permission::Delete,
        Permission::AddVersion,
        Permission::ReadVersion,
        Permission::ListVersions,
        Permission::DestroyVersion,
    ]);
    let held = subject.store.permissions(&subject.secret, &wanted).await.unwrap();
    assert_eq!(held, Permissions { missing: BTreeSet::new(), unknown: BTreeSet::new() });
}

pub(super) async fn secrets_are_listed_by_their_labels(subject: &Subject<impl SecretStore>) {
    let create = async |name: &str, labels: &[(&str, &str)]| {
        let new = NewSecret { labels: texts(labels), ..new_secret(subject.replication.clone()) };
        subject.store.create(&name.parse().unwrap(), &new).await.unwrap();
    };
    create("both", &[("managed-by", "fleet"), ("team", "a"), ("other", "x")]).await;
    create("one", &[("managed-by", "fleet"), ("team", "b")]).await;
    create("none", &[]).await;
    let listed = async |labels: &[(&str, &str)]| {
        let listed = subject.store.list(labels, None).await.unwrap();
        assert_eq!(listed.next, None);
        listed.secrets.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(listed(&[("managed-by", "fleet"), ("team", "a")]).await, ["both"]);
    assert_eq!(listed(&[("managed-by", "fleet")]).await, ["both", "one"]);
    assert_eq!(listed(&[("team", "c")]).await, [] as [&str; 0]);
    let both = subject.store.list(&[("team", "a")], None).await.unwrap().secrets.into_values().next().unwrap();
    assert_eq!(Some(both), subject.store.find(&"both".parse().unwrap()).await.unwrap().map(|found| found.metadata));
}
