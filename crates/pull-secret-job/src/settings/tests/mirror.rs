//! Settings of the mirror.

use super::*;

type Given = &'static [(&'static str, &'static str)];

const CLUSTER: Given = &[("CLUSTER_ID", "cls-123"), ("PULL_SECRET_FILE", "/run/pull-secret")];
const GOOGLE: Given = &[("GCP_PROJECT_ID", "my-project-1")];
const VAULT: Given = &[("VAULT_ADDR", "https://vault.example.com:8200"), ("VAULT_ROLE", "r")];
const AWS: Given = &[("AWS_REGION", "eu-central-1")];
const AZURE: Given = &[("AZURE_KEY_VAULT_URL", "https://fleet.vault.azure.net")];

fn with(given: &[&[(&'static str, &'static str)]]) -> Result<Settings, Vec<String>> {
    resolved(&[CLUSTER, &given.concat()].concat()).map_err(|InvalidSettings(problems)| problems)
}

#[rstest]
#[case("google", "vault", &[GOOGLE, VAULT])]
#[case("vault", "google", &[GOOGLE, VAULT])]
#[case("google", "aws", &[GOOGLE, AWS])]
#[case("aws", "vault", &[AWS, VAULT])]
#[case("azure", "google", &[AZURE, GOOGLE])]
#[case("openbao", "azure", &[VAULT, AZURE])]
fn each_store_takes_its_place_from_its_own_variables(
    #[case] first: &'static str,
    #[case] mirror: &'static str,
    #[case] places: &[Given],
) {
    let given = [&[("SECRET_STORE", first), ("SECRET_STORE_MIRROR", mirror)][..], &places.concat()].concat();
    let settings = with(&[&given]).unwrap();
    let kinds = [settings.store.as_ref(), settings.mirror.as_ref()].map(|store| match store.unwrap() {
        StoreSettings::Google(_) => "google",
        StoreSettings::Vault(_) => "vault",
        StoreSettings::Aws(_) => "aws",
        StoreSettings::Azure(_) => "azure",
    });
    assert_eq!(kinds, [if first == "openbao" { "vault" } else { first }, mirror]);
}

#[rstest]
#[case::the_same(
    &[GOOGLE, &[("SECRET_STORE_MIRROR", "google")]],
    &["SECRET_STORE_MIRROR: must be another store than SECRET_STORE, google"]
)]
#[case::the_same_by_another_word(
    &[VAULT, &[("SECRET_STORE", "vault"), ("SECRET_STORE_MIRROR", "openbao")]],
    &["SECRET_STORE_MIRROR: must be another store than SECRET_STORE, vault"]
)]
#[case::unknown(
    &[GOOGLE, &[("SECRET_STORE_MIRROR", "oracle")]],
    &["SECRET_STORE_MIRROR: must be one of google, vault, aws, azure"]
)]
#[case::without_places(
    &[&[("SECRET_STORE_MIRROR", "vault")][..]],
    &[
        "missing required environment variable: GCP_PROJECT_ID (or --gcp-project-id)",
        "missing required environment variable: VAULT_ADDR (or --vault-addr)",
        "missing required environment variable: VAULT_ROLE (or --vault-role)",
    ]
)]
#[case::a_place_of_neither(
    &[AWS, AZURE, GOOGLE, &[("SECRET_STORE", "aws"), ("SECRET_STORE_MIRROR", "azure")]],
    &["GCP_PROJECT_ID has no effect with SECRET_STORE=aws: leave it out"]
)]
#[case::more_versions_than_the_mirror_keeps(
    &[GOOGLE, AWS, &[("SECRET_STORE_MIRROR", "aws"), ("RETAIN_VERSIONS", "0")]],
    &["RETAIN_VERSIONS: must be 1 to 8 with SECRET_STORE_MIRROR=aws"]
)]
#[case::a_policy_for_the_mirror(
    &[GOOGLE, VAULT, &[
        ("SECRET_STORE", "vault"), ("SECRET_STORE_MIRROR", "google"), ("REPLICATION_POLICY", "automatic"),
    ]],
    &["REPLICATION_POLICY has no effect with SECRET_STORE=vault: leave it out"]
)]
#[case::a_policy_of_a_mirror_that_takes_none(
    &[GOOGLE, VAULT, &[("SECRET_STORE_MIRROR", "vault"), ("REPLICATION_POLICY_MIRROR", "automatic")]],
    &["REPLICATION_POLICY_MIRROR has no effect with SECRET_STORE_MIRROR=vault: leave it out"]
)]
#[case::a_policy_without_a_mirror(
    &[GOOGLE, &[("REPLICATION_POLICY_MIRROR", "automatic")]],
    &["REPLICATION_POLICY_MIRROR has no effect without SECRET_STORE_MIRROR: leave it out"]
)]
#[case::a_policy_of_the_mirror_that_is_none(
    &[GOOGLE, AWS, &[("SECRET_STORE_MIRROR", "aws"), ("REPLICATION_POLICY_MIRROR", "regional")]],
    &["REPLICATION_POLICY_MIRROR: must be automatic[=KMS_KEY] or user-managed:LOCATION[=KMS_KEY],…"]
)]
fn what_does_not_fit_is_named_at_once(#[case] given: &[Given], #[case] problems: &[&str]) {
    assert_eq!(with(given).unwrap_err(), problems);
}

