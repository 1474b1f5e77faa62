//! Tables of clusters whose store follows from their provider: destinations, variables, moves, and providers without a store.

use super::stores::{at_google, check_copies, configured, copy, kubernetes_secret, variables};
use super::*;
use crate::manifest;

const VAULT_URL: &str = "https://fleet.vault.azure.net";
const NAME: &str = "hyperfleet-cls-1-pull-secret";
const NO_STORE: &str = "the adapter's spec.secretStore.byProvider has no store for spec.provider \"gcp\"";

/// An adapter that stores as this map says; `further` is in `spec`.
fn mapped(map: &str, further: &str) -> Checked {
    let block = |store: &str, block: &str| if map.contains(store) { format!(", {block}") } else { String::new() };
    let aws = block("aws", "aws: {region: eu-west-1}");
    let azure = block("azure", &format!("azure: {{vaultUrl: '{VAULT_URL}'}}"));
    let vault = block("vault", "vault: {address: 'https://VAULT:8200/'}");
    configured(&format!("  secretStore: {{byProvider: {map}{aws}{azure}{vault}}}\n{further}"))
}

fn all() -> Checked {
    mapped("{gcp: google, aws: aws, azure: azure, onprem: vault}", "")
}

fn at_aws(folder: &str) -> StoredCopy {
    let [region, folder, name] = ["eu-west-1", folder, NAME].map(str::to_owned);
    StoredCopy::AwsSecret { region, folder, name }
}

fn at_azure() -> StoredCopy {
    StoredCopy::AzureSecret { vault: VAULT_URL.to_owned(), name: NAME.to_owned() }
}

/// The cluster of [`world`], which names a project at Google, with another provider.
fn of_provider(provider: &Value) -> World {
    let mut world = world();
    world.resource.spec["provider"] = provider.clone();
    world
}

/// That cluster after a run at Google has succeeded in this generation.
fn stored_at_google(provider: &Value, recorded: &[StoredCopy]) -> World {
    let data = json!({
        "gcpProject": "proj-1", "secretName": NAME, "namespace": "clusters-cls-1", "k8sSecretName": "cls-1-pull-secret",
        "copies": recorded,
    });
    World { last_report: report(3, "True", &data), ..of_provider(provider) }
}

#[rstest]
#[case::google(
    "gcp",
    at_google(),
    "GCP_API_TIMEOUT=10s",
    "GCP_PROJECT_ID=proj-1 REPLICATION_POLICY=automatic=key MANAGEMENT_NAMESPACE=clusters-cls-1",
    "",
    "proj-1"
)]
#[case::aws(
    "aws",
    at_aws("tenants/acme"),
    "AWS_ROLE_ARN=role",
    "REPLICATION_POLICY=automatic=key MANAGEMENT_NAMESPACE=clusters-cls-1",
    " SECRET_STORE=aws AWS_REGION=eu-west-1 AWS_FOLDER=tenants/acme SECRET_NAME=hyperfleet-cls-1-pull-secret",
    "aws/eu-west-1"
)]
#[case::azure(
    "azure",
    at_azure(),
    "",
    "MANAGEMENT_NAMESPACE=clusters-cls-1",
    " SECRET_STORE=azure AZURE_KEY_VAULT_URL=https://fleet.vault.azure.net SECRET_NAME=hyperfleet-cls-1-pull-secret",
    VAULT_URL
)]
#[case::vault(
    "onprem",
    copy("tenants/acme"),
    "VAULT_ROLE=pull-secret-job",
    "MANAGEMENT_NAMESPACE=clusters-cls-1",
    " SECRET_STORE=vault VAULT_ADDR=https://vault:8200 VAULT_MOUNT=secret VAULT_FOLDER=tenants/acme \
     SECRET_NAME=hyperfleet-cls-1-pull-secret",
    "https://vault:8200"
)]
fn a_run_has_the_place_and_the_variables_of_its_own_store_only(
    #[case] provider: &str,
    #[case] stored: StoredCopy,
    #[case] identity: &str,
    #[case] of_spec: &str,
    #[case] place: &str,
    #[case] quota: &str,
) {
    let mut world = of_provider(&json!(provider));
    world.resource.spec["pullSecret"] =
        json!({"data": {"redacted": true}, "folder": "tenants/acme", "replicationPolicy": "automatic=key"});
    let plan = world.decide_with(&all());
    assert_eq!(render(&plan), STARTED, "{}", plan.because);
    check_copies(&plan, &[json!(stored), json!(kubernetes_secret())]);
    let run = plan.starts_run().unwrap();
    let identity = Some(identity).filter(|text| !text.is_empty()).map(|text| format!("{text} ")).unwrap_or_default();
    assert_eq!(
        variables(&all(), &world, run),
        format!(
            "{identity}LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 {of_spec} \
             PULL_SECRET_FILE=/var/run/pull-secret/pullsecret{place}"
        )
    );
    assert_eq!(world.with_facts(|facts| manifest::quota(&all(), facts, run)).as_deref(), Some(quota));
}

