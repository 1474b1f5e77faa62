//! Tables of pull secrets in OpenBao, Vault and AWS: their copies, destinations, and the variables of their Jobs.

use super::*;
use crate::config::Destination;
use crate::manifest::{self, Trigger};

const FILE: &str = r"
apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata: {name: pullsecret-adapter, namespace: hyperfleet-pull-secret}
spec:
  adapterType: pullsecret
  hyperfleetAPI: {url: 'http://api:8000'}
  jobTemplate:
    env:
      - {name: VAULT_ROLE, value: pull-secret-job}
      - {name: AWS_ROLE_ARN, value: role}
      - {name: GCP_API_TIMEOUT, value: 10s}
      - {name: LOG_LEVEL, value: debug}
";

/// The configuration of an adapter that stores in Vault, or the same of one that stores at Google.
pub(super) fn configured(further: &str) -> Checked {
    let file = format!("{FILE}{further}");
    Config::read(Some(file), BTreeMap::new(), &BTreeMap::<&str, &str>::new()).unwrap().check().unwrap()
}

pub(super) fn in_vault() -> Checked {
    configured("  secretStore: {type: vault, vault: {address: 'https://VAULT:8200/'}}\n")
}

pub(super) fn copy_at(server: &str, namespace: Option<&str>, mount: &str, folder: &str) -> StoredCopy {
    StoredCopy::VaultSecret {
        server: server.to_owned(),
        namespace: namespace.map(str::to_owned),
        mount: mount.to_owned(),
        folder: folder.to_owned(),
        name: "hyperfleet-cls-1-pull-secret".to_owned(),
    }
}

pub(super) fn copy(folder: &str) -> StoredCopy {
    copy_at("https://vault:8200", None, "secret", folder)
}

pub(super) fn at_google() -> StoredCopy {
    let (project, name) = ("proj-1".to_owned(), "hyperfleet-cls-1-pull-secret".to_owned());
    StoredCopy::Secret { project, location: None, name }
}

pub(super) fn kubernetes_secret() -> StoredCopy {
    let (namespace, name) = ("clusters-cls-1".to_owned(), "cls-1-pull-secret".to_owned());
    StoredCopy::KubernetesSecret { namespace, name }
}

/// A cluster of no cloud that the preconditions of Google's store name.
fn world_elsewhere(pull_secret: &Value) -> World {
    let mut world = world();
    let mut given = json!({"data": {"redacted": true}});
    given.as_object_mut().unwrap().extend(pull_secret.as_object().unwrap().clone());
    world.resource.spec = serde_json::from_value(json!({"provider": "baremetal", "pullSecret": given})).unwrap();
    world
}

/// A cluster whose pull secret is stored in this folder, with these recorded copies.
fn stored_in(folder: &str, recorded: &[Value]) -> World {
    let mut world = world_elsewhere(&json!({"folder": folder}));
    let data = json!({
        "vaultAddress": "https://vault:8200", "secretPath": format!("secret/{folder}/hyperfleet-cls-1-pull-secret"),
        "secretName": "hyperfleet-cls-1-pull-secret", "namespace": "clusters-cls-1", "k8sSecretName": "cls-1-pull-secret",
        "copies": recorded,
    });
    world.last_report = report(3, "True", &data);
    world
}

#[track_caller]
pub(super) fn check_copies(plan: &Plan, expected: &[Value]) {
    let listed = |copies: &Value| {
        let mut listed: Vec<_> = copies.as_array().unwrap().iter().map(ToString::to_string).collect();
        listed.sort();
        listed
    };
    assert_eq!(listed(&plan.data["copies"]), listed(&json!(expected)), "{}", plan.because);
}

