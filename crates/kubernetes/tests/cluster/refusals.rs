//! What a server refuses, and that it is told so without any content.

use k8s_openapi::api::core::v1::Secret;
use kubernetes::{Fault, KubernetesError, SecretKey};
use rstest::rstest;
use secrecy::SecretSlice;
use serde_json::json;

use crate::place::{Kind, Place};
use crate::secrets::{CANARY, NAME, content, document, secret};

fn assert_told(error: &KubernetesError, fault: Fault) {
    let text = format!("{error} {error:?}");
    assert_eq!(error.fault, fault, "{text}");
    assert!(error.to_string().contains(&error.object) && error.object.ends_with(NAME), "{text}");
    assert!(!text.contains(CANARY), "{text}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_namespace_is_told(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let key = SecretKey { namespace: format!("{}-late", place.namespace), name: NAME.to_owned() };
    let seen = place.created(&secret(CANARY)).await;
    for dry_run in [true, false] {
        let refused = place.cluster.create_secret(&key, &secret(CANARY), dry_run).await.unwrap_err();
        assert_told(&refused, Fault::NamespaceMissing);
        assert!(refused.hint().is_some());
        let refused = place.cluster.apply_secret(&key, &secret(CANARY), &seen, dry_run).await.unwrap_err();
        // What was seen is gone, and that is told first.
        assert_told(&refused, Fault::Changed);
        place.cluster.delete_secret(&key, &seen, dry_run).await.unwrap();
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_being_deleted_is_told(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.hold_namespace().await;
    let refused = place.cluster.create_secret(&place.key(), &secret(CANARY), false).await;
    place.release_namespace().await;
    assert_told(&refused.unwrap_err(), Fault::NamespaceTerminating);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn another_type_cannot_be_applied_over(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let opaque = place.put(json!({"type": "Opaque", "stringData": {"k": CANARY}})).await;
    assert_eq!((opaque.kind.as_str(), opaque.content.is_none()), ("Opaque", true));
    let refused = place.cluster.apply_secret(&place.key(), &secret(CANARY), &opaque, false).await.unwrap_err();
    assert_told(&refused, Fault::Invalid);
    assert_eq!(place.seen().await.resource_version, opaque.resource_version);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_immutable_secret_keeps_its_content(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let kind = "kubernetes.io/dockerconfigjson";
    let string_data = json!({".dockerconfigjson": document("a")});
    let immutable = place.put(json!({"type": kind, "immutable": true, "stringData": string_data})).await;
    assert!(immutable.is_immutable);
    let refused = place.cluster.apply_secret(&place.key(), &secret(CANARY), &immutable, false).await.unwrap_err();
    assert_told(&refused, Fault::Invalid);
    assert_eq!(place.seen().await.resource_version, immutable.resource_version);
    // Its labels may be changed all the same, and it stays immutable.
    let labelled = place.applied(&secret("a")).await;
    assert_eq!((labelled.labels["managed-by"].as_str(), labelled.is_immutable), ("us", true));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_no_document_is_refused_and_not_quoted(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    for text in [CANARY.to_owned(), format!("{{\"auths\": {CANARY}"), format!("{{\"{CANARY}\": \u{1}}}")] {
        let mut wrong = secret("a");
        wrong.content = SecretSlice::from(text.into_bytes());
        for dry_run in [true, false] {
            let refused = place.cluster.create_secret(&place.key(), &wrong, dry_run).await.unwrap_err();
            assert_told(&refused, Fault::Invalid);
        }
    }
    let seen = place.created(&secret("a")).await;
    let mut wrong = secret("a");
    wrong.content = SecretSlice::from(CANARY.as_bytes().to_vec());
    let refused = place.cluster.apply_secret(&place.key(), &wrong, &seen, false).await.unwrap_err();
    assert_told(&refused, Fault::Invalid);
    assert_eq!(content(&place.seen().await), document("a"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_none_and_content_that_is_too_long_are_invalid(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let key = SecretKey { name: format!("A_b-{NAME}"), ..place.key() };
    let refused = place.cluster.create_secret(&key, &secret(CANARY), false).await.unwrap_err();
    assert_told(&refused, Fault::Invalid);
    let long = secret(&CANARY.repeat(200_000));
    let refused = place.cluster.create_secret(&place.key(), &long, false).await.unwrap_err();
    assert_told(&refused, Fault::Invalid);
    assert!(place.api::<Secret>().get_opt(NAME).await.unwrap().is_none());
}
