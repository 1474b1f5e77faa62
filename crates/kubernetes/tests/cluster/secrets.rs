//! Secrets: found, created, applied, deleted; and the result when another client wrote meanwhile.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kubernetes::{AppliedSecret, ErrorKind, Form, ObservedSecret, SecretKey};
use rstest::rstest;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde_json::{Value, json};

use crate::rig::{Kind, Rig};

pub(crate) const NAME: &str = "pull";
pub(crate) const CANARY: &str = "c4n4ry";

impl Rig {
    pub(crate) fn key(&self) -> SecretKey {
        SecretKey { namespace: self.namespace.clone(), name: NAME.to_owned() }
    }

    /// The Secret as this crate observes it.
    pub(crate) async fn observed(&self) -> ObservedSecret {
        self.cluster.find_secret(&self.key()).await.unwrap().unwrap()
    }

    pub(crate) async fn created(&self, secret: &AppliedSecret) -> ObservedSecret {
        self.cluster.create_secret(&self.key(), secret, false).await.unwrap();
        self.observed().await
    }

    pub(crate) async fn applied(&self, secret: &AppliedSecret) -> ObservedSecret {
        let observed = self.observed().await;
        self.cluster.apply_secret(&self.key(), secret, &observed, false).await.unwrap();
        self.observed().await
    }

    /// Puts a Secret there, as another client would.
    pub(crate) async fn put(&self, mut secret: Value) -> ObservedSecret {
        secret["metadata"] = json!({"name": NAME});
        drop(self.create::<Secret>(secret).await);
        self.observed().await
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

pub(crate) fn content(observed: &ObservedSecret) -> String {
    String::from_utf8(observed.content.as_ref().unwrap().expose_secret().to_vec()).unwrap()
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_created_is_found_as_it_was_given(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let key = rig.key();
    assert!(rig.cluster.find_secret(&key).await.unwrap().is_none());
    let nowhere = SecretKey { namespace: "cluster-nowhere".to_owned(), ..key.clone() };
    assert!(rig.cluster.find_secret(&nowhere).await.unwrap().is_none());
    let desired = secret("a");
    let observed = rig.created(&desired).await;
    assert_eq!((&observed.labels, &observed.annotations), (&desired.labels, &desired.annotations));
    assert_eq!((content(&observed), observed.kind.as_str()), (document("a"), "kubernetes.io/dockerconfigjson"));
    assert!(
        !observed.uid.is_empty()
            && !observed.resource_version.is_empty()
            && !observed.is_immutable
            && !observed.is_terminating
    );
    let again = rig.cluster.create_secret(&key, &secret("b"), false).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::AlreadyExists, "{again}");
    let unchanged = rig.observed().await;
    assert_eq!((&unchanged.uid, &unchanged.resource_version), (&observed.uid, &observed.resource_version));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_apply_changes_the_secret_once(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let created = rig.created(&secret("a")).await;
    let changed = rig.applied(&secret("b")).await;
    assert_eq!((content(&changed), &changed.uid), (document("b"), &created.uid));
    assert_ne!(changed.resource_version, created.resource_version);
    let same = rig.applied(&secret("b")).await;
    assert_eq!(same.resource_version, changed.resource_version);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_added_stays_and_what_they_have_taken_comes_back(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    rig.created(&secret("a")).await;
    let theirs = json!({
        "metadata": {
            "labels": {"managed-by": "them", "team": "images"},
            "annotations": {"example.com/generation": null, "example.com/note": "n"},
        },
        "stringData": {".dockerconfigjson": document("e")},
    });
    drop(rig.merge::<Secret>(NAME, theirs).await);
    let observed = rig.applied(&secret("a")).await;
    assert_eq!(json!(observed.labels), json!({"managed-by": "us", "team": "images"}));
    assert_eq!(json!(observed.annotations), json!({"example.com/generation": "1", "example.com/note": "n"}));
    assert_eq!(content(&observed), document("a"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_no_longer_applied_goes(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    rig.created(&secret("a")).await;
    let mut more = secret("a");
    more.labels.insert("extra".to_owned(), "x".to_owned());
    assert!(rig.applied(&more).await.labels.contains_key("extra"));
    assert!(!rig.applied(&secret("a")).await.labels.contains_key("extra"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_creation_has_set_goes_too_but_not_what_others_have(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let mut more = secret("a");
    more.labels.insert("extra".to_owned(), "x".to_owned());
    more.annotations.insert("extra".to_owned(), "x".to_owned());
    rig.created(&more).await;
    drop(rig.merge::<Secret>(NAME, json!({"metadata": {"labels": {"theirs": "y"}}})).await);
    let applied = rig.applied(&secret("a")).await;
    assert!(!applied.labels.contains_key("extra") && !applied.annotations.contains_key("extra"), "{applied:?}");
    assert_eq!(applied.labels.get("theirs").map(String::as_str), Some("y"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_change_nothing(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, key) = (&rig.cluster, rig.key());
    cluster.create_secret(&key, &secret("a"), true).await.unwrap();
    assert!(cluster.find_secret(&key).await.unwrap().is_none());
    let created = rig.created(&secret("a")).await;
    let again = cluster.create_secret(&key, &secret("b"), true).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::AlreadyExists);
    cluster.apply_secret(&key, &secret("b"), &created, true).await.unwrap();
    cluster.delete_secret(&key, &created, true).await.unwrap();
    let observed = rig.observed().await;
    assert_eq!((&observed.resource_version, content(&observed)), (&created.resource_version, document("a")));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_waits_for_a_finalizer_is_terminating(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    rig.created(&secret("a")).await;
    drop(rig.merge::<Secret>(NAME, json!({"metadata": {"finalizers": ["example.com/held"]}})).await);
    let observed = rig.observed().await;
    rig.cluster.delete_secret(&rig.key(), &observed, false).await.unwrap();
    assert!(rig.observed().await.is_terminating);
    drop(rig.merge::<Secret>(NAME, json!({"metadata": {"finalizers": null}})).await);
    assert!(rig.cluster.find_secret(&rig.key()).await.unwrap().is_none());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_content_is_never_printed(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let desired = secret(CANARY);
    let observed = rig.created(&desired).await;
    assert!(content(&observed).contains(CANARY));
    let printed = format!("{desired:?} {desired:#?} {observed:?} {observed:#?}");
    assert!(!printed.contains(CANARY), "{printed}");
    let numbers = format!("{:?}", CANARY.as_bytes());
    assert!(!printed.contains(numbers.trim_matches(['[', ']'])), "{printed}");
}