#[rstest]
#[case::google("gcp", at_google(), "GCP_API_TIMEOUT=10s ", "GCP_PROJECT_ID=proj-1 ", "")]
#[case::aws(
    "aws",
    at_aws("pull-secrets"),
    "AWS_ROLE_ARN=role ",
    "",
    "SECRET_STORE=aws AWS_REGION=eu-west-1 AWS_FOLDER=pull-secrets "
)]
fn a_run_with_a_mirror_has_the_variables_of_its_own_store_and_of_the_mirror(
    #[case] provider: &str,
    #[case] stored: StoredCopy,
    #[case] identity: &str,
    #[case] of_spec: &str,
    #[case] place: &str,
) {
    let config = configured(
        "  secretStore: {byProvider: {gcp: google, aws: aws, azure: azure}, mirror: vault, aws: {region: eu-west-1}, \
         azure: {vaultUrl: 'https://fleet.vault.azure.net'}, vault: {address: 'https://VAULT:8200/'}}\n",
    );
    let world = of_provider(&json!(provider));
    let plan = world.decide_with(&config);
    assert_eq!(render(&plan), STARTED, "{}", plan.because);
    check_copies(&plan, &[json!(stored), json!(copy("pull-secrets")), json!(kubernetes_secret())]);
    let given = variables(&config, &world, plan.starts_run().unwrap());
    let expected = format!(
        "VAULT_ROLE=pull-secret-job {identity}LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 {of_spec}\
         MANAGEMENT_NAMESPACE=clusters-cls-1 PULL_SECRET_FILE=/var/run/pull-secret/pullsecret {place}\
         SECRET_NAME=hyperfleet-cls-1-pull-secret VAULT_ADDR=https://vault:8200 VAULT_MOUNT=secret \
         VAULT_FOLDER=pull-secrets SECRET_STORE_MIRROR=vault"
    );
    assert_eq!(sorted(&given), sorted(&expected));
}

fn sorted(variables: &str) -> Vec<&str> {
    let mut sorted: Vec<_> = variables.split(' ').collect();
    sorted.sort_unstable();
    sorted
}