/// The variables of a run's Job.
pub(super) fn variables(config: &Checked, world: &World, run: &StartRun) -> String {
    world.with_facts(|facts| {
        let job = manifest::job(config, facts, run, &Trigger::default()).unwrap();
        let env = serde_json::to_value(job).unwrap()["spec"]["template"]["spec"]["containers"][0]["env"].clone();
        let pair = |variable: &Value| {
            format!("{}={}", variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap())
        };
        env.as_array().unwrap().iter().map(pair).collect::<Vec<_>>().join(" ")
    })
}

#[rstest]
#[case::built_in(json!({}), "pull-secrets")]
#[case::blank(json!({"folder": " "}), "pull-secrets")]
#[case::chosen(json!({"folder": "tenants/acme"}), "tenants/acme")]
#[case::spelled_otherwise(json!({"folder": "/tenants/acme/"}), "tenants/acme")]
fn a_run_starts_without_a_project_and_records_its_folder(#[case] pull_secret: Value, #[case] folder: &str) {
    let world = world_elsewhere(&pull_secret);
    let plan = world.decide_with(&in_vault());
    check_copies(&plan, &[json!(copy(folder)), json!(kubernetes_secret())]);
    let run = plan.starts_run().unwrap_or_else(|| panic!("{}", plan.because));
    assert_eq!(
        variables(&in_vault(), &world, run),
        format!(
            "VAULT_ROLE=pull-secret-job LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 \
             MANAGEMENT_NAMESPACE=clusters-cls-1 PULL_SECRET_FILE=/var/run/pull-secret/pullsecret SECRET_STORE=vault \
             VAULT_ADDR=https://vault:8200 VAULT_MOUNT=secret VAULT_FOLDER={folder} SECRET_NAME=hyperfleet-cls-1-pull-secret"
        )
    );
    let quota = world.with_facts(|facts| manifest::quota(&in_vault(), facts, run));
    assert_eq!(quota.as_deref(), Some("https://vault:8200"));
}

#[rstest]
#[case::relative(
    json!({"folder": "a/../b"}),
    "spec.pullSecret.folder: must be parts of A-Z, a-z, 0-9, '.', '_' and '-' with '/' between them"
)]
#[case::name(
    json!({"secretName": "a/b"}),
    "the name of the secret: must be 1 to 255 characters of A-Z, a-z, 0-9, '_' and '-'"
)]
fn a_place_that_cannot_be_is_neither_recorded_nor_cleaned_up(#[case] pull_secret: Value, #[case] why: &str) {
    let mut world = world_elsewhere(&pull_secret);
    let plan = world.decide_with(&in_vault());
    assert_eq!((plan.reason, plan.because.as_str()), (Reason::DestinationNotAllowed, why));
    assert!(plan.starts_run().is_none() && !plan.data.contains_key("copies"));
    world.resource.deleted_time = Some(now());
    let plan = world.decide_with(&in_vault());
    assert!(plan.starts_run().is_none(), "{}", render(&plan));
    assert_eq!(plan.condition("Finalized").unwrap().status, Status::True, "{}", render(&plan));
}

#[rstest]
#[case(json!({}), true)]
#[case(json!({"folder": "tenants/acme"}), true)]
#[case(json!({"folder": "tenants"}), false)]
#[case(json!({"folder": "other"}), false)]
fn only_allowed_folders_get_a_pull_secret(#[case] pull_secret: Value, #[case] allowed: bool) {
    let mut config = in_vault();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    config.given.spec.destinations = Some(vec![Destination {
        folders: texts(&["pull-secrets", "tenants/*"]),
        namespaces: texts(&["clusters-*"]),
        ..Destination::default()
    }]);
    let plan = world_elsewhere(&pull_secret).decide_with(&config);
    assert_eq!(plan.starts_run().is_some(), allowed, "{}", plan.because);
    assert_eq!(plan.reason == Reason::DestinationNotAllowed, !allowed);
}

