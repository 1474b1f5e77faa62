//! Configurations that choose the secret store by the provider of a resource.

use hyperfleet_client::{Resource, View};
use serde_json::{Value, json};

use super::*;

const ALL: &str = "{byProvider: {gcp: google, aws: aws, azure: azure, baremetal: openbao}, aws: {region: eu-west-1}, \
                   azure: {vaultUrl: 'https://fleet.vault.azure.net'}, vault: {address: 'https://v:8200'}}";

/// A configuration with this `spec.secretStore`, and this in `spec`.
fn with(store: &str, further: &str) -> String {
    in_vault("", further).replace("{type: vault, vault: {}}", store)
}

fn view(spec: &Value) -> View {
    let resource: Resource =
        serde_json::from_value(json!({"id": "cls-1", "kind": "Cluster", "name": "one", "generation": 1, "spec": spec}))
            .unwrap();
    View::of(&resource)
}

#[rstest]
#[case::google(json!({"provider": "gcp"}), Ok(StoreKind::Google))]
#[case::aws(json!({"provider": "aws"}), Ok(StoreKind::Aws))]
#[case::azure(json!({"provider": "azure"}), Ok(StoreKind::Azure))]
#[case::another_spelling_of_the_store(json!({"provider": "baremetal"}), Ok(StoreKind::Vault))]
#[case::unknown(
    json!({"provider": "oracle"}),
    Err("the adapter's spec.secretStore.byProvider has no store for spec.provider \"oracle\"")
)]
#[case::letter_case(
    json!({"provider": "AWS"}),
    Err("the adapter's spec.secretStore.byProvider has no store for spec.provider \"AWS\"")
)]
#[case::blanks(
    json!({"provider": " aws"}),
    Err("the adapter's spec.secretStore.byProvider has no store for spec.provider \" aws\"")
)]
#[case::no_text(
    json!({"provider": ["aws"]}),
    Err("spec.provider is not a string; the adapter's spec.secretStore.byProvider selects by it")
)]
#[case::none(
    json!({}),
    Err("spec.provider is not a string; the adapter's spec.secretStore.byProvider selects by it")
)]
#[case::null(
    json!({"provider": null}),
    Err("spec.provider is not a string; the adapter's spec.secretStore.byProvider selects by it")
)]
fn the_provider_of_a_resource_chooses_its_store(#[case] spec: Value, #[case] expect: Result<StoreKind, &str>) {
    let config = read(&with(ALL, "")).unwrap();
    let found = config.stores.of(&view(&spec)).map(JobStore::kind);
    assert_eq!(found, expect.map_err(str::to_owned));
}

#[test]
fn the_template_has_the_built_in_variables_of_all_named_stores() {
    let names = |store: &str| {
        let config = read(&with(store, "")).unwrap();
        config.bindings.iter().map(|binding| binding.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let of_all = "CLUSTER_ID CLUSTER_NAME GENERATION GCP_PROJECT_ID SECRET_NAME REPLICATION_POLICY MANAGEMENT_NAMESPACE \
                  K8S_SECRET_NAME PULL_SECRET_FILE";
    assert_eq!(names(ALL), of_all);
    let without_google = "{byProvider: {a: vault}, vault: {address: 'https://v:8200'}}";
    assert_eq!(names(without_google), of_all.replace("GCP_PROJECT_ID ", "").replace("REPLICATION_POLICY ", ""));
    assert_eq!(read(&with(ALL, "")).unwrap().project_variable.as_deref(), Some("GCP_PROJECT_ID"));
    assert_eq!(read(&with(without_google, "")).unwrap().project_variable, None);
}

#[rstest]
#[case::empty("{byProvider: {}}", "spec.secretStore.byProvider: names no provider, so no pull secret could be stored")]
#[case::no_mapping("{byProvider: [aws]}", "spec.secretStore.byProvider: has the wrong form")]
#[case::unknown_store(
    "{byProvider: {gcp: google, aws: hunter2}}",
    "spec.secretStore.byProvider.aws: must be one of `google`, `openbao`, `vault`, `aws`, `azure`"
)]
#[case::type_as_well(
    "{type: google, byProvider: {gcp: google}}",
    "spec.secretStore.byProvider: contradicts spec.secretStore.type google: leave out one of them"
)]
#[case::other_type_as_well(
    "{type: vault, byProvider: {gcp: google}, vault: {address: 'https://v:8200'}}",
    "spec.secretStore.byProvider: contradicts spec.secretStore.type vault: leave out one of them"
)]
#[case::every_fault_at_once(
    "{byProvider: {a: aws, b: azure, c: vault}, folder: a//b, vault: {mount: ../x}}",
    "spec.secretStore.folder: must be parts of A-Z, a-z, 0-9, '.', '_' and '-' with '/' between them\n\
     spec.secretStore.vault.address: missing; set HYPERFLEET_ADAPTER_SECRET_STORE_VAULT_ADDRESS or spec.secretStore.vault.address\n\
     spec.secretStore.vault.mount: must be parts of A-Z, a-z, 0-9, '.', '_' and '-' with '/' between them\n\
     spec.secretStore.aws.region: missing; set HYPERFLEET_ADAPTER_SECRET_STORE_AWS_REGION or spec.secretStore.aws.region\n\
     spec.secretStore.azure.vaultUrl: missing; set HYPERFLEET_ADAPTER_SECRET_STORE_AZURE_VAULT_URL or spec.secretStore.azure.vaultUrl"
)]
#[case::blocks_of_no_provider(
    "{byProvider: {gcp: google}, folder: f, vault: {mount: kv}, aws: {region: eu-west-1}, azure: {vaultUrl: 'https://v'}}",
    "spec.secretStore.vault: has no effect without vault in spec.secretStore.byProvider or mirror\n\
     spec.secretStore.aws: has no effect without aws in spec.secretStore.byProvider or mirror\n\
     spec.secretStore.azure: has no effect without azure in spec.secretStore.byProvider or mirror\n\
     spec.secretStore.folder: has no effect without vault or aws in spec.secretStore.byProvider or mirror"
)]
fn maps_that_are_incomplete_or_contradictory_are_refused(#[case] store: &str, #[case] expect: &str) {
    assert_eq!(faults(&with(store, "")), expect);
}

