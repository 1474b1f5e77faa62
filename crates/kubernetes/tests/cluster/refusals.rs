//! Requests that a server refuses; the errors contain no content.

use k8s_openapi::api::core::v1::Secret;
use kubernetes::{ErrorKind, KubernetesError, SecretKey};
use rstest::rstest;
use secrecy::SecretSlice;
use serde_json::json;

use crate::rig::{Kind, Rig};
use crate::secrets::{CANARY, NAME, content, document, secret};

fn assert_refusal(error: &KubernetesError, kind: ErrorKind) {
    let text = format!("{error} {error:?}");
    assert_eq!(error.kind, kind, "{text}");
    assert!(error.to_string().contains(&error.resource) && error.resource.ends_with(NAME), "{text}");
    assert!(!text.contains(CANARY), "{text}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_namespace_is_reported(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let key = SecretKey { namespace: format!("{}-late", rig.namespace), name: NAME.to_owned() };
    let observed = rig.created(&secret(CANARY)).await;
    for dry_run in [true, false] {
        let refused = rig.cluster.create_secret(&key, &secret(CANARY), dry_run).await.unwrap_err();
        assert_refusal(&refused, ErrorKind::NamespaceMissing);
        assert!(refused.hint().is_some());
        let refused = rig.cluster.apply_secret(&key, &secret(CANARY), &observed, dry_run).await.unwrap_err();
        // The observed Secret is gone, which takes precedence.
        assert_refusal(&refused, ErrorKind::Changed);
        rig.cluster.delete_secret(&key, &observed, dry_run).await.unwrap();
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_terminating_namespace_is_reported(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    rig.hold_namespace().await;
    let refused = rig.cluster.create_secret(&rig.key(), &secret(CANARY), false).await;
    rig.release_namespace().await;
    assert_refusal(&refused.unwrap_err(), ErrorKind::NamespaceTerminating);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn another_type_cannot_be_applied_over(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let opaque = rig.put(json!({"type": "Opaque", "stringData": {"k": CANARY}})).await;
    assert_eq!((opaque.kind.as_str(), opaque.content.is_none()), ("Opaque", true));
    let refused = rig.cluster.apply_secret(&rig.key(), &secret(CANARY), &opaque, false).await.unwrap_err();
    assert_refusal(&refused, ErrorKind::Invalid);
    assert_eq!(rig.observed().await.resource_version, opaque.resource_version);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_immutable_secret_keeps_its_content(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let kind = "kubernetes.io/dockerconfigjson";
    let string_data = json!({".dockerconfigjson": document("a")});
    let immutable = rig.put(json!({"type": kind, "immutable": true, "stringData": string_data})).await;
    assert!(immutable.is_immutable);
    let refused = rig.cluster.apply_secret(&rig.key(), &secret(CANARY), &immutable, false).await.unwrap_err();
    assert_refusal(&refused, ErrorKind::Invalid);
    assert_eq!(rig.observed().await.resource_version, immutable.resource_version);
    // Its labels may be changed all the same, and it stays immutable.
    let labelled = rig.applied(&secret("a")).await;
    assert_eq!((labelled.labels["managed-by"].as_str(), labelled.is_immutable), ("us", true));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_no_document_is_refused_and_not_quoted(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    for text in [CANARY.to_owned(), format!("{{\"auths\": {CANARY}"), format!("{{\"{CANARY}\": \u{1}}}")] {
        let mut wrong = secret("a");
        wrong.content = SecretSlice::from(text.into_bytes());
        for dry_run in [true, false] {
            let refused = rig.cluster.create_secret(&rig.key(), &wrong, dry_run).await.unwrap_err();
            assert_refusal(&refused, ErrorKind::Invalid);
        }
    }
    let observed = rig.created(&secret("a")).await;
    let mut wrong = secret("a");
    wrong.content = SecretSlice::from(CANARY.as_bytes().to_vec());
    let refused = rig.cluster.apply_secret(&rig.key(), &wrong, &observed, false).await.unwrap_err();
    assert_refusal(&refused, ErrorKind::Invalid);
    assert_eq!(content(&rig.observed().await), document("a"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_none_and_content_that_is_too_long_are_invalid(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let key = SecretKey { name: format!("A_b-{NAME}"), ..rig.key() };
    let refused = rig.cluster.create_secret(&key, &secret(CANARY), false).await.unwrap_err();
    assert_refusal(&refused, ErrorKind::Invalid);
    let long = secret(&CANARY.repeat(200_000));
    let refused = rig.cluster.create_secret(&rig.key(), &long, false).await.unwrap_err();
    assert_refusal(&refused, ErrorKind::Invalid);
    assert!(rig.api::<Secret>().get_opt(NAME).await.unwrap().is_none());
}