#[test]
fn a_folder_that_was_left_is_cleaned_up_there() {
    let recorded = [json!(copy("old")), json!(copy("new")), json!(kubernetes_secret())];
    let world = stored_in("new", &recorded);
    let plan = world.decide_with(&in_vault());
    let run = plan.starts_run().unwrap_or_else(|| panic!("{}", plan.because));
    assert_eq!(run.copy, Some(copy("old")));
    check_copies(&plan, &recorded);
    assert_eq!(
        variables(&in_vault(), &world, run),
        "VAULT_ROLE=pull-secret-job LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 SECRET_STORE=vault \
         VAULT_ADDR=https://vault:8200 VAULT_MOUNT=secret VAULT_FOLDER=old SECRET_NAME=hyperfleet-cls-1-pull-secret"
    );
}

#[rstest]
#[case::another_address(copy_at("https://10.0.0.7:8200", None, "secret", "new"))]
#[case::the_root(copy_at("https://vault:8200", Some("root"), "secret", "new"))]
#[case::a_namespace_as_the_beginning_of_the_mount(copy_at("https://vault:8200", Some("secret"), "new", "x"))]
fn a_copy_that_may_be_the_current_one_is_kept_until_the_deletion(#[case] other: StoredCopy) {
    // The second case: `secret/new/x` is the folder `new/x` of the mount `secret`, and the folder `x` of `secret/new`.
    let folder = if other.vault_path() == copy("new").vault_path() { "new" } else { "new/x" };
    let recorded = [json!(copy(folder)), json!(other), json!(kubernetes_secret())];
    let mut world = stored_in(folder, &recorded);
    let plan = world.decide_with(&in_vault());
    assert_eq!(render(&plan), "Applied=True/ResourcesExist; Available=True/SecretStored; Health=True/NoErrors");
    check_copies(&plan, &recorded);
    world.resource.deleted_time = Some(now());
    let plan = world.decide_with(&in_vault());
    assert_eq!(plan.starts_run().unwrap().copy, Some(other), "{}", render(&plan));
}

#[test]
fn a_clean_up_of_a_copy_that_may_be_written_again_is_stopped_first() {
    let other = copy_at("https://10.0.0.7:8200", None, "secret", "pull-secrets");
    let job = ObservedJob { name: "clean-up".to_owned(), ..job(3, None, 5, 1) };
    let world = world_elsewhere(&json!({})).with_clean_up(job, other, None);
    let plan = world.decide_with(&in_vault());
    assert!(render(&plan).starts_with("delete clean-up; Applied=False/CleanupInProgress"), "{}", render(&plan));
}

/// The variables of the store that the fleet has left go to the clean-up there only.
#[test]
fn a_copy_in_the_store_that_was_left_is_cleaned_up_there() {
    let world = world_elsewhere(&json!({}));
    let clean_up = |config: &Checked, copy: StoredCopy| {
        let run = StartRun::clean_up(copy, String::new());
        let quota = world.with_facts(|facts| manifest::quota(config, facts, &run));
        format!("{}; quota of {}", variables(config, &world, &run), quota.unwrap_or_default())
    };
    let of_cluster = "LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3";
    assert_eq!(
        clean_up(&in_vault(), at_google()),
        format!(
            "GCP_API_TIMEOUT=10s {of_cluster} GCP_PROJECT_ID=proj-1 SECRET_NAME=hyperfleet-cls-1-pull-secret; quota of proj-1"
        )
    );
    assert_eq!(
        clean_up(&configured(""), copy_at("https://vault:8200", Some("fleet/eu"), "kv", "f")),
        format!(
            "VAULT_ROLE=pull-secret-job {of_cluster} SECRET_STORE=vault VAULT_ADDR=https://vault:8200 \
             VAULT_NAMESPACE=fleet/eu VAULT_MOUNT=kv VAULT_FOLDER=f SECRET_NAME=hyperfleet-cls-1-pull-secret; quota of \
             https://vault:8200"
        )
    );
}

