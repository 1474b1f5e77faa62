//! Tables of pull secrets in OpenBao or Vault: their copies, destinations, and the variables of their Jobs.

use super::*;
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
      - {name: SECRET_STORE, value: vault}
      - {name: VAULT_ADDR, value: 'https://vault:8200'}
      - {name: VAULT_ROLE, value: pull-secret-job}
";

fn in_vault(destinations: &str) -> Config {
    let file = format!("{FILE}{destinations}");
    File::read(Some(file), BTreeMap::new(), &BTreeMap::<&str, &str>::new()).unwrap().plan().unwrap()
}

fn copy(folder: &str) -> StoredCopy {
    StoredCopy::VaultSecret {
        server: "https://vault:8200".to_owned(),
        namespace: None,
        mount: "secret".to_owned(),
        folder: folder.to_owned(),
        name: "hyperfleet-cls-1-pull-secret".to_owned(),
    }
}

fn kubernetes_secret() -> StoredCopy {
    let (namespace, name) = ("clusters-cls-1".to_owned(), "cls-1-pull-secret".to_owned());
    StoredCopy::KubernetesSecret { namespace, name }
}

/// A cluster of no cloud that the preconditions of Google's store name.
fn world_elsewhere(folder: Option<&str>) -> World {
    let mut world = world();
    let mut pull_secret = json!({"data": {"redacted": true}});
    pull_secret["vaultFolder"] = json!(folder);
    world.resource.spec = serde_json::from_value(json!({"provider": "baremetal", "pullSecret": pull_secret})).unwrap();
    world
}

fn copies(plan: &Plan) -> Vec<StoredCopy> {
    let mut copies: Vec<StoredCopy> = serde_json::from_value(plan.data["copies"].clone()).unwrap();
    copies.sort();
    copies
}

#[test]
fn a_run_starts_without_a_project_and_records_its_folder() {
    let plan = world_elsewhere(None).decide_with(&in_vault(""));
    assert!(plan.starts_run().is_some(), "{}", plan.because);
    assert_eq!(copies(&plan), [copy("pull-secrets"), kubernetes_secret()]);
    let chosen = world_elsewhere(Some("tenants/acme")).decide_with(&in_vault(""));
    assert_eq!(copies(&chosen), [copy("tenants/acme"), kubernetes_secret()]);
}

#[rstest]
#[case(None, true)]
#[case(Some("tenants/acme"), true)]
#[case(Some("tenants"), false)]
#[case(Some("other"), false)]
fn only_allowed_folders_get_a_pull_secret(#[case] folder: Option<&str>, #[case] allowed: bool) {
    let rules =
        "  destinations: [{vaultFolders: [secret/pull-secrets, 'secret/tenants/*'], namespaces: ['clusters-*']}]\n";
    let plan = world_elsewhere(folder).decide_with(&in_vault(rules));
    assert_eq!(plan.starts_run().is_some(), allowed, "{}", plan.because);
    assert_eq!(plan.reason == Reason::DestinationNotAllowed, !allowed);
}

#[test]
fn a_folder_that_was_left_is_cleaned_up_there() {
    let mut world = world_elsewhere(Some("new"));
    let data = json!({
        "vaultAddress": "https://vault:8200", "secretPath": "secret/new/hyperfleet-cls-1-pull-secret",
        "secretName": "hyperfleet-cls-1-pull-secret", "namespace": "clusters-cls-1", "k8sSecretName": "cls-1-pull-secret",
        "copies": [copy("old"), copy("new"), kubernetes_secret()],
    });
    world.last_report = report(3, "True", &data);
    let plan = world.decide_with(&in_vault(""));
    let run = plan.starts_run().unwrap_or_else(|| panic!("{}", plan.because)).clone();
    assert_eq!(run.copy, Some(copy("old")));
    assert_eq!(copies(&plan), [copy("new"), copy("old"), kubernetes_secret()]);
    assert_eq!(
        variables(&world, &run),
        "CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3 VAULT_ROLE=pull-secret-job SECRET_STORE=vault \
         VAULT_ADDR=https://vault:8200 VAULT_MOUNT=secret VAULT_FOLDER=old SECRET_NAME=hyperfleet-cls-1-pull-secret"
    );
}

#[test]
fn a_copy_at_google_is_cleaned_up_at_google() {
    let world = world_elsewhere(None);
    let at_google = StoredCopy::Secret {
        project: "p-1".to_owned(),
        location: None,
        name: "hyperfleet-cls-1-pull-secret".to_owned(),
    };
    let variables = variables(&world, &StartRun::clean_up(at_google, String::new()));
    assert!(variables.contains("GCP_PROJECT_ID=p-1") && !variables.contains("SECRET_STORE"), "{variables}");
}

/// The variables of a run's Job.
fn variables(world: &World, run: &StartRun) -> String {
    world.with_facts(|facts| {
        let job = manifest::job(&in_vault(""), facts, run, &Trigger { event: None, trace: None }).unwrap();
        let env = serde_json::to_value(job).unwrap()["spec"]["template"]["spec"]["containers"][0]["env"].clone();
        let pair = |variable: &Value| {
            format!("{}={}", variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap())
        };
        env.as_array().unwrap().iter().map(pair).collect::<Vec<_>>().join(" ")
    })
}
