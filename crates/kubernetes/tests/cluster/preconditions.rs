//! Writes over an observed Secret that another client has changed since.

use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use kubernetes::{ErrorKind, ObservedSecret};
use rstest::rstest;
use serde_json::json;

use crate::rig::{Kind, Rig};
use crate::secrets::{NAME, content, document, secret};

impl Rig {
    /// Deletes the Secret, as another client would.
    async fn removed(&self) {
        drop(self.api::<Secret>().delete(NAME, &DeleteParams::default()).await.unwrap());
    }

    async fn touched(&self) {
        drop(self.merge::<Secret>(NAME, json!({"metadata": {"labels": {"team": "images"}}})).await);
    }

    /// Asserts that no apply, dry or not, is done over that observation.
    async fn assert_changed(&self, observed: &ObservedSecret) {
        let (cluster, key) = (&self.cluster, self.key());
        for dry_run in [true, false] {
            let refused = cluster.apply_secret(&key, &secret("b"), observed, dry_run).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Changed, "{refused}");
        }
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_change_since_the_observation_is_not_overwritten(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let stale = rig.created(&secret("a")).await;
    rig.touched().await;
    let changed = rig.observed().await;
    rig.assert_changed(&stale).await;
    let refused = rig.cluster.delete_secret(&rig.key(), &stale, false).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Changed, "{refused}");
    let observed = rig.observed().await;
    assert_eq!((&observed.resource_version, content(&observed)), (&changed.resource_version, document("a")));
    rig.cluster.delete_secret(&rig.key(), &observed, false).await.unwrap();
    assert!(rig.cluster.find_secret(&rig.key()).await.unwrap().is_none());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn another_secret_of_the_same_name_is_not_written_over(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let gone = rig.created(&secret("a")).await;
    rig.removed().await;
    let other = rig.created(&secret("e")).await;
    assert_ne!(other.uid, gone.uid);
    rig.assert_changed(&gone).await;
    let refused = rig.cluster.delete_secret(&rig.key(), &gone, false).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Changed, "{refused}");
    // With the right version, only the uid differs.
    let impostor = ObservedSecret { resource_version: other.resource_version.clone(), ..gone };
    let refused = rig.cluster.delete_secret(&rig.key(), &impostor, false).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Changed, "{refused}");
    let observed = rig.observed().await;
    assert_eq!((&observed.resource_version, content(&observed)), (&other.resource_version, document("e")));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_has_gone_is_not_created_by_an_apply_and_its_deletion_is_done(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let gone = rig.created(&secret("a")).await;
    rig.removed().await;
    rig.assert_changed(&gone).await;
    for dry_run in [true, false] {
        rig.cluster.delete_secret(&rig.key(), &gone, dry_run).await.unwrap();
    }
    assert!(rig.cluster.find_secret(&rig.key()).await.unwrap().is_none());
}