#[test]
fn a_run_at_aws_gets_its_region_and_folder() {
    let at_aws = configured("  secretStore: {type: aws, aws: {region: eu-west-1}}\n");
    let pull_secret = json!({"folder": "tenants/acme", "replicationPolicy": "automatic=key"});
    let mut world = world_elsewhere(&pull_secret);
    assert_eq!(world.decide_with(&at_aws).reason, Reason::PreconditionsNotMet);
    world.resource.spec["provider"] = json!("aws");
    let plan = world.decide_with(&at_aws);
    let stored = StoredCopy::AwsSecret {
        region: "eu-west-1".to_owned(),
        folder: "tenants/acme".to_owned(),
        name: "hyperfleet-cls-1-pull-secret".to_owned(),
    };
    check_copies(&plan, &[json!(stored), json!(kubernetes_secret())]);
    let place =
        "SECRET_STORE=aws AWS_REGION=eu-west-1 AWS_FOLDER=tenants/acme SECRET_NAME=hyperfleet-cls-1-pull-secret";
    assert_eq!(
        variables(&at_aws, &world, plan.starts_run().unwrap()),
        format!(
            "AWS_ROLE_ARN=role LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 \
             REPLICATION_POLICY=automatic=key MANAGEMENT_NAMESPACE=clusters-cls-1 \
             PULL_SECRET_FILE=/var/run/pull-secret/pullsecret {place}"
        )
    );
    let data = json!({
        "awsRegion": "eu-west-1", "secretPath": "tenants/acme/hyperfleet-cls-1-pull-secret", "namespace": "clusters-cls-1",
        "k8sSecretName": "cls-1-pull-secret", "copies": [copy("pull-secrets"), stored, kubernetes_secret()],
    });
    world.last_report = report(3, "True", &data);
    let run = world.decide_with(&at_aws).starts_run().cloned().unwrap();
    assert_eq!(run.copy, Some(copy("pull-secrets")));
    // And the other way round.
    let run = StartRun::clean_up(stored, String::new());
    assert_eq!(
        variables(&in_vault(), &world, &run),
        format!("AWS_ROLE_ARN=role LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 {place}")
    );
    let quota = world.with_facts(|facts| manifest::quota(&in_vault(), facts, &run));
    assert_eq!(quota.as_deref(), Some("aws/eu-west-1"));
}

#[test]
fn a_run_at_azure_gets_its_vault() {
    let vault = "https://fleet.vault.azure.net";
    let at_azure = configured(&format!("  secretStore: {{type: azure, azure: {{vaultUrl: '{vault}'}}}}\n"));
    let mut world = world_elsewhere(&json!({}));
    assert_eq!(world.decide_with(&at_azure).reason, Reason::PreconditionsNotMet);
    world.resource.spec["provider"] = json!("azure");
    let plan = world.decide_with(&at_azure);
    let name = "hyperfleet-cls-1-pull-secret";
    let stored = StoredCopy::AzureSecret { vault: vault.to_owned(), name: name.to_owned() };
    check_copies(&plan, &[json!(stored), json!(kubernetes_secret())]);
    let place = format!("SECRET_STORE=azure AZURE_KEY_VAULT_URL={vault} SECRET_NAME={name}");
    let given = variables(&at_azure, &world, plan.starts_run().unwrap());
    assert!(given.ends_with(&place) && !given.contains("AWS_") && !given.contains("VAULT_ROLE"), "{given}");
    let data = json!({
        "azureVault": vault, "secretName": name, "namespace": "clusters-cls-1", "k8sSecretName": "cls-1-pull-secret",
        "copies": [copy("pull-secrets"), stored, kubernetes_secret()],
    });
    world.last_report = report(3, "True", &data);
    let run = world.decide_with(&at_azure).starts_run().cloned().unwrap();
    assert_eq!(run.copy, Some(copy("pull-secrets")), "the former copy goes");
    let run = StartRun::clean_up(stored, String::new());
    assert!(variables(&in_vault(), &world, &run).ends_with(&place));
    assert_eq!(world.with_facts(|facts| manifest::quota(&in_vault(), facts, &run)).as_deref(), Some(vault));
}

