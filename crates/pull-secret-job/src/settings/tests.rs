//! Settings of environments, and the faults of others.

use std::collections::BTreeMap;

use fleet_model::names::Name;
use fleet_model::names::variable::JOB_VARIABLES;
use rstest::rstest;
use secrecy::ExposeSecret as _;
use secret_store::{Replica, StoreSettings, VaultLogin};

use super::*;

mod aws;
mod azure;
mod mirror;

const COMPLETE: [(&str, &str); 3] =
    [("CLUSTER_ID", "cls-123"), ("GCP_PROJECT_ID", "my-project-1"), ("PULL_SECRET_FILE", "/run/pull-secret")];

/// Resolves variables, and flags where the name begins with dashes.
fn resolved(given: &[(&'static str, &'static str)]) -> Result<Settings, InvalidSettings> {
    let (flags, variables): (Vec<_>, Vec<_>) = given.iter().copied().partition(|(name, _)| name.starts_with("--"));
    let flags = flags.iter().map(|(name, value)| (name.trim_start_matches('-'), (*value).to_owned())).collect();
    resolve(&flags, &variables.into_iter().collect::<BTreeMap<_, _>>())
}

fn resolve_with(further: &[(&'static str, &'static str)]) -> Result<Settings, InvalidSettings> {
    resolved(&[&COMPLETE, further].concat())
}

fn store_task(settings: Settings) -> StoreTask {
    match settings.task {
        Task::Store(task) => *task,
        Task::Delete | Task::DeleteKubernetesSecret => panic!("must store"),
    }
}