#[rstest]
#[case::google(json!({"provider": "gcp"}), "`spec.gcp.projectId != nil` is false: left side is nil")]
#[case::no_pull_secret(json!({"provider": "aws", "pullSecret": null}), "`spec.pullSecret.data != nil` is false")]
#[case::unknown(
    json!({"provider": "oracle"}),
    "the adapter's spec.secretStore.byProvider has no store for spec.provider \"oracle\""
)]
#[case::none(json!({}), "spec.provider is not a string; the adapter's spec.secretStore.byProvider selects by it")]
fn the_preconditions_of_the_store_hold(#[case] spec: Value, #[case] why: &str) {
    let mut world = world();
    let mut whole = json!({"pullSecret": {"data": {"redacted": true}}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    world.resource.spec = whole;
    let plan = world.decide_with(&all());
    assert_eq!(render(&plan), WAITING, "{}", plan.because);
    assert!(plan.because.contains(why), "{}", plan.because);
    assert!(!plan.data.contains_key("copies"));
}

#[rstest]
#[case::aws("aws")]
#[case::azure("azure")]
#[case::vault("onprem")]
fn a_project_is_needed_at_google_only(#[case] provider: &str) {
    let mut world = of_provider(&json!(provider));
    world.resource.spec["gcp"] = Value::Null;
    assert_eq!(render(&world.decide_with(&all())), STARTED);
}

/// Preconditions of a configuration replace those that are built in, but not the choice of the store.
#[test]
fn a_provider_without_a_store_is_not_served_whatever_the_preconditions() {
    let config = mapped("{aws: aws}", "  criteria: {preconditions: [{expression: 'true'}]}\n");
    let plan = world().decide_with(&config);
    assert_eq!((render(&plan).as_str(), plan.because.as_str()), (WAITING, NO_STORE));
    // Beside what else it waits for.
    let plan = World { resource: resource(&json!({})), ..world() }.decide_with(&config);
    assert!(plan.because.starts_with(&format!("{NO_STORE}; waiting for validation")), "{}", plan.because);
}

/// First the new store, then the copy in the former one, as when a destination changes.
#[test]
fn a_cluster_whose_provider_changes_moves() {
    let recorded = [at_google(), kubernetes_secret()];
    let mut world = stored_at_google(&json!("aws"), &recorded);
    world.last_report.as_mut().unwrap().observed_generation = hyperfleet_client::Generation::from(2);
    let plan = world.decide_with(&all());
    assert_eq!(render(&plan), STARTED);
    let both = [json!(at_google()), json!(at_aws("pull-secrets")), json!(kubernetes_secret())];
    check_copies(&plan, &both);
    let data = json!({
        "awsRegion": "eu-west-1", "secretPath": format!("pull-secrets/{NAME}"), "namespace": "clusters-cls-1",
        "k8sSecretName": "cls-1-pull-secret", "copies": both,
    });
    world.last_report = report(3, "True", &data);
    let plan = world.decide_with(&all());
    let run = plan.starts_run().unwrap_or_else(|| panic!("{}", plan.because));
    assert_eq!(run.copy, Some(at_google()));
    let given = variables(&all(), &world, run);
    assert!(
        given.starts_with("GCP_API_TIMEOUT=10s ") && !given.contains("AWS_") && !given.contains("VAULT_"),
        "{given}"
    );
}

#[test]
fn a_cluster_moves_when_the_store_of_its_provider_changes() {
    let recorded = [json!(at_google()), json!(kubernetes_secret())];
    let world = stored_at_google(&json!("gcp"), &[at_google(), kubernetes_secret()]);
    let plan = world.decide_with(&all());
    assert_eq!(render(&plan), STORED);
    check_copies(&plan, &recorded);
    let config = mapped("{gcp: vault}", "");
    let plan = world.decide_with(&config);
    assert_eq!(render(&plan), STARTED);
    check_copies(&plan, &[json!(at_google()), json!(copy("pull-secrets")), json!(kubernetes_secret())]);
}

#[test]
fn a_stored_cluster_without_a_store_stays_and_says_so() {
    let config = mapped("{aws: aws}", "");
    let recorded = [json!(at_google()), json!(kubernetes_secret())];
    let mut world = stored_at_google(&json!("gcp"), &[at_google(), kubernetes_secret()]);
    let plan = world.decide_with(&config);
    assert_eq!(render(&plan), "Available=True/SecretStored; Health=True/NoErrors; Applied=True/PreconditionsNotMet");
    assert_eq!(plan.condition("Applied").unwrap().message, format!("what is stored stays: {NO_STORE}"));
    check_copies(&plan, &recorded);
    // A repair would have to store it somewhere.
    world.output = OutputState::Missing("the Secret".to_owned());
    let plan = world.decide_with(&config);
    assert_eq!((render(&plan).as_str(), plan.because.as_str()), (WAITING, NO_STORE));
    check_copies(&plan, &recorded);
    // All that is recorded goes with the cluster.
    world.resource.deleted_time = Some(now());
    let plan = world.decide_with(&config);
    assert_eq!(plan.starts_run().and_then(|run| run.copy.clone()), Some(at_google()), "{}", render(&plan));
    let [store, applied] = [at_google(), kubernetes_secret()];
    let done = |name: &str| ObservedJob { name: name.to_owned(), ..job(3, Some(JobEnd::Complete), 1, 1) };
    let world = world.with_clean_up(done("a"), store, Some(outcome(0, "SecretDeleted")));
    let plan = world.decide_with(&config);
    assert_eq!(plan.starts_run().and_then(|run| run.copy.clone()), Some(kubernetes_secret()), "{}", render(&plan));
    let plan = world.with_clean_up(done("b"), applied, Some(outcome(0, "SecretDeleted"))).decide_with(&config);
    assert_eq!(plan.condition("Finalized").unwrap().status, Status::True, "{}", render(&plan));
    assert!(!plan.data.contains_key("copies"));
}

#[rstest]
#[case::not_named(mapped("{aws: aws}", ""), true)]
#[case::named(mapped("{aws: aws, onprem: vault}", ""), false)]
#[case::another_type(configured("  secretStore: {type: aws, aws: {region: eu-west-1}}\n"), true)]
fn a_clean_up_that_fails_at_a_store_that_is_not_named_says_what_to_do(
    #[case] config: Checked,
    #[case] is_hinted: bool,
) {
    let recorded = [copy("pull-secrets"), at_aws("pull-secrets"), kubernetes_secret()];
    let mut world = of_provider(&json!("aws"));
    let data = json!({
        "awsRegion": "eu-west-1", "secretPath": format!("pull-secrets/{NAME}"), "namespace": "clusters-cls-1",
        "k8sSecretName": "cls-1-pull-secret", "copies": recorded,
    });
    world.last_report = report(3, "True", &data);
    let world = world.with_clean_up(job(3, Some(broken()), 5, 1), copy("pull-secrets"), Some(outcome(2, "Invalid")));
    let plan = world.decide_with(&config);
    assert_eq!(
        render(&plan),
        "Available=True/SecretStored; Applied=True/DeletionError; Health=False/DeletionError; next in 1795 s"
    );
    let message = &plan.condition("Applied").unwrap().message;
    let hint = "; spec.secretStore does not name the store of the secret secret/pull-secrets/hyperfleet-cls-1-pull-secret at \
                https://vault:8200 any more: give Jobs its variables in spec.jobTemplate.env until it is deleted";
    assert_eq!(message.starts_with(&format!("a detail{hint}; retrying with")), is_hinted, "{message}");
    check_copies(&plan, &recorded.map(|copy| json!(copy)));
}

#[rstest]
#[case::project("gcp", json!({"projects": ["proj-*"]}), true)]
#[case::other_project("gcp", json!({"folders": ["*"]}), false)]
#[case::folder_at_aws("aws", json!({"folders": ["pull-secrets"]}), true)]
#[case::folder_in_vault("onprem", json!({"folders": ["tenants/*"], "projects": ["*"]}), false)]
#[case::vault_at_azure("azure", json!({}), true)]
fn allowed_destinations_are_those_of_the_store(#[case] provider: &str, #[case] rule: Value, #[case] is_allowed: bool) {
    let mut config = all();
    let mut rule = rule;
    rule["namespaces"] = json!(["clusters-*"]);
    config.given.spec.destinations = Some(vec![serde_json::from_value(rule).unwrap()]);
    let plan = of_provider(&json!(provider)).decide_with(&config);
    assert_eq!(plan.starts_run().is_some(), is_allowed, "{}", plan.because);
    assert_eq!(plan.reason == Reason::DestinationNotAllowed, !is_allowed);
}

#[rstest]
#[case::google("gcp", json!("tenants/acme"), "; spec.pullSecret.folder has no effect: Google Secret Manager has no folders")]
#[case::azure("azure", json!("tenants/acme"), "; spec.pullSecret.folder has no effect: Azure Key Vault has no folders")]
#[case::aws("aws", json!("tenants/acme"), "")]
#[case::vault("onprem", json!("tenants/acme"), "")]
#[case::blank("gcp", json!(" "), "")]
#[case::none("gcp", Value::Null, "")]
fn a_folder_without_effect_is_named_once(#[case] provider: &str, #[case] folder: Value, #[case] note: &str) {
    let mut world = of_provider(&json!(provider));
    world.resource.spec["pullSecret"]["folder"] = folder;
    let mut stored = outcome(0, "SecretStored");
    stored.details.clear();
    let mut world = world.with(job(3, Some(JobEnd::Complete), 5, 1), Purpose::Apply, Some(stored));
    let available = |world: &World| world.decide_with(&all()).condition("Available").unwrap().message.clone();
    assert_eq!(available(&world), format!("a detail{note}"));
    // The Job is gone, and the next pass repeats the report.
    world.jobs.clear();
    world.last_report = report(3, "True", &json!({}));
    world.last_report.as_mut().unwrap().conditions[0].message = Some(format!("a detail{note}"));
    assert_eq!(available(&world), format!("a detail{note}"));
}
