//! What environments mean, and everything that is wrong with them.

use std::collections::BTreeMap;

use rstest::rstest;

use super::*;

struct Given(BTreeMap<&'static str, &'static str>);

impl Values for Given {
    fn get(&self, setting: &Setting) -> Result<Option<String>, String> {
        let value = self.0.get(setting.name().as_str()).map(|value| value.trim().to_owned());
        Ok(value.filter(|value| !value.is_empty()))
    }

    fn verbatim(&self, setting: &Setting) -> Result<Option<SecretString>, String> {
        Ok(self.get(setting)?.map(SecretString::from))
    }
}

const COMPLETE: [(&str, &str); 3] =
    [("CLUSTER_ID", "cls-123"), ("GCP_PROJECT_ID", "my-project-1"), ("PULL_SECRET_FILE", "/run/pull-secret")];

fn resolve_with(further: &[(&'static str, &'static str)]) -> Result<Settings, InvalidSettings> {
    resolve(&Given(COMPLETE.iter().chain(further).copied().collect()))
}

fn store_task(settings: Settings) -> StoreTask {
    match settings.task {
        Task::Store(task) => *task,
        Task::Delete => panic!("must store"),
    }
}

#[test]
fn a_trace_is_taken_and_a_malformed_one_is_no_fault() {
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
    assert_eq!(settings.store.call_timeout, Duration::from_secs(30));
    assert_eq!(settings.store.endpoint, google::Endpoint::Google);
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
    let wrong = Given(BTreeMap::from([
        ("CLUSTER_ID", "Cls_1"),
        ("GCP_PROJECT_ID", "   "),
        ("GENERATION", "0"),
        ("GCP_API_TIMEOUT", "30"),
        ("RETAIN_VERSIONS", "-1"),
        ("LOG_LEVEL", "loud"),
        ("MANAGEMENT_NAMESPACE", "Clusters"),
    ]));
    let InvalidSettings(problems) = resolve(&wrong).unwrap_err();
    assert_eq!(
        problems.iter().map(|problem| problem.split(':').next().unwrap()).collect::<Vec<_>>(),
        [
            "missing required environment variable",
            "CLUSTER_ID",
            "GENERATION",
            "RETAIN_VERSIONS",
            "missing pull secret",
            "GCP_API_TIMEOUT",
            "MANAGEMENT_NAMESPACE",
            "CLUSTER_NAME",
            "LOG_LEVEL",
        ]
    );
    assert_eq!(problems[0], "missing required environment variable: GCP_PROJECT_ID (or --gcp-project-id)");
}

#[rstest]
#[case("SECRET_NAME", "a/b", "SECRET_NAME: must be 1 to 255 characters of A-Z, a-z, 0-9, '_' and '-'")]
#[case("ALWAYS_ADD_VERSION", "yes", "ALWAYS_ADD_VERSION: must be true or false")]
#[case("RUN_TIMEOUT", "0s", "RUN_TIMEOUT: must be a duration from 1ms to 24h, such as `30s` or `2m`")]
#[case("RUN_TIMEOUT", "25h", "RUN_TIMEOUT: must be a duration from 1ms to 24h, such as `30s` or `2m`")]
#[case("RUN_TIMEOUT", "-5s", "RUN_TIMEOUT: must be a duration from 1ms to 24h, such as `30s` or `2m`")]
#[case("LOG_FORMAT", "xml", "LOG_FORMAT: must be one of json, text")]
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
#[case("SECRET_LABELS", "managed-by=me", "SECRET_LABELS: entry 1 would replace a label of ours")]
#[case("SECRET_LABELS", "a=1,a=2", "SECRET_LABELS: entry 2 has a key that is given twice")]
#[case("SECRET_MANAGER_EMULATOR_HOST", "http://x", "SECRET_MANAGER_EMULATOR_HOST: must be HOST:PORT")]
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
    let Replication::UserManaged(replicas) = task.replication else { panic!("must be user-managed") };
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
fn label_values_that_do_not_fit_are_changed_and_said() {
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
    let given = BTreeMap::from([("CLUSTER_ID", "cls-123"), ("GCP_PROJECT_ID", "my-project-1"), ("--delete", "true")]);
    let settings = resolve(&Given(given)).unwrap();
    assert!(matches!(settings.task, Task::Delete));
}

#[test]
fn settings_do_not_show_the_pull_secret() {
    let given = [("CLUSTER_ID", "cls-123"), ("GCP_PROJECT_ID", "my-project-1"), ("PULL_SECRET_DATA", "{\"s3cret\":1}")];
    let settings = resolve(&Given(BTreeMap::from(given))).unwrap();
    assert!(!format!("{settings:?}").contains("s3cret"));
}

#[test]
fn every_setting_has_a_name_a_help_and_no_twin() {
    let mut names: Vec<String> = SETTINGS.iter().map(Setting::name).collect();
    assert!(SETTINGS.iter().all(|setting| !setting.help.is_empty()));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), SETTINGS.len());
}