#[test]
fn a_malformed_trace_is_ignored() {
    let trace = |text| resolve_with(&[("TRACEPARENT", text)]).unwrap().trace;
    let known = trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
    assert_eq!(known.trace_id(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(trace("hunter2"), None);
}

#[test]
fn three_values_are_enough() {
    let settings = resolve_with(&[]).unwrap();
    assert_eq!(settings.secret.as_str(), "hyperfleet-cls-123-pull-secret");
    assert_eq!(settings.run_timeout, Duration::from_mins(5));
    let Some(StoreSettings::Google(store)) = &settings.store else { panic!("must be Google's") };
    assert_eq!(store.call_timeout, Duration::from_secs(30));
    assert_eq!(store.endpoint, secret_store::Endpoint::Provider);
    assert!(!settings.dry_run);
    let task = store_task(settings);
    assert_eq!(task.retain, 3);
    assert_eq!(task.replication, Replication::Automatic { kms_key: None });
    let labels: Vec<String> = task.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(
        labels.join(" "),
        "adapter=pullsecret cluster-id=cls-123 hyperfleet-version=v1 managed-by=hyperfleet resource-type=pull-secret"
    );
}

#[test]
fn all_that_is_wrong_is_named_at_once() {
    let wrong = [
        ("CLUSTER_ID", "Cls_1"),
        ("GCP_PROJECT_ID", "   "),
        ("GENERATION", "0"),
        ("GCP_API_TIMEOUT", "30"),
        ("RETAIN_VERSIONS", "-1"),
        ("LOG_LEVEL", "loud"),
        ("MANAGEMENT_NAMESPACE", "Clusters"),
        ("GCP_PROJECTID", "my-project-1"),
    ];
    let InvalidSettings(problems) = resolved(&wrong).unwrap_err();
    assert_eq!(
        problems.iter().map(|problem| problem.split(':').next().unwrap()).collect::<Vec<_>>(),
        [
            "RETAIN_VERSIONS",
            "LOG_LEVEL",
            "GCP_API_TIMEOUT",
            "GCP_PROJECTID",
            "missing required environment variable",
            "CLUSTER_ID",
            "GENERATION",
            "missing pull secret",
            "MANAGEMENT_NAMESPACE",
            "CLUSTER_NAME",
        ]
    );
    assert_eq!(problems[4], "missing required environment variable: GCP_PROJECT_ID (or --gcp-project-id)");
}

#[rstest]
#[case("SECRET_NAME", "a/b", "SECRET_NAME: must be 1 to 255 characters of A-Z, a-z, 0-9, '_' and '-'")]
#[case("ALWAYS_ADD_VERSION", "yes", "ALWAYS_ADD_VERSION: must be true or false")]
#[case("RUN_TIMEOUT", "0s", "RUN_TIMEOUT: must be a duration from 1ms to 24h, such as 500ms, 5s or 1m30s")]
#[case("RUN_TIMEOUT", "25h", "RUN_TIMEOUT: must be a duration from 1ms to 24h, such as 500ms, 5s or 1m30s")]
#[case("RUN_TIMEOUT", "-5s", "RUN_TIMEOUT: must be a duration from 1ms to 24h, such as 500ms, 5s or 1m30s")]
#[case("LOG_FORMAT", "xml", "LOG_FORMAT: must be one of auto, json, text")]
#[case(
    "REPLICATION_POLICY",
    "everywhere",
    "REPLICATION_POLICY: must be automatic[=KMS_KEY] or user-managed:LOCATION[=KMS_KEY],…"
)]
#[case("REPLICATION_POLICY", "user-managed:", "REPLICATION_POLICY: must be a location such as `europe-west1`")]
#[case(
    "REPLICATION_POLICY",
    "regional",
    "REPLICATION_POLICY: must be automatic[=KMS_KEY] or user-managed:LOCATION[=KMS_KEY],…"
)]
#[case("SECRET_LABELS", "team", "SECRET_LABELS: entry 1 is not KEY=VALUE")]
#[case("SECRET_LABELS", "managed-by=me", "SECRET_LABELS: entry 1 would replace a label of this project")]
#[case("SECRET_LABELS", "a=1,a=2", "SECRET_LABELS: entry 2 has a key that is given twice")]
#[case("SECRET_MANAGER_EMULATOR_HOST", "http://x", "SECRET_MANAGER_EMULATOR_HOST: must be HOST:PORT")]
#[case(
    "SECRET_MANAGER_EMULATOR_TOKEN_FILE",
    "token",
    "SECRET_MANAGER_EMULATOR_TOKEN_FILE has no effect without SECRET_MANAGER_EMULATOR_HOST"
)]
#[case(
    "GCP_SECRET_MANAGER_ENDPOINT",
    "http://10.0.0.1",
    "GCP_SECRET_MANAGER_ENDPOINT: must be an https:// address (or http:// to this machine), without user, query or fragment"
)]
#[case("RESULTS_PATH", "/nowhere/at/all.json", "RESULTS_PATH: the folder of that file does not exist")]
#[case(
    "PULL_SECRET_DATA",
    "{}",
    "PULL_SECRET_FILE, PULL_SECRET_DATA and --fake-pull-secret exclude each other: give one"
)]
fn a_bad_value_is_named_with_what_it_must_be(
    #[case] name: &'static str,
    #[case] value: &'static str,
    #[case] expected: &str,
) {
    assert_eq!(resolve_with(&[(name, value)]).unwrap_err().to_string(), expected);
}

#[test]
fn replication_takes_locations_and_keys() {
    let policy = "user-managed:europe-west1, europe-west4=projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k";
    let task = store_task(resolve_with(&[("REPLICATION_POLICY", policy)]).unwrap());
    let Replication::Locations(replicas) = task.replication else { panic!("must be user-managed") };
    let replicas: Vec<_> =
        replicas.iter().map(|replica| (replica.location.as_str(), replica.kms_key.is_some())).collect();
    assert_eq!(replicas, [("europe-west1", false), ("europe-west4", true)]);
}

#[test]
fn a_location_makes_the_secret_regional() {
    let task = store_task(resolve_with(&[("GCP_LOCATION", "europe-west1")]).unwrap());
    assert_eq!(task.replication, Replication::Regional { kms_key: None });
    let both = [("GCP_LOCATION", "europe-west1"), ("REPLICATION_POLICY", "automatic")];
    assert_eq!(
        resolve_with(&both).unwrap_err().to_string(),
        "REPLICATION_POLICY: must be regional[=KMS_KEY] where GCP_LOCATION is set"
    );
}

