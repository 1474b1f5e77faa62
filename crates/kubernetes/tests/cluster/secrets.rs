//! Secrets: found, created, applied, deleted; and what happens when somebody else was there meanwhile.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kubernetes::{AppliedSecret, Fault, Form, SecretKey, SeenSecret};
use rstest::rstest;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde_json::{Value, json};

use crate::place::{Kind, Place};

pub(crate) const NAME: &str = "pull";
pub(crate) const CANARY: &str = "c4n4ry";

impl Place {
    pub(crate) fn key(&self) -> SecretKey {
        SecretKey { namespace: self.namespace.clone(), name: NAME.to_owned() }
    }

    /// The Secret as this room sees it.
    pub(crate) async fn seen(&self) -> SeenSecret {
        self.cluster.find_secret(&self.key()).await.unwrap().unwrap()
    }

    pub(crate) async fn created(&self, secret: &AppliedSecret) -> SeenSecret {
        self.cluster.create_secret(&self.key(), secret, false).await.unwrap();
        self.seen().await
    }

    pub(crate) async fn applied(&self, secret: &AppliedSecret) -> SeenSecret {
        let seen = self.seen().await;
        self.cluster.apply_secret(&self.key(), secret, &seen, false).await.unwrap();
        self.seen().await
    }

    /// Puts a Secret there, as somebody else would.
    pub(crate) async fn put(&self, mut secret: Value) -> SeenSecret {
        secret["metadata"] = json!({"name": NAME});
        drop(self.create::<Secret>(secret).await);
        self.seen().await
    }
}

/// A Secret that holds a document with this in it.
pub(crate) fn secret(auth: &str) -> AppliedSecret {
    let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    AppliedSecret {
        labels: pair("managed-by", "us"),
        annotations: pair("example.com/generation", "1"),
        content: SecretSlice::from(document(auth).into_bytes()),
        form: Form::DockerConfigJson,
        owner: None,
    }
}

pub(crate) fn document(auth: &str) -> String {
    json!({"auths": {"registry.example.com": {"auth": auth}}}).to_string()
}

pub(crate) fn content(seen: &SeenSecret) -> String {
    String::from_utf8(seen.content.as_ref().unwrap().expose_secret().to_vec()).unwrap()
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_created_is_found_as_it_was_given(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let key = place.key();
    assert!(place.cluster.find_secret(&key).await.unwrap().is_none());
    let nowhere = SecretKey { namespace: "cluster-nowhere".to_owned(), ..key.clone() };
    assert!(place.cluster.find_secret(&nowhere).await.unwrap().is_none());
    let wanted = secret("a");
    let seen = place.created(&wanted).await;
    assert_eq!((&seen.labels, &seen.annotations), (&wanted.labels, &wanted.annotations));
    assert_eq!((content(&seen), seen.kind.as_str()), (document("a"), "kubernetes.io/dockerconfigjson"));
    assert!(!seen.uid.is_empty() && !seen.resource_version.is_empty() && !seen.is_immutable && !seen.is_going);
    let again = place.cluster.create_secret(&key, &secret("b"), false).await.unwrap_err();
    assert_eq!(again.fault, Fault::AlreadyExists, "{again}");
    let unchanged = place.seen().await;
    assert_eq!((&unchanged.uid, &unchanged.resource_version), (&seen.uid, &seen.resource_version));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_apply_changes_the_secret_once(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let created = place.created(&secret("a")).await;
    let changed = place.applied(&secret("b")).await;
    assert_eq!((content(&changed), &changed.uid), (document("b"), &created.uid));
    assert_ne!(changed.resource_version, created.resource_version);
    // Kubernetes 1.20 changes its bookkeeping of the creator's fields once more.
    let settled = place.applied(&secret("b")).await;
    let same = place.applied(&secret("b")).await;
    assert_eq!(same.resource_version, settled.resource_version);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_added_stays_and_what_they_have_taken_comes_back(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.created(&secret("a")).await;
    let theirs = json!({
        "metadata": {
            "labels": {"managed-by": "them", "team": "images"},
            "annotations": {"example.com/generation": null, "example.com/note": "n"},
        },
        "stringData": {".dockerconfigjson": document("e")},
    });
    drop(place.merge::<Secret>(NAME, theirs).await);
    let seen = place.applied(&secret("a")).await;
    assert_eq!(json!(seen.labels), json!({"managed-by": "us", "team": "images"}));
    assert_eq!(json!(seen.annotations), json!({"example.com/generation": "1", "example.com/note": "n"}));
    assert_eq!(content(&seen), document("a"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_no_longer_applied_goes(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.created(&secret("a")).await;
    let mut more = secret("a");
    more.labels.insert("extra".to_owned(), "x".to_owned());
    assert!(place.applied(&more).await.labels.contains_key("extra"));
    assert!(!place.applied(&secret("a")).await.labels.contains_key("extra"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_change_nothing(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let (cluster, key) = (&place.cluster, place.key());
    cluster.create_secret(&key, &secret("a"), true).await.unwrap();
    assert!(cluster.find_secret(&key).await.unwrap().is_none());
    let created = place.created(&secret("a")).await;
    let again = cluster.create_secret(&key, &secret("b"), true).await.unwrap_err();
    assert_eq!(again.fault, Fault::AlreadyExists);
    cluster.apply_secret(&key, &secret("b"), &created, true).await.unwrap();
    cluster.delete_secret(&key, &created, true).await.unwrap();
    let seen = place.seen().await;
    assert_eq!((&seen.resource_version, content(&seen)), (&created.resource_version, document("a")));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_waits_for_a_finalizer_is_seen_as_going(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.created(&secret("a")).await;
    drop(place.merge::<Secret>(NAME, json!({"metadata": {"finalizers": ["example.com/held"]}})).await);
    let seen = place.seen().await;
    place.cluster.delete_secret(&place.key(), &seen, false).await.unwrap();
    assert!(place.seen().await.is_going);
    drop(place.merge::<Secret>(NAME, json!({"metadata": {"finalizers": null}})).await);
    assert!(place.cluster.find_secret(&place.key()).await.unwrap().is_none());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_content_is_never_printed(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let wanted = secret(CANARY);
    let seen = place.created(&wanted).await;
    assert!(content(&seen).contains(CANARY));
    let printed = format!("{wanted:?} {wanted:#?} {seen:?} {seen:#?}");
    assert!(!printed.contains(CANARY), "{printed}");
    let numbers = format!("{:?}", CANARY.as_bytes());
    assert!(!printed.contains(numbers.trim_matches(['[', ']'])), "{printed}");
}
