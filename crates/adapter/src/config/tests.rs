//! Configurations that are accepted, and the faults of others.

use rstest::rstest;

use super::*;

mod by_provider;
mod mirror;

/// The specification's example, as it is.
const VALIDATION: &str = r#"
apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata:
  name: validation-adapter
  namespace: hyperfleet-system
spec:
  adapterType: validation
  criteria:
    preconditions:
      - expression: "cluster.status.phase != 'Ready'"
    dependencies: []
  hyperfleetAPI:
    url: http://hyperfleet-api:8080
    timeout: 10s
  broker:
    type: gcp-pubsub
    subscription: validation-adapter-sub
  jobTemplate:
    image: quay.io/hyperfleet/validation-job:v1.0.0
    resources:
      requests:
        cpu: 100m
        memory: 128Mi
      limits:
        cpu: 500m
        memory: 512Mi
"#;

fn read(text: &str) -> Result<Checked, Vec<String>> {
    Config::read(Some(text.to_owned()), BTreeMap::new(), &BTreeMap::<&str, &str>::new())?.check()
}

fn faults(text: &str) -> String {
    read(text).map(|_| ()).unwrap_err().join("\n")
}

#[test]
fn the_specifications_example_is_accepted_as_it_is() {
    let config = read(VALIDATION).unwrap();
    assert_eq!(config.subscription.to_string(), "validation-adapter-sub of hyperfleet-system-clusters");
    assert_eq!((config.preconditions.len(), config.dependencies.len()), (1, 0));
    assert_eq!(config.client.base_url.to_string(), "http://hyperfleet-api:8080/api/hyperfleet/v1");
    assert!(config.input.is_none() && config.output.is_none() && config.delete_args.is_none());
}

#[test]
fn the_pull_secrets_adapter_needs_no_file() {
    let flags = BTreeMap::from([("hyperfleet-api-base-url", "http://api:8000".to_owned())]);
    let environment = BTreeMap::from([("BROKER_TYPE", "rabbitmq"), ("LOG_LEVEL", "debug")]);
    let config = Config::read(None, flags, &environment).unwrap().check().unwrap();
    assert_eq!(config.dependencies, ["validation", "dns", "placement"]);
    assert_eq!(config.subscription.id.as_str(), "pullsecret-adapter-sub");
    assert_eq!(config.given.spec.broker.kind, Some(BrokerKind::RabbitMq));
    assert_eq!(config.given.log.level.to_string(), "debug");
    assert_eq!(config.bindings.len(), 9);
}