#[test]
fn invalid_label_values_are_changed_and_reported() {
    let given = [("CLUSTER_NAME", "Prod Cluster 1"), ("SECRET_LABELS", "cost-center = 42, owner=Team.A")];
    let task = store_task(resolve_with(&given).unwrap());
    assert_eq!(task.labels["cluster-name"], "prod-cluster-1");
    assert_eq!(task.labels["cost-center"], "42");
    assert_eq!(task.labels["owner"], "team-a");
    let changed: Vec<_> = task.changed_labels.iter().map(|label| label.key.as_str()).collect();
    assert_eq!(changed, ["cluster-name", "owner"]);
}

#[test]
fn deleting_needs_no_pull_secret() {
    let given = [
        ("CLUSTER_ID", "cls-123"),
        ("GCP_PROJECT_ID", "my-project-1"),
        ("--delete", "true"),
        // Without effect on a deletion, so their faults are too.
        ("RETAIN_VERSIONS", "many"),
        ("REPLICATION_POLICY", "everywhere"),
    ];
    let settings = resolved(&given).unwrap();
    assert!(matches!(settings.task, Task::Delete));
}

#[test]
fn settings_do_not_show_the_pull_secret() {
    let given = [("CLUSTER_ID", "cls-123"), ("GCP_PROJECT_ID", "my-project-1"), ("PULL_SECRET_DATA", "{\"s3cret\":1}")];
    let settings = resolved(&given).unwrap();
    assert!(!format!("{settings:?}").contains("s3cret"));
}

#[test]
fn every_setting_has_a_help_and_a_name_of_its_own() {
    let rows = TABLE.scalars();
    assert!(rows.iter().all(|row| !row.help.is_empty()));
    let mut names: Vec<&str> = rows.iter().map(|row| row.path).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len());
}

#[test]
fn every_variable_that_the_adapter_sets_is_a_setting() {
    let variables = TABLE.variables();
    for Name { name, .. } in JOB_VARIABLES {
        assert!(variables.iter().any(|variable| variable == name), "{name}");
    }
}

#[test]
fn the_content_of_the_variable_is_kept_as_it_is_given() {
    let given = [("CLUSTER_ID", "cls-123"), ("GCP_PROJECT_ID", "my-project-1"), ("PULL_SECRET_DATA", " {}\n")];
    let Source::Text(text) = store_task(resolved(&given).unwrap()).source else { panic!("must be the variable") };
    assert_eq!(text.expose_secret(), " {}\n");
}

#[test]
fn variables_of_other_stores_do_not_matter_to_googles() {
    let of_vault = |kind: Option<&str>| resolve_store(kind, &BTreeMap::from([("VAULT_CLIENT_TIMEOUT", "soon")]));
    assert!(matches!(of_vault(None), Ok(None)));
    let InvalidSettings(faults) = of_vault(Some("vault")).unwrap_err();
    assert!(faults.iter().any(|fault| fault.starts_with("VAULT_CLIENT_TIMEOUT")), "{faults:?}");
    assert!(of_vault(Some("oracle")).is_err());
}

/// Resolves the settings of a run that stores in Vault.
fn with_vault(further: &[(&'static str, &'static str)]) -> Result<Option<StoreSettings>, Vec<String>> {
    let complete = [
        ("CLUSTER_ID", "cls-123"),
        ("PULL_SECRET_FILE", "/run/pull-secret"),
        ("SECRET_STORE", "vault"),
        ("VAULT_ADDR", "https://vault.example.com:8200"),
    ];
    resolved(&[&complete, further].concat())
        .map(|settings| settings.store)
        .map_err(|InvalidSettings(problems)| problems)
}

#[test]
fn a_run_stores_in_vault_with_an_address_and_a_role() {
    let Ok(Some(StoreSettings::Vault(vault))) = with_vault(&[("VAULT_ROLE", "pull-secret-job")]) else {
        panic!("must be Vault")
    };
    assert_eq!((vault.mount.as_str(), vault.folder.as_str(), vault.namespace), ("secret", "pull-secrets", None));
    let token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token".into();
    let (mount, role) = ("kubernetes".to_owned(), "pull-secret-job".to_owned());
    assert_eq!(vault.login, VaultLogin::Jwt { mount, role, token_file });
}