#[rstest]
#[case::project(
    with(
        "{byProvider: {a: aws}, aws: {region: eu-west-1}}",
        "  limits: {projectVariable: A}\n  jobTemplate: {env: [{name: A, value: b}]}"
    ),
    "spec.limits.projectVariable: has no effect without google in spec.secretStore.byProvider"
)]
#[case::adapter(
    with("{byProvider: {a: google}}", "").replace("pullsecret", "validation") + "  jobTemplate: {image: i}",
    "spec.secretStore: has no effect without spec.adapterType pullsecret"
)]
#[case::store(
    with(ALL, "  jobTemplate: {env: [{name: SECRET_STORE, value: vault}]}"),
    "spec.jobTemplate.env[0]: name: the variable follows from spec.secretStore.type or byProvider: set that instead"
)]
#[case::identity(
    with(
        ALL,
        "  jobTemplate: {env: [{name: VAULT_ROLE, from: [spec.a]}, {name: AWS_ROLE_ARN, from: [spec.a]}, \
               {name: AZURE_CLIENT_ID, from: [spec.a]}, {name: SECRET_MANAGER_EMULATOR_HOST, from: [spec.a]}]}"
    ),
    "spec.jobTemplate.env[0]: must come from metadata.id, metadata.tenancy or status, as everything else is set by the resource's \
     author\n\
     spec.jobTemplate.env[1]: must come from metadata.id, metadata.tenancy or status, as everything else is set by the resource's \
     author\n\
     spec.jobTemplate.env[2]: must come from metadata.id, metadata.tenancy or status, as everything else is set by the resource's \
     author\n\
     spec.jobTemplate.env[3]: must come from metadata.id, metadata.tenancy or status, as everything else is set by the resource's \
     author"
)]
fn other_settings_are_held_to_all_named_stores(#[case] text: String, #[case] expect: &str) {
    assert_eq!(faults(&text), expect);
}

/// A variable of the environment is the same setting.
#[test]
fn a_variable_that_names_the_store_contradicts_a_map_too() {
    let environment = BTreeMap::from([("HYPERFLEET_ADAPTER_SECRET_STORE_TYPE", "aws")]);
    let text = with("{byProvider: {a: aws}, aws: {region: eu-west-1}}", "");
    let faults = Config::read(Some(text), BTreeMap::new(), &environment).and_then(Config::check).unwrap_err();
    assert_eq!(faults, ["spec.secretStore.byProvider: contradicts spec.secretStore.type aws: leave out one of them"]);
}

#[rstest]
#[case("GCP_PROJECT_ID", "google")]
#[case("SECRET_MANAGER_EMULATOR_HOST", "google")]
#[case("GOOGLE_APPLICATION_CREDENTIALS", "google")]
#[case("REPLICATION_POLICY", "google aws")]
#[case("REPLICATION_POLICY_MIRROR", "")]
#[case("VAULT_ROLE", "vault")]
#[case("AWS_ROLE_ARN", "aws")]
#[case("AZURE_CLIENT_ID", "azure")]
#[case("LOG_LEVEL", "google vault aws azure")]
fn a_variable_goes_to_the_jobs_of_its_store_only(#[case] name: &str, #[case] expect: &str) {
    let all = [StoreKind::Google, StoreKind::Vault, StoreKind::Aws, StoreKind::Azure];
    let taken = all.into_iter().filter(|store| StoreKind::takes(Some(*store), name));
    assert_eq!(taken.map(StoreKind::name).collect::<Vec<_>>().join(" "), expect);
    assert_eq!(StoreKind::takes(None, name), name == "LOG_LEVEL");
}

#[test]
fn the_example_is_accepted() {
    let config = read(include_str!("../../../../../examples/adapter-config-by-provider.yaml")).unwrap();
    let all = config.stores.all().into_keys().collect::<Vec<_>>();
    assert_eq!(all, [StoreKind::Google, StoreKind::Vault, StoreKind::Aws, StoreKind::Azure]);
    assert!(config.stores.of(&view(&json!({"provider": "baremetal"}))).is_ok());
}