#[test]
fn an_explicit_variable_overrides_the_built_in_one() {
    let text = "apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata: {name: a, namespace: b}
spec:
  adapterType: pullsecret
  hyperfleetAPI: {url: http://api}
  jobTemplate:
    env:
      - {name: MANAGEMENT_NAMESPACE, value: 'clusters-{id}', required: toApply}
      - {name: LOG_LEVEL, value: debug}
";
    let config = read(text).unwrap();
    let namespace: Vec<_> = config.bindings.iter().filter(|binding| binding.name == "MANAGEMENT_NAMESPACE").collect();
    assert_eq!((config.bindings.len(), namespace.len()), (10, 1));
    assert_eq!(namespace[0].value.as_deref(), Some("clusters-{id}"));
}

#[rstest]
#[case::unknown("  adapterType: validation", "  adapterType: validation\n  colour: red", "spec.colour: unknown key")]
#[case::version("hyperfleet.redhat.com/v1alpha1", "v2", "apiVersion: must be hyperfleet.redhat.com/v1alpha1")]
#[case::no_api(
    "    url: http://hyperfleet-api:8080\n",
    "",
    "spec.hyperfleetAPI.url: missing; set HYPERFLEET_API_BASE_URL or --hyperfleet-api-base-url"
)]
#[case::expression(
    "cluster.status.phase != 'Ready'",
    "cluster.status.phase !=",
    "spec.criteria.preconditions[0].expression: "
)]
#[case::duration("timeout: 10s", "timeout: soon", "spec.hyperfleetAPI.timeout: ")]
#[case::broker("type: gcp-pubsub", "type: hunter2-kafka", "spec.broker.type: must be ")]
#[case::account(
    "  jobTemplate:",
    "  kubernetes: {serviceAccount: adapter}\n  jobTemplate:",
    "spec.kubernetes.serviceAccount: must be NAMESPACE/NAME"
)]
#[case::retired("  jobTemplate:", "  params: []\n  jobTemplate:", "spec.params: not a key of this program")]
#[case::variable(
    "  jobTemplate:\n",
    "  jobTemplate:\n    env: [{name: a-b, value: c}]\n",
    "spec.jobTemplate.env[0]: name: must be"
)]
#[case::secret(
    "  jobTemplate:\n",
    "  jobTemplate:\n    env: [{name: A, from: [spec.pullSecret.data]}]\n",
    "spec.jobTemplate.env[0]: from: a pull secret is never a variable"
)]
#[case::place(
    "  jobTemplate:\n",
    "  jobTemplate:\n    env: [{name: A, from: [hunter2]}]\n",
    "spec.jobTemplate.env[0].from[0]: "
)]
#[case::exchange_type(
    "    type: gcp-pubsub",
    "    type: gcp-pubsub\n    exchangeType: fanout",
    "exchangeType and queue: have no effect with spec.broker.type googlepubsub"
)]
#[case::attempts(
    "    type: gcp-pubsub",
    "    type: gcp-pubsub\n    maxAttempts: 4",
    "spec.broker.maxAttempts: must be a whole number from 5 to 100"
)]
#[case::kept(
    "  jobTemplate:\n",
    "  jobTemplate:\n    keepFinished: 10s\n",
    "spec.jobTemplate.keepFinished: must be a duration of 1m or more"
)]
#[case::quota(
    "  adapterType: validation",
    "  adapterType: validation\n  limits: {writesPerMinute: 2}",
    "spec.limits.writesPerMinute: "
)]
fn faults_name_the_key_and_never_the_value(#[case] what: &str, #[case] instead: &str, #[case] expect: &str) {
    let text = VALIDATION.replacen(what, instead, 1);
    assert_ne!(text, VALIDATION);
    let faults = faults(&text);
    assert!(faults.contains(expect) && !faults.contains("hunter2"), "{faults}");
}

/// A configuration that stores in Vault: `vault` are the members of `spec.secretStore.vault`, `further` are lines of `spec`.
fn in_vault(vault: &str, further: &str) -> String {
    format!(
        "apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata: {{name: a, namespace: b}}
spec:
  adapterType: pullsecret
  hyperfleetAPI: {{url: http://api}}
  secretStore: {{type: vault, vault: {{{vault}}}}}
{further}"
    )
}

const VAULT: &str = "address: 'https://Vault.example.com:8200/', namespace: fleet/eu/";

#[test]
fn pull_secrets_are_stored_in_vault() {
    let config = read(&in_vault(VAULT, "")).unwrap();
    let JobStores::One(JobStore::Vault(vault)) = &config.stores else { panic!("must be Vault") };
    assert_eq!(vault.address.as_str(), "https://vault.example.com:8200");
    assert_eq!((vault.namespace.as_ref().unwrap().as_str(), vault.mount.as_str()), ("fleet/eu", "secret"));
    let root = read(&in_vault(&VAULT.replace("fleet/eu/", "root"), "")).unwrap();
    let JobStores::One(JobStore::Vault(root)) = &root.stores else { panic!("must be Vault") };
    assert_eq!(root.namespace, None);
    assert_eq!(vault.folder.value.as_deref(), Some("pull-secrets"));
    let names: Vec<_> = config.bindings.iter().map(|binding| binding.name.as_str()).collect();
    assert!(!names.contains(&"GCP_PROJECT_ID") && !names.contains(&"REPLICATION_POLICY"), "{names:?}");
    assert_eq!(config.preconditions.len(), 1);
    assert_eq!(config.project_variable, None);
}

#[rstest]
#[case::address("", "", "spec.secretStore.vault.address: missing")]
#[case::plain("address: 'http://vault.example.com'", "", "spec.secretStore.vault.address: must be an https:// address")]
#[case::path(
    "address: 'https://v', namespace: 'a b', mount: ../x",
    "",
    "vault.namespace: must be parts of A-Z, a-z, 0-9, '.', '_' and '-' with '/' between them\n\
     spec.secretStore.vault.mount: must be parts"
)]
#[case::store(
    "address: 'https://v'",
    "  jobTemplate: {env: [{name: SECRET_STORE, value: google}]}",
    "spec.jobTemplate.env[0]: name: the variable follows from spec.secretStore.type or byProvider: set that instead"
)]
#[case::folder(
    "address: 'https://v'",
    "  jobTemplate: {env: [{name: A, value: b}, {name: VAULT_FOLDER, from: [spec.x]}]}",
    "spec.jobTemplate.env[1]: name: the variable follows from spec.secretStore.folder: set that instead"
)]
#[case::twice(
    "address: 'https://v'",
    "  jobTemplate: {env: [{name: VAULT_ROLE, value: a}, {name: VAULT_ROLE, value: b}]}",
    "spec.jobTemplate.env[1]: name: is given twice"
)]
fn a_place_in_vault_that_is_incomplete_or_contradictory_is_refused(
    #[case] vault: &str,
    #[case] further: &str,
    #[case] expect: &str,
) {
    let faults = faults(&in_vault(vault, further));
    assert!(faults.contains(expect), "{faults}");
}