#[rstest]
#[case(&[("VAULT_AUTH", "token"), ("VAULT_TOKEN_FILE", "/t")], VaultLogin::TokenFile("/t".into()))]
#[case(
    &[("VAULT_AUTH", "jwt"), ("VAULT_AUTH_MOUNT", "gke/one"), ("VAULT_ROLE", "r"), ("VAULT_JWT_FILE", "/j")],
    VaultLogin::Jwt { mount: "gke/one".to_owned(), role: "r".to_owned(), token_file: "/j".into() }
)]
#[case(
    &[("VAULT_AUTH", "approle"), ("VAULT_ROLE_ID", "id"), ("VAULT_SECRET_ID_FILE", "/s")],
    VaultLogin::AppRole { mount: "approle".to_owned(), role_id: "id".to_owned(), secret_id_file: "/s".into() }
)]
fn each_way_to_log_in_has_its_settings(#[case] given: &[(&'static str, &'static str)], #[case] expected: VaultLogin) {
    let Ok(Some(StoreSettings::Vault(vault))) = with_vault(given) else { panic!("must be Vault") };
    assert_eq!(vault.login, expected);
}

#[rstest]
#[case(&[], "missing required environment variable: VAULT_ROLE (or --vault-role)")]
#[case(&[("VAULT_AUTH", "token")], "missing required environment variable: VAULT_TOKEN_FILE (or --vault-token-file)")]
#[case(
    &[("VAULT_AUTH", "approle"), ("VAULT_ROLE_ID", "id")],
    "missing required environment variable: VAULT_SECRET_ID_FILE (or --vault-secret-id-file)"
)]
#[case(
    &[("VAULT_AUTH", "token"), ("VAULT_TOKEN_FILE", "/t"), ("VAULT_ROLE", "r")],
    "VAULT_ROLE has no effect with VAULT_AUTH=token: leave it out"
)]
#[case(
    &[("VAULT_ROLE", "r"), ("GCP_PROJECT_ID", "my-project-1")],
    "GCP_PROJECT_ID has no effect with SECRET_STORE=vault: leave it out"
)]
#[case(&[("VAULT_ROLE", "r"), ("RETAIN_VERSIONS", "0")], "RETAIN_VERSIONS: must be 1 to 100 with SECRET_STORE=vault")]
#[case(&[("VAULT_ROLE", "r"), ("RETAIN_VERSIONS", "101")], "RETAIN_VERSIONS: must be 1 to 100 with SECRET_STORE=vault")]
#[case(
    &[("VAULT_ROLE", "r"), ("VAULT_FOLDER", "../sys")],
    "VAULT_FOLDER: must be parts of A-Z, a-z, 0-9, '.', '_' and '-' with '/' between them"
)]
#[case(&[("VAULT_ROLE", "r"), ("VAULT_AUTH", "ldap")], "VAULT_AUTH: must be one of kubernetes, jwt, approle, token")]
fn settings_of_vault_that_do_not_fit_are_refused(
    #[case] given: &[(&'static str, &'static str)],
    #[case] problem: &str,
) {
    assert_eq!(with_vault(given).err(), Some(vec![problem.to_owned()]));
}

#[test]
fn vault_is_not_reached_without_encryption() {
    let InvalidSettings(problems) = resolved(&[
        ("CLUSTER_ID", "cls-123"),
        ("PULL_SECRET_FILE", "/run/pull-secret"),
        ("SECRET_STORE", "vault"),
        ("VAULT_ADDR", "http://10.0.0.1:8200"),
        ("VAULT_ROLE", "r"),
    ])
    .unwrap_err();
    assert!(problems[0].starts_with("VAULT_ADDR: must be an https:// address"), "{problems:?}");
}

#[test]
fn a_deletion_of_the_kubernetes_secret_only_needs_no_store() {
    let flags = BTreeMap::from([("delete", "true".to_owned()), ("kubernetes-secret-only", "true".to_owned())]);
    let environment = BTreeMap::from([("CLUSTER_ID", "cls-1"), ("MANAGEMENT_NAMESPACE", "clusters-cls-1")]);
    let settings = resolve(&flags, &environment).unwrap();
    assert!(matches!((&settings.store, &settings.task), (None, Task::DeleteKubernetesSecret)), "{settings:?}");
    assert_eq!(settings.phase(), "k8s-secret");
}