/// Each store has a policy of its own, and the location belongs to Google.
#[test]
fn each_store_has_its_replication() {
    let policy = [("SECRET_STORE_MIRROR", "aws"), ("REPLICATION_POLICY", "user-managed:europe-west1")];
    let settings = with(&[GOOGLE, AWS, &policy]).unwrap();
    assert!(matches!(store_task(settings).replication, Replication::Locations(_)), "no region of AWS is asked for");
    let regional = [("SECRET_STORE", "aws"), ("SECRET_STORE_MIRROR", "google"), ("GCP_LOCATION", "europe-west1")];
    let settings = with(&[GOOGLE, AWS, &regional]).unwrap();
    let task = store_task(settings);
    assert_eq!(task.replication, Replication::Automatic { kms_key: None });
    assert_eq!(task.mirror_replication, Replication::Regional { kms_key: None });
    let key = |key: &str| Some(key.to_owned());
    let mirrored = [("SECRET_STORE_MIRROR", "aws"), ("REPLICATION_POLICY", "automatic=projects/p/k")];
    let policy = [("REPLICATION_POLICY_MIRROR", "user-managed:eu-central-1=alias/fleet,us-east-1")];
    let task = store_task(with(&[GOOGLE, AWS, &mirrored, &policy]).unwrap());
    assert_eq!(task.replication, Replication::Automatic { kms_key: key("projects/p/k") });
    let replica = |location: &str, kms_key: Option<String>| Replica { location: location.parse().unwrap(), kms_key };
    let replicas = vec![replica("eu-central-1", key("alias/fleet")), replica("us-east-1", None)];
    assert_eq!(task.mirror_replication, Replication::Locations(replicas));
    let regional = [("SECRET_STORE", "aws"), ("SECRET_STORE_MIRROR", "google"), ("GCP_LOCATION", "europe-west1")];
    let task = store_task(with(&[GOOGLE, AWS, &regional, &[("REPLICATION_POLICY_MIRROR", "regional=k")]]).unwrap());
    assert_eq!(task.mirror_replication, Replication::Regional { kms_key: key("k") });
}

#[test]
fn a_deletion_has_a_mirror_unless_it_is_of_the_kubernetes_secret_only() {
    let deletion = [("SECRET_STORE_MIRROR", "aws"), ("--delete", "true"), ("MANAGEMENT_NAMESPACE", "n")];
    assert!(with(&[GOOGLE, AWS, &deletion]).unwrap().mirror.is_some());
    let only = [("--kubernetes-secret-only", "true")];
    let settings = with(&[&deletion, &only]).unwrap();
    assert!(settings.store.is_none() && settings.mirror.is_none());
}

/// A command on one store has the environment of a Job with two.
#[test]
fn the_place_of_a_mirror_is_no_fault_of_a_command_on_the_other_store() {
    let environment = [VAULT, AWS, &[("SECRET_STORE", "aws"), ("SECRET_STORE_MIRROR", "vault")]].concat();
    let environment: BTreeMap<_, _> = environment.into_iter().collect();
    assert!(matches!(resolve_store(None, &environment), Ok(Some(StoreSettings::Aws(_)))));
    assert!(matches!(resolve_store(Some("vault"), &environment), Ok(Some(StoreSettings::Vault(_)))));
    let environment = [VAULT, AWS, &[("SECRET_STORE", "vault"), ("SECRET_STORE_MIRROR", "aws")]].concat();
    assert!(matches!(resolve_store(Some("aws"), &environment.into_iter().collect::<BTreeMap<_, _>>()), Ok(Some(_))));
}