#[rstest]
#[case("{type: aws, aws: {region: eu-west-1}, folder: /tenants/}", None)]
#[case("{type: aws}", Some("spec.secretStore.aws.region: missing"))]
#[case("{type: aws, aws: {region: 'eu west'}}", Some("spec.secretStore.aws.region: must be a location"))]
#[case("{type: aws, aws: {region: eu-west-1}, folder: a//b}", Some("spec.secretStore.folder: must be parts"))]
#[case("{type: oracle}", Some("spec.secretStore.type: must be"))]
fn pull_secrets_are_stored_at_aws(#[case] store: &str, #[case] expect: Option<&str>) {
    let text = in_vault("", "").replace("{type: vault, vault: {}}", store);
    match (read(&text), expect) {
        (Ok(Checked { stores: JobStores::One(JobStore::Aws(aws)), preconditions, .. }), None) => {
            assert_eq!((aws.region.as_str(), aws.folder.value.as_deref()), ("eu-west-1", Some("tenants")));
            assert_eq!(preconditions.len(), 2);
        }
        (Err(faults), Some(expect)) => assert!(faults.join("\n").contains(expect), "{faults:?}"),
        (read, _) => panic!("{read:?}"),
    }
}

#[rstest]
#[case("{type: azure, azure: {vaultUrl: 'https://Fleet.vault.azure.net/'}}", None)]
#[case("{type: azure}", Some("spec.secretStore.azure.vaultUrl: missing"))]
#[case(
    "{type: azure, azure: {vaultUrl: 'http://127.0.0.1:1'}}",
    Some("spec.secretStore.azure.vaultUrl: must be an https:// address")
)]
#[case(
    "{type: azure, azure: {vaultUrl: 'https://f.vault.azure.net'}, folder: f}",
    Some("spec.secretStore.folder: has no effect without spec.secretStore.type or mirror vault or aws")
)]
fn pull_secrets_are_stored_at_azure(#[case] store: &str, #[case] expect: Option<&str>) {
    let text = in_vault("", "").replace("{type: vault, vault: {}}", store);
    match (read(&text), expect) {
        (Ok(Checked { stores: JobStores::One(JobStore::Azure(vault)), preconditions, .. }), None) => {
            assert_eq!((vault.as_str(), preconditions.len()), ("https://fleet.vault.azure.net", 2));
        }
        (Err(faults), Some(expect)) => assert!(faults.join("\n").contains(expect), "{faults:?}"),
        (read, _) => panic!("{read:?}"),
    }
}

