//! The manifests of `deploy/`: their configuration is valid, and their rights are sufficient and minimal.

use std::collections::BTreeMap;

use adapter::Config;
use emulators::kubernetes::Settings;
use hyperfleet_client::Status;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rstest::rstest;
use serde_json::Value;
use testkit::rights::{self, Account, AuditLog};

use crate::environment::{Environment, Kind};
use crate::stored;
use crate::world::{World, eventually, is};

const ADAPTER: &str = include_str!("../../../../deploy/pullsecret-adapter.yaml");
const CLUSTER: &str = include_str!("../../../../deploy/pullsecret-adapter-cluster.yaml");

/// Returns the objects of a manifest, moved to the namespaces of a test.
fn objects(manifest: &str, environment: &Environment) -> Vec<Value> {
    let text = manifest
        .replace("hyperfleet-system", &environment.namespace)
        .replace("hyperfleet-pull-secret", &environment.namespace)
        .replace("clusters-cls-123", &environment.management)
        .replace("[pullsecret-adapter]", "[adapter]");
    serde_saphyr::from_multiple(&text).unwrap()
}

async fn apply(environment: &Environment, manifest: &str) {
    for object in objects(manifest, environment) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let parameters = PostParams::default();
        let client = || environment.server.client.clone();
        match object["kind"].as_str().unwrap() {
            "ServiceAccount" => {
                let api: Api<ServiceAccount> = Api::namespaced(client(), &namespace);
                // The service account of Jobs exists already.
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
            other => panic!("this test cannot create a {other}"),
        }
    }
}

#[test]
fn the_configuration_is_valid() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(ADAPTER).unwrap();
    let map = documents.into_iter().find(|document| document["kind"] == "ConfigMap").unwrap();
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    let text = map.data.unwrap()["adapter.yaml"].clone();
    let plan =
        Config::read(Some(text), BTreeMap::new(), &BTreeMap::<&str, &str>::new()).and_then(Config::plan).unwrap();
    assert_eq!((plan.quota.writes_per_minute, plan.namespace.as_str()), (540, "hyperfleet-pull-secret"));
}

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_are_sufficient_and_minimal(#[case] kind: Kind) {
    let Some(environment) = Environment::with(kind, Settings::default()).await else { return };
    let audit = if environment.server.is_real() { AuditLog::here() } else { None };
    apply(&environment, ADAPTER).await;
    apply(&environment, &CLUSTER.replace("cls-123-pull-secret", "cls-1-pull-secret")).await;
    let world = World::at(environment.with_rights_of("pullsecret-adapter").await).await;
    let (_secret_manager, projects) = stored::secret_manager(emulators::secret_manager::Settings::default()).await;
    let world = World { stores: Some(stored::stores(&projects)), ..world };
    // Two checks: the record is created, then changed.
    let adapter = world.replica("storeCheck: {interval: 1s}", Some("pod-1")).await;
    eventually(async || adapter.count("hyperfleet_adapter_store_checks", "success").await > 2).await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    eventually(async || world.environment.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_none())
        .await;
    world.environment.outputs().delete("cls-1-pull-secret", &DeleteParams::default()).await.unwrap();
    world.publish_event("cls-1").await;
    eventually(async || world.environment.outputs().get_opt("cls-1-pull-secret").await.unwrap().is_some()).await;
    world.until_available("cls-1", 1).await;
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    adapter.stop().await;
    if let Some(audit) = audit {
        let Environment { namespace, management, server, .. } = &world.environment;
        let name = || "pullsecret-adapter".to_owned();
        let role = |namespace: &String| rights::Role { namespace: Some(namespace.clone()), name: name() };
        let account = Account { namespace: namespace.clone(), name: name() };
        audit.assert_sufficient(&account);
        audit.assert_minimal(&server.client, &account, &[role(namespace), role(management)]).await;
    }
    world.end().await;
}
