//! The images of Pods: those of all kinds of containers, of Pods that have not ended, through several pages.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kubernetes::{ErrorKind, PodImages};
use rstest::rstest;
use serde_json::{Value, json};

use crate::rig::{Kind, Rig, until};

impl Rig {
    /// Creates a Pod, once its namespace takes Pods.
    async fn pod(&self, name: &str, spec: Value) {
        self.large_pod(name, spec, 0).await;
    }

    /// The same, larger by this many KiB.
    async fn large_pod(&self, name: &str, spec: Value, kib: usize) {
        let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "q.io/a:1"}]}});
        pod["spec"]["containers"][0]["env"] = json!([{"name": "LARGE", "value": "x".repeat(kib * 1024)}]);
        pod["spec"].as_object_mut().unwrap().append(&mut spec.as_object().unwrap().clone());
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let create = async || self.api::<Pod>().create(&PostParams::default(), &pod).await.ok().map(drop);
        until("the Pod is created", create).await;
    }

    async fn images(&self) -> Vec<BTreeSet<String>> {
        let mut found = Vec::new();
        let take = |PodImages { namespace, images }: PodImages| {
            if namespace == self.namespace {
                found.push(images);
            }
        };
        self.cluster.images_of_pods(take).await.unwrap();
        found
    }
}

fn set(images: &[&str]) -> BTreeSet<String> {
    images.iter().map(|image| (*image).to_owned()).collect()
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_images_of_all_containers_of_pods_that_have_not_ended(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let early = json!([{"name": "b", "image": "q.io/b@sha256:0000000000000000000000000000000000000000000000000000000000000000"}]);
    rig.pod("one", json!({"initContainers": early})).await;
    rig.pod("two", json!({})).await;
    rig.pod("ended", json!({})).await;
    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    drop(rig.api::<Pod>().patch_status("ended", &PatchParams::default(), &ended).await.unwrap());
    let early = "q.io/b@sha256:0000000000000000000000000000000000000000000000000000000000000000";
    assert_eq!(rig.images().await, [set(&["q.io/a:1", early]), set(&["q.io/a:1"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_read_page_by_page() {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    for number in 0..45 {
        rig.pod(&format!("pod-{number:03}"), json!({})).await;
    }
    let before = rig.emulator().calls().len();
    assert_eq!(rig.images().await.len(), 45);
    let lists = rig.emulator().calls().split_off(before);
    assert_eq!(lists.iter().filter(|call| call.verb == "list").count(), 3);
}

/// An admin who may create Pods cannot end the controller by its memory.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_of_large_pods_is_bounded() {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    for number in 0..20 {
        rig.large_pod(&format!("pod-{number:03}"), json!({}), 250).await;
    }
    assert_eq!(rig.images().await.len(), 20);
    for number in 20..40 {
        rig.large_pod(&format!("pod-{number:03}"), json!({}), 1_000).await;
    }
    let error = rig.cluster.images_of_pods(|_pod| {}).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert_eq!(
        error.to_string(),
        "cannot list pods of all namespaces: the answer is too large (20 pods in a row have more than 16 MiB)"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_permitted_is_named() {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    let stranger = rig.with_token("unknown").await;
    let error = stranger.images_of_pods(|_pod| {}).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated);
    assert!(error.to_string().starts_with("cannot list pods of all namespaces: "), "{error}");
}
