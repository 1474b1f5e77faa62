//! The manifests of `deploy/`: their configuration is taken, and their rights are enough and no more.

use std::collections::BTreeMap;

use adapter::Config;
use emulators::kubernetes::{Authorization, Settings};
use hyperfleet_client::Status;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use rstest::rstest;
use serde_json::{Value, json};

use crate::place::{Kind, Place};
use crate::world::{World, eventually, is};

const ADAPTER: &str = include_str!("../../../../deploy/pullsecret-adapter.yaml");
const CLUSTER: &str = include_str!("../../../../deploy/pullsecret-adapter-cluster.yaml");

/// The objects of a manifest, in the places of a test.
fn objects(manifest: &str, place: &Place) -> Vec<Value> {
    let text = manifest
        .replace("hyperfleet-system", &place.namespace)
        .replace("clusters-cls-123", &place.management)
        .replace("[pullsecret-adapter]", "[adapter]");
    serde_saphyr::from_multiple(&text).unwrap()
}

async fn apply(place: &Place, manifest: &str) {
    for object in objects(manifest, place) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let parameters = PostParams::default();
        let client = || place.client.clone();
        match object["kind"].as_str().unwrap() {
            "ServiceAccount" => {
                let api: Api<ServiceAccount> = Api::namespaced(client(), &namespace);
                // That of Jobs is there already.
                let _there = api.create(&parameters, &serde_json::from_value(object).unwrap()).await;
            }
            "Role" => {
                let api: Api<Role> = Api::namespaced(client(), &namespace);
                api.create(&parameters, &serde_json::from_value(object).unwrap()).await.unwrap();
            }
            "RoleBinding" => {
                let api: Api<RoleBinding> = Api::namespaced(client(), &namespace);
                api.create(&parameters, &serde_json::from_value(object).unwrap()).await.unwrap();
            }
            "Namespace" | "ConfigMap" | "Deployment" | "PodDisruptionBudget" => {}
            other => panic!("{other} is not known to this test"),
        }
    }
}

#[test]
fn the_configuration_is_taken() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(ADAPTER).unwrap();
    let map = documents.into_iter().find(|document| document["kind"] == "ConfigMap").unwrap();
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    let text = map.data.unwrap()["adapter.yaml"].clone();
    let plan =
        Config::read(Some(text), BTreeMap::new(), &BTreeMap::<&str, &str>::new()).and_then(Config::plan).unwrap();
    assert_eq!((plan.quota.writes_per_minute, plan.namespace.as_str()), (300, "hyperfleet-system"));
}

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_are_enough_and_no_more(#[case] kind: Kind) {
    let settings = Settings { authorization: Authorization::Rbac, ..Settings::default() };
    let Some(place) = Place::with(kind, settings).await else { return };
    apply(&place, ADAPTER).await;
    apply(&place, &CLUSTER.replace("cls-123-pull-secret", "cls-1-pull-secret")).await;
    let kubeconfig = place.kubeconfig_of("pullsecret-adapter").await;
    let world = World::at(place.with_kubeconfig(kubeconfig)).await;
    let adapter = world.replica("", Some("pod-1")).await;
    world.ready("cls-1").await;
    world.tell("cls-1").await;
    world.until_available("cls-1", 1).await;
    eventually(async || world.place.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_none()).await;
    world.place.outputs().delete("cls-1-pull-secret", &DeleteParams::default()).await.unwrap();
    world.tell("cls-1").await;
    eventually(async || world.place.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_some()).await;
    world.until_available("cls-1", 1).await;
    world.api.delete("cls-1").await;
    world.tell("cls-1").await;
    world.until("cls-1", |told| is(told, "Finalized", Status::True)).await;
    adapter.stop().await;
    let client = world.place.client_of_adapter().await;
    for (verb, resource, namespace) in [
        ("list", "secrets", world.place.namespace.as_str()),
        ("get", "secrets", "kube-system"),
        ("list", "secrets", &world.place.management),
        ("delete", "secrets", &world.place.management),
        ("create", "pods", &world.place.namespace),
        ("get", "nodes", ""),
    ] {
        assert!(!may(&client, verb, resource, namespace).await, "{verb} {resource} in {namespace}");
    }
    world.end().await;
}

async fn may(client: &Client, verb: &str, resource: &str, namespace: &str) -> bool {
    let attributes = json!({"verb": verb, "resource": resource, "namespace": namespace});
    let review = serde_json::from_value(json!({"spec": {"resourceAttributes": attributes}})).unwrap();
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    api.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}
