//! Writes over what was seen, when somebody else has been there since.

use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use kubernetes::{Fault, SeenSecret};
use rstest::rstest;
use serde_json::json;

use crate::place::{Kind, Place};
use crate::secrets::{NAME, content, document, secret};

impl Place {
    /// Deletes the Secret, as somebody else would.
    async fn removed(&self) {
        drop(self.api::<Secret>().delete(NAME, &DeleteParams::default()).await.unwrap());
    }

    async fn touched(&self) {
        drop(self.merge::<Secret>(NAME, json!({"metadata": {"labels": {"team": "images"}}})).await);
    }

    /// No apply, dry or not, is done over what was seen.
    async fn assert_changed(&self, seen: &SeenSecret) {
        let (cluster, key) = (&self.cluster, self.key());
        for dry_run in [true, false] {
            let refused = cluster.apply_secret(&key, &secret("b"), seen, dry_run).await.unwrap_err();
            assert_eq!(refused.fault, Fault::Changed, "{refused}");
        }
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_change_since_the_look_is_not_written_over(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let stale = place.created(&secret("a")).await;
    place.touched().await;
    let changed = place.seen().await;
    place.assert_changed(&stale).await;
    let refused = place.cluster.delete_secret(&place.key(), &stale, false).await.unwrap_err();
    assert_eq!(refused.fault, Fault::Changed, "{refused}");
    let seen = place.seen().await;
    assert_eq!((&seen.resource_version, content(&seen)), (&changed.resource_version, document("a")));
    place.cluster.delete_secret(&place.key(), &seen, false).await.unwrap();
    assert!(place.cluster.find_secret(&place.key()).await.unwrap().is_none());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn another_secret_of_the_same_name_is_not_written_over(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let gone = place.created(&secret("a")).await;
    place.removed().await;
    let other = place.created(&secret("e")).await;
    assert_ne!(other.uid, gone.uid);
    place.assert_changed(&gone).await;
    let refused = place.cluster.delete_secret(&place.key(), &gone, false).await.unwrap_err();
    assert_eq!(refused.fault, Fault::Changed, "{refused}");
    // Where the version is the right one, the uid alone tells them apart.
    let impostor = SeenSecret { resource_version: other.resource_version.clone(), ..gone };
    let refused = place.cluster.delete_secret(&place.key(), &impostor, false).await.unwrap_err();
    assert_eq!(refused.fault, Fault::Changed, "{refused}");
    let seen = place.seen().await;
    assert_eq!((&seen.resource_version, content(&seen)), (&other.resource_version, document("e")));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_has_gone_is_not_created_by_an_apply_and_its_deletion_is_done(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let gone = place.created(&secret("a")).await;
    place.removed().await;
    place.assert_changed(&gone).await;
    for dry_run in [true, false] {
        place.cluster.delete_secret(&place.key(), &gone, dry_run).await.unwrap();
    }
    assert!(place.cluster.find_secret(&place.key()).await.unwrap().is_none());
}
