//! The manifests of `deploy/`: their configuration is valid, and their rights are sufficient and minimal.

use std::collections::BTreeMap;

use adapter::Config;
use emulators::kubernetes::Settings;
use hyperfleet_client::Status;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::rights::{self, Account, AuditLog};

use crate::environment::{Environment, Kind};
use crate::stored;
use crate::world::{World, eventually, is};

const ADAPTER: &str = include_str!("../../../../deploy/adapter.yaml");
const ACCESS: &str = include_str!("../../../../deploy/access.yaml");
const CLUSTER: &str = include_str!("../../../../examples/cluster-access.yaml");

/// Returns the objects of a manifest, moved to the namespaces of a test.
fn objects(manifest: &str, environment: &Environment) -> Vec<Value> {
    let text = manifest
        .replace("hyperfleet-system", &environment.namespace)
        .replace("hyperfleet-pull-secret", &environment.namespace)
        .replace("pullsecret-adapter-access", &access_role(environment))
        .replace("[pullsecret-adapter]", "[adapter]");
    serde_saphyr::from_multiple(&text).unwrap()
}

/// The name of the `ClusterRole` by which the adapter grants access.
fn access_role(environment: &Environment) -> String {
    format!("{}-access", environment.namespace)
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
            "ClusterRole" => {
                let api: Api<ClusterRole> = Api::all(client());
                api.create(&parameters, &serde_json::from_value(object).unwrap()).await.unwrap();
            }
            "ClusterRoleBinding" => {
                let api: Api<ClusterRoleBinding> = Api::all(client());
                api.create(&parameters, &serde_json::from_value(object).unwrap()).await.unwrap();
            }
            // The emulator has no such policies.
            "ValidatingAdmissionPolicy" if environment.server.is_real() => {
                let api: Api<ValidatingAdmissionPolicy> = Api::all(client());
                api.create(&parameters, &serde_json::from_value(object).unwrap()).await.unwrap();
            }
            "ValidatingAdmissionPolicyBinding" if environment.server.is_real() => {
                let api: Api<ValidatingAdmissionPolicyBinding> = Api::all(client());
                api.create(&parameters, &serde_json::from_value(object).unwrap()).await.unwrap();
            }
            "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding"
            | "ConfigMap"
            | "Deployment"
            | "PodDisruptionBudget"
            | "Service" => {}
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
    let config =
        Config::read(Some(text), BTreeMap::new(), &BTreeMap::<&str, &str>::new()).and_then(Config::check).unwrap();
    assert_eq!((config.quota.writes_per_minute, config.namespace.as_str()), (540, "hyperfleet-pull-secret"));
    let account = config.account.unwrap();
    assert_eq!((account.namespace.as_str(), account.name.as_str()), ("hyperfleet-system", "pullsecret-adapter"));
}

/// The Roles in the namespace of the hosted control plane that have a binding of their name: their rules, and whom they are for.
async fn access(environment: &Environment) -> BTreeMap<String, Value> {
    let client = || environment.server.client.clone();
    let roles = Api::<Role>::namespaced(client(), &environment.management).list(&ListParams::default()).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(client(), &environment.management);
    let mut access = BTreeMap::new();
    for role in roles {
        let name = role.metadata.name.unwrap();
        let binding = bindings.get(&name).await.unwrap();
        assert_eq!(binding.role_ref.name, name);
        let subject = binding.subjects.unwrap().remove(0);
        assert_eq!(subject.namespace.as_ref(), Some(&environment.namespace));
        access.insert(subject.name, normal(&json!(role.rules)));
    }
    access
}

/// The access that the example gives by hand.
fn expected_access() -> BTreeMap<String, Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&CLUSTER.replace("cls-123", "cls-1")).unwrap();
    let roles = documents.iter().filter(|document| document["kind"] == "Role");
    roles.map(|role| (role["metadata"]["name"].as_str().unwrap().to_owned(), normal(&role["rules"]))).collect()
}

/// Rules with their verbs in order.
fn normal(rules: &Value) -> Value {
    let mut rules = rules.clone();
    for rule in rules.as_array_mut().unwrap() {
        rule["verbs"].as_array_mut().unwrap().sort_by_key(ToString::to_string);
    }
    rules
}

/// Removes what the test has created outside of its namespaces.
async fn remove_access(environment: &Environment) {
    let (name, parameters) = (access_role(environment), DeleteParams::default());
    let client = || environment.server.client.clone();
    drop(Api::<ClusterRoleBinding>::all(client()).delete(&name, &parameters).await.unwrap());
    drop(Api::<ClusterRole>::all(client()).delete(&name, &parameters).await.unwrap());
    if environment.server.is_real() {
        drop(Api::<ValidatingAdmissionPolicyBinding>::all(client()).delete(&name, &parameters).await.unwrap());
        drop(Api::<ValidatingAdmissionPolicy>::all(client()).delete(&name, &parameters).await.unwrap());
    }
}

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_are_sufficient_and_minimal(#[case] kind: Kind) {
    let Some(environment) = Environment::with(kind, Settings::default()).await else { return };
    let audit = if environment.server.is_real() { AuditLog::here() } else { None };
    apply(&environment, ACCESS).await;
    apply(&environment, ADAPTER).await;
    let world = World::at(environment.with_rights_of("pullsecret-adapter").await).await;
    let (_secret_manager, projects) = stored::secret_manager(emulators::secret_manager::Settings::default()).await;
    let world = World { stores: Some(stored::stores(&projects)), ..world };
    // Two checks: the record is created, then changed.
    let account = format!("{}/pullsecret-adapter", world.environment.namespace);
    let settings = format!("storeCheck: {{interval: 1s}}, kubernetes: {{serviceAccount: {account}}}");
    let adapter = world.replica(&settings, Some("pod-1")).await;
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
    assert_eq!(access(&world.environment).await, expected_access());
    world.api.delete("cls-1").await;
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| is(report, "Finalized", Status::True)).await;
    assert_eq!(access(&world.environment).await, BTreeMap::new());
    adapter.stop().await;
    if let Some(audit) = audit {
        let Environment { namespace, server, .. } = &world.environment;
        let name = || "pullsecret-adapter".to_owned();
        let role = |namespace: &String| rights::Role { namespace: Some(namespace.clone()), name: name() };
        let account = Account { namespace: namespace.clone(), name: name() };
        audit.assert_sufficient(&account);
        audit.assert_minimal(&server.client, &account, &[role(namespace)]).await;
    }
    remove_access(&world.environment).await;
    world.end().await;
}
