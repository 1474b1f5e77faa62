//! Objects of any kind: written as of what was seen, and followed through outages.

use k8s_openapi::api::core::v1::ConfigMap;
use kubernetes::{Fault, Selection, View};
use rstest::rstest;
use serde_json::json;
use tokio::sync::watch;

use crate::place::{Kind, PATIENCE, Place};

impl Place {
    fn map(&self, value: &str) -> ConfigMap {
        let metadata = json!({"name": "map", "namespace": self.namespace, "labels": {"a": "b"}});
        serde_json::from_value(json!({"metadata": metadata, "data": {"key": value}})).unwrap()
    }
}

fn value(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["key"]
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_written_as_of_what_was_seen(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let (cluster, namespace) = (&place.cluster, place.namespace.as_str());
    assert!(cluster.find::<ConfigMap>(namespace, "map").await.unwrap().is_none());
    let first = cluster.create(&place.map("1")).await.unwrap();
    assert_eq!(cluster.create(&place.map("2")).await.unwrap_err().fault, Fault::AlreadyExists);
    let mut wanted = first.clone();
    wanted.data = place.map("2").data;
    let second = cluster.replace(&wanted).await.unwrap();
    assert_eq!(value(&second), "2");
    let again = cluster.replace(&second).await.unwrap();
    assert_eq!(again.metadata.resource_version, second.metadata.resource_version, "nothing has changed");
    assert_eq!(cluster.replace(&wanted).await.unwrap_err().fault, Fault::Changed);
    assert_eq!(cluster.list::<ConfigMap>(namespace, "a=b").await.unwrap().len(), 1);
    assert!(cluster.list::<ConfigMap>(namespace, "a=c").await.unwrap().is_empty());
    cluster.delete(&second).await.unwrap();
    cluster.delete(&second).await.unwrap();
    assert_eq!(cluster.replace(&second).await.unwrap_err().fault, Fault::Changed);
    drop(cluster.create(&place.map("3")).await.unwrap());
    assert_eq!(cluster.delete(&second).await.unwrap_err().fault, Fault::Changed, "it is another one");
}

/// Waits until the view is so.
async fn sees(view: &mut watch::Receiver<View<String>>, expected: impl Fn(&View<String>) -> bool) {
    let seen = tokio::time::timeout(PATIENCE, view.wait_for(|view| expected(view))).await;
    drop(seen.unwrap_or_else(|_| panic!("it has not happened")).unwrap());
}

#[rstest]
#[case::named(Kind::Emulator, Selection::Named("map".to_owned()), &[])]
#[case::labelled(Kind::Emulator, Selection::Labelled("a=b".to_owned()), &[])]
#[case::named_really(Kind::Real, Selection::Named("map".to_owned()), &[])]
#[case::labelled_really(Kind::Real, Selection::Labelled("a=b".to_owned()), &[])]
#[case::cut(Kind::Emulator, Selection::Named("map".to_owned()), &["watch/configmaps:cut(after=1)*2", "watch/configmaps:cut"])]
#[case::too_old(Kind::Emulator, Selection::Named("map".to_owned()), &["watch/configmaps:gone(after=1)*2"])]
#[case::refused_as_too_old(Kind::Emulator, Selection::Named("map".to_owned()), &["watch/configmaps:410(reason=Gone)*2"])]
#[case::unavailable(Kind::Emulator, Selection::Named("map".to_owned()), &["list/configmaps:503*2", "watch/configmaps:500*2"])]
#[tokio::test(flavor = "multi_thread")]
async fn a_view_stays_up_to_date(#[case] kind: Kind, #[case] selection: Selection, #[case] faults: &[&str]) {
    let Some(place) = Place::new(kind).await else { return };
    for fault in faults {
        place.emulator().inject(fault.parse().unwrap());
    }
    let (sender, mut view) = watch::channel(View::default());
    let keep = |map: ConfigMap| value(&map).to_owned();
    let story = async {
        sees(&mut view, |view| view.is_complete && view.objects.is_empty()).await;
        for _ in 0..3 {
            let made = place.cluster.create(&place.map("1")).await.unwrap();
            sees(&mut view, |view| view.objects.get("map").map(String::as_str) == Some("1")).await;
            let mut wanted = made;
            wanted.data = place.map("2").data;
            let changed = place.cluster.replace(&wanted).await.unwrap();
            sees(&mut view, |view| view.objects.get("map").map(String::as_str) == Some("2")).await;
            place.cluster.delete(&changed).await.unwrap();
            sees(&mut view, |view| view.objects.is_empty()).await;
        }
        sees(&mut view, |view| view.trouble.is_none()).await;
    };
    tokio::select! {
        () = place.cluster.follow(&place.namespace, &selection, keep, &sender) => {}
        () = story => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_says_why_it_is_not_complete() {
    let place = Place::new(Kind::Emulator).await.unwrap();
    place.emulator().inject("list/configmaps:403*2".parse().unwrap());
    let (sender, mut view) = watch::channel(View::default());
    let selection = Selection::Named("map".to_owned());
    let story = async {
        sees(&mut view, |view| {
            let trouble = view.trouble.as_deref().unwrap_or_default();
            !view.is_complete && trouble.starts_with("cannot list configmap ") && trouble.contains("permission denied")
        })
        .await;
        sees(&mut view, |view| view.is_complete && view.trouble.is_none()).await;
    };
    tokio::select! {
        () = place.cluster.follow(&place.namespace, &selection, |_: ConfigMap| String::new(), &sender) => {}
        () = story => {}
    }
}
