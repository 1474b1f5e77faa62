//! Events, as `kubectl describe` shows them.

use k8s_openapi::api::core::v1::{ConfigMap, Event, ObjectReference};
use kube::Resource as _;
use kube::api::{DeleteParams, ListParams};
use kubernetes::event::Severity;
use rstest::rstest;
use serde_json::json;

use crate::rig::{Kind, Rig};

impl Rig {
    async fn object(&self, name: &str) -> ObjectReference {
        self.create::<ConfigMap>(json!({"metadata": {"name": name}})).await.object_ref(&())
    }

    /// The Events that `kubectl describe` lists.
    async fn listed(&self, about: &ObjectReference) -> Vec<Event> {
        let uid = about.uid.as_deref().unwrap();
        let fields = ListParams::default().fields(&format!("involvedObject.kind=ConfigMap,involvedObject.uid={uid}"));
        self.api::<Event>().list(&fields).await.unwrap().items
    }
}

const ACTION: &str = "RunJob";
const ENDED: &str = "JobFailed";

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn repeated_ones_are_counted(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (about, other) = (rig.object("a").await, rig.object("b").await);
    let events = rig.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Warning, ACTION, ENDED, "exit code 3").await.unwrap();
    let found = rig.listed(&about).await;
    assert_eq!((found.len(), found[0].count), (1, Some(1)), "{found:#?}");
    for count in [2, 3] {
        events.publish(&about, Severity::Warning, ACTION, ENDED, "exit code 3").await.unwrap();
        let found = rig.listed(&about).await;
        assert_eq!((found.len(), found[0].count), (1, Some(count)), "{found:#?}");
        assert!(found[0].last_timestamp >= found[0].first_timestamp);
    }
    let found = &rig.listed(&about).await[0];
    assert_eq!((found.type_.as_deref(), found.reason.as_deref()), (Some("Warning"), Some("JobFailed")));
    assert_eq!((found.action.as_deref(), found.message.as_deref()), (Some("RunJob"), Some("exit code 3")));
    assert_eq!(found.reporting_component.as_deref(), Some("pullsecret-adapter"));
    assert_eq!((found.involved_object.name.as_deref(), &found.involved_object.uid), (Some("a"), &about.uid));
    assert!(rig.listed(&other).await.is_empty());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn different_ones_are_separate(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (about, other) = (rig.object("a").await, rig.object("b").await);
    let events = rig.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Normal, "RunJob", "JobCompleted", "done").await.unwrap();
    events.publish(&about, Severity::Warning, ACTION, ENDED, "exit code 3").await.unwrap();
    events.publish(&other, Severity::Warning, ACTION, ENDED, "exit code 3").await.unwrap();
    let mut reasons: Vec<_> = rig.listed(&about).await.into_iter().map(|event| event.reason.unwrap()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["JobCompleted", "JobFailed"]);
    assert_eq!(rig.listed(&other).await.len(), 1);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_last_note_is_the_one_that_is_read(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let about = rig.object("a").await;
    let events = rig.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Warning, ACTION, ENDED, "exit code 3").await.unwrap();
    events.publish(&about, Severity::Warning, ACTION, ENDED, "exit code 4").await.unwrap();
    let found = rig.listed(&about).await;
    assert!(found.iter().any(|event| event.message.as_deref() == Some("exit code 4")), "{found:#?}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_removed_is_published_anew(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let about = rig.object("a").await;
    let events = rig.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Warning, ACTION, ENDED, "exit code 3").await.unwrap();
    let name = rig.listed(&about).await[0].metadata.name.clone().unwrap();
    drop(rig.api::<Event>().delete(&name, &DeleteParams::default()).await.unwrap());
    events.publish(&about, Severity::Warning, ACTION, ENDED, "exit code 3").await.unwrap();
    assert_eq!(rig.listed(&about).await.len(), 1);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn one_that_happens_once_is_not_counted(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let about = rig.object("a").await;
    let events = rig.cluster.events("pullsecret-adapter");
    // Longer than the API allows, in characters of two bytes.
    let note = "é".repeat(1_000);
    for _ in 0..2 {
        events.publish_once(&about, Severity::Normal, ACTION, ENDED, &note).await.unwrap();
    }
    let found = rig.listed(&about).await;
    assert_eq!((found.len(), found[0].count), (1, Some(1)), "{found:#?}");
    assert_eq!(found[0].message.as_deref(), Some(&*("é".repeat(500) + "…")));
}