#[test]
fn a_clean_up_of_a_kubernetes_secret_needs_no_store() {
    let world = world_elsewhere(&json!({"secretName": "a/b", "folder": ".."}));
    let run = StartRun::clean_up(kubernetes_secret(), String::new());
    assert_eq!(
        variables(&in_vault(), &world, &run),
        "LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 MANAGEMENT_NAMESPACE=clusters-cls-1 \
         K8S_SECRET_NAME=cls-1-pull-secret"
    );
}

#[test]
fn a_fleet_that_moves_stores_in_vault_first_and_then_deletes_at_google() {
    let recorded = [json!(at_google()), json!(kubernetes_secret())];
    let mut world = world_elsewhere(&json!({}));
    let stored = json!({
        "gcpProject": "proj-1", "secretName": "hyperfleet-cls-1-pull-secret",
        "secretPath": "projects/proj-1/secrets/hyperfleet-cls-1-pull-secret", "namespace": "clusters-cls-1",
        "k8sSecretName": "cls-1-pull-secret", "copies": recorded,
    });
    world.last_report = report(3, "True", &stored);
    let plan = world.decide_with(&in_vault());
    assert_eq!(render(&plan), STARTED);
    let both = [json!(at_google()), json!(copy("pull-secrets")), json!(kubernetes_secret())];
    check_copies(&plan, &both);
    let plan = stored_in("pull-secrets", &both).decide_with(&in_vault());
    assert_eq!(plan.starts_run().unwrap().copy, Some(at_google()), "{}", render(&plan));
    // And back.
    let back = World { last_report: stored_in("pull-secrets", &both[1..]).last_report, ..self::world() };
    let plan = back.decide_with(&configured(""));
    assert_eq!(render(&plan), STARTED);
    check_copies(&plan, &both);
}

/// A result that always names another place than the planned one must not start one Job after the other.
#[test]
fn repeated_runs_for_a_destination_back_off() {
    let decide = |attempt, seconds| {
        let mut world = stored_in("elsewhere", &[json!(copy("new")), json!(kubernetes_secret())]);
        world.resource.spec["pullSecret"]["folder"] = json!("new");
        let done = job(3, Some(JobEnd::Complete), seconds, attempt);
        let mut outcome = outcome(0, "SecretStored");
        outcome.details = world.last_report.as_ref().unwrap().data.clone();
        render(&world.with(done, Purpose::Apply, Some(outcome)).decide_with(&in_vault()))
    };
    assert!(decide(1, 0).starts_with("start Apply 2"), "{}", decide(1, 0));
    assert!(decide(2, 0).ends_with("next in 120 s"), "{}", decide(2, 0));
    assert!(decide(2, 200).starts_with("start Apply 3"), "{}", decide(2, 200));
}

#[test]
fn copies_of_a_newer_version_are_reported_on_and_hold_a_deletion() {
    let unread = json!({"kind": "someSecret", "place": {"a": [1]}});
    let recorded = [json!(copy("new")), json!(kubernetes_secret()), unread.clone()];
    let mut world = stored_in("new", &recorded);
    check_copies(&world.decide_with(&in_vault()), &recorded);
    world.resource.deleted_time = Some(now());
    let done = job(3, Some(JobEnd::Complete), 1, 1);
    let plan = world.with(done, Purpose::Delete, Some(outcome(0, "SecretDeleted"))).decide_with(&in_vault());
    assert_eq!(
        render(&plan),
        "Applied=True/ResourcesExist; Available=False/DeletionError; Health=False/DeletionError; \
         Finalized=False/AdapterUnhealthy; next in 1800 s"
    );
    assert!(plan.because.contains("kinds that this version does not know (someSecret)"), "{}", plan.because);
    check_copies(&plan, &recorded);
}