#[rstest]
#[case("{name: VAULT_ROLE, from: [spec.role]}", true)]
#[case("{name: AWS_ROLE_ARN, value: 'role-{name}'}", true)]
#[case("{name: SECRET_MANAGER_EMULATOR_HOST, from: [metadata.name]}", true)]
#[case("{name: GCP_SECRET_MANAGER_ENDPOINT, from: [spec.endpoint]}", true)]
#[case("{name: VAULT_ROLE, from: [metadata.tenancy.org], value: 'role-{id}'}", false)]
#[case("{name: GCP_PROJECT_ID, from: [spec.project]}", false)]
fn the_author_of_a_resource_does_not_choose_the_identity_of_a_run(#[case] variable: &str, #[case] is_refused: bool) {
    let text = in_vault(VAULT, &format!("  jobTemplate: {{env: [{variable}]}}"));
    let fault = "spec.jobTemplate.env[0]: must come from metadata.id, metadata.tenancy or status";
    assert_eq!(read(&text).is_err_and(|faults| faults.concat().starts_with(fault)), is_refused);
    // Jobs of other adapters have variables of their own.
    let other = VALIDATION.replace("  jobTemplate:", &format!("  jobTemplate:\n    env: [{variable}]"));
    assert!(read(&other).is_ok());
}

#[test]
fn settings_of_vault_without_effect_are_refused() {
    let at_google = in_vault(VAULT, "").replace("type: vault", "type: google");
    assert_eq!(
        faults(&at_google),
        "spec.secretStore.vault: has no effect without spec.secretStore.type or mirror vault"
    );
    let folder = at_google.replace("vault: {", "folder: f, x: {").replace(&format!(", x: {{{VAULT}}}"), "");
    assert_eq!(
        faults(&folder),
        "spec.secretStore.folder: has no effect without spec.secretStore.type or mirror vault or aws"
    );
    let quota = in_vault(VAULT, "  limits: {projectVariable: A}\n  jobTemplate: {env: [{name: A, value: b}]}");
    assert_eq!(faults(&quota), "spec.limits.projectVariable: has no effect without spec.secretStore.type google");
    let of_aws = in_vault(VAULT, "").replace("type: vault,", "type: vault, aws: {region: eu-west-1},");
    assert_eq!(faults(&of_aws), "spec.secretStore.aws: has no effect without spec.secretStore.type or mirror aws");
    let validation =
        VALIDATION.replace("  jobTemplate:", "  secretStore: {type: aws, aws: {region: eu-west-1}}\n  jobTemplate:");
    assert_eq!(faults(&validation), "spec.secretStore: has no effect without spec.adapterType pullsecret");
}

#[test]
fn the_schema_accepts_what_the_program_accepts() {
    let schema = schema();
    let required = schema.pointer("/$defs/Spec/required").unwrap();
    assert_eq!(required, &serde_json::json!(["adapterType"]));
    assert_eq!(schema.pointer("/required").unwrap(), &serde_json::json!(["apiVersion", "kind", "metadata", "spec"]));
    let brokers = schema.pointer("/$defs/Broker/properties/type/enum").unwrap();
    assert_eq!(brokers, &serde_json::json!(["rabbitmq", "googlepubsub", "gcp-pubsub", "pubsub"]));
    let stores = schema.pointer("/$defs/StoreKind/enum").unwrap();
    assert_eq!(stores, &serde_json::json!(["google", "vault", "openbao", "aws", "azure"]));
    let by_provider = schema.pointer("/$defs/SecretStore/properties/byProvider/additionalProperties/$ref").unwrap();
    assert_eq!(by_provider, "#/$defs/StoreKind");
}

#[test]
fn a_single_key_of_the_input_keeps_the_others_built_in() {
    let text = "apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata: {name: a, namespace: b}
spec: {adapterType: pullsecret, hyperfleetAPI: {url: http://api}, input: {secretNamespaces: [tenants]}}
";
    let input = read(text).unwrap().input.unwrap();
    assert_eq!((input.key.as_str(), input.mount_path.as_str()), ("pullsecret", "/var/run/pull-secret"));
    assert_eq!(input.secret_namespaces, ["tenants"]);
}

#[test]
fn keys_of_earlier_versions_are_accepted() {
    let text = VALIDATION.replacen("  adapterType", "  log: {level: debug}\n  health: {port: 8081}\n  adapterType", 1);
    let config = read(&text).unwrap();
    assert_eq!((config.given.log.level.to_string().as_str(), config.given.health.port), ("debug", 8081));
}
