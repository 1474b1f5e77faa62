//! Events, as those see them who describe an object.

use k8s_openapi::api::core::v1::{ConfigMap, Event, ObjectReference};
use kube::Resource as _;
use kube::api::{DeleteParams, ListParams};
use kubernetes::event::Severity;
use rstest::rstest;
use serde_json::json;

use crate::place::{Kind, Place};

impl Place {
    async fn object(&self, name: &str) -> ObjectReference {
        self.create::<ConfigMap>(json!({"metadata": {"name": name}})).await.object_ref(&())
    }

    /// What `kubectl describe` lists.
    async fn told(&self, about: &ObjectReference) -> Vec<Event> {
        let uid = about.uid.as_deref().unwrap();
        let fields = ListParams::default().fields(&format!("involvedObject.kind=ConfigMap,involvedObject.uid={uid}"));
        self.api::<Event>().list(&fields).await.unwrap().items
    }
}

const ENDED: (&str, &str) = ("RunJob", "JobFailed");

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn repeated_ones_are_counted(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let (about, other) = (place.object("a").await, place.object("b").await);
    let events = place.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Warning, ENDED, "exit code 3").await.unwrap();
    let told = place.told(&about).await;
    assert_eq!((told.len(), told[0].count), (1, Some(1)), "{told:#?}");
    for count in [2, 3] {
        events.publish(&about, Severity::Warning, ENDED, "exit code 3").await.unwrap();
        let told = place.told(&about).await;
        assert_eq!((told.len(), told[0].count), (1, Some(count)), "{told:#?}");
        assert!(told[0].last_timestamp >= told[0].first_timestamp);
    }
    let told = &place.told(&about).await[0];
    assert_eq!((told.type_.as_deref(), told.reason.as_deref()), (Some("Warning"), Some("JobFailed")));
    assert_eq!((told.action.as_deref(), told.message.as_deref()), (Some("RunJob"), Some("exit code 3")));
    assert_eq!(told.reporting_component.as_deref(), Some("pullsecret-adapter"));
    assert_eq!((told.involved_object.name.as_deref(), &told.involved_object.uid), (Some("a"), &about.uid));
    assert!(place.told(&other).await.is_empty());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn different_ones_are_told_apart(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let (about, other) = (place.object("a").await, place.object("b").await);
    let events = place.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Normal, ("RunJob", "JobCompleted"), "done").await.unwrap();
    events.publish(&about, Severity::Warning, ENDED, "exit code 3").await.unwrap();
    events.publish(&other, Severity::Warning, ENDED, "exit code 3").await.unwrap();
    let mut reasons: Vec<_> = place.told(&about).await.into_iter().map(|event| event.reason.unwrap()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["JobCompleted", "JobFailed"]);
    assert_eq!(place.told(&other).await.len(), 1);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_last_note_is_the_one_that_is_read(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let about = place.object("a").await;
    let events = place.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Warning, ENDED, "exit code 3").await.unwrap();
    events.publish(&about, Severity::Warning, ENDED, "exit code 4").await.unwrap();
    let told = place.told(&about).await;
    assert!(told.iter().any(|event| event.message.as_deref() == Some("exit code 4")), "{told:#?}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_removed_is_told_anew(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let about = place.object("a").await;
    let events = place.cluster.events("pullsecret-adapter");
    events.publish(&about, Severity::Warning, ENDED, "exit code 3").await.unwrap();
    let name = place.told(&about).await[0].metadata.name.clone().unwrap();
    drop(place.api::<Event>().delete(&name, &DeleteParams::default()).await.unwrap());
    events.publish(&about, Severity::Warning, ENDED, "exit code 3").await.unwrap();
    assert_eq!(place.told(&about).await.len(), 1);
}
