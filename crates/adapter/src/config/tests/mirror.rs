//! Configurations with a mirror.

use super::*;

#[rstest]
#[case("{type: vault, mirror: aws, vault: {address: 'https://v'}, aws: {region: eu-west-1}}", StoreKind::Aws)]
#[case("{type: aws, mirror: openbao, vault: {address: 'https://v'}, aws: {region: eu-west-1}}", StoreKind::Vault)]
#[case("{type: vault, mirror: google, vault: {address: 'https://v'}}", StoreKind::Google)]
#[case("{type: google, mirror: azure, azure: {vaultUrl: 'https://f.vault.azure.net'}}", StoreKind::Azure)]
#[case("{mirror: vault, folder: f, vault: {address: 'https://v'}}", StoreKind::Vault)]
#[case(
    "{byProvider: {gcp: google, aws: aws}, mirror: vault, vault: {address: 'https://v'}, aws: {region: eu-west-1}}",
    StoreKind::Vault
)]
fn pull_secrets_are_mirrored(#[case] store: &str, #[case] mirror: StoreKind) {
    let config = read(&in_vault("", "").replace("{type: vault, vault: {}}", store)).unwrap();
    assert_eq!(config.mirror.map(|mirror| mirror.kind()), Some(mirror));
}

/// A mirror asks for what names its place, and not for its cloud.
#[rstest]
#[case("{type: vault, mirror: google, vault: {address: 'https://v'}}", &["spec.gcp.projectId != nil"], true)]
#[case(
    "{type: google, mirror: aws, aws: {region: eu-west-1}}",
    &["spec.provider == \"gcp\"", "spec.gcp.projectId != nil"],
    true
)]
#[case("{type: vault, mirror: aws, vault: {address: 'https://v'}, aws: {region: eu-west-1}}", &[], false)]
fn the_built_in_preconditions_and_variables_are_those_of_both(
    #[case] store: &str,
    #[case] preconditions: &[&str],
    #[case] has_project: bool,
) {
    let config = read(&in_vault("", "").replace("{type: vault, vault: {}}", store)).unwrap();
    let asked: Vec<_> = config.preconditions.iter().map(Precondition::source).collect();
    assert_eq!(asked[..asked.len() - 1], *preconditions);
    let names: Vec<_> = config.bindings.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names.contains(&"GCP_PROJECT_ID"), has_project, "{names:?}");
}

#[rstest]
#[case("{mirror: google}", "spec.secretStore.mirror: must be another store than spec.secretStore.type, google")]
#[case(
    "{type: vault, mirror: openbao, vault: {address: 'https://v'}}",
    "spec.secretStore.mirror: must be another store than spec.secretStore.type, vault"
)]
#[case(
    "{byProvider: {a: aws, b: vault}, mirror: aws, vault: {address: 'https://v'}, aws: {region: eu-west-1}}",
    "spec.secretStore.mirror: must be another store than spec.secretStore.byProvider, aws"
)]
#[case("{mirror: oracle}", "spec.secretStore.mirror: must be one of google, vault, aws, azure")]
#[case("{type: vault, mirror: aws, vault: {address: 'https://v'}}", "spec.secretStore.aws.region: missing")]
#[case("{mirror: azure, azure: {vaultUrl: 'http://127.0.0.1:1'}}", "vaultUrl: must be an https:// address")]
#[case("{mirror: aws, aws: {region: 'eu west'}, folder: a//b}", "spec.secretStore.folder: must be parts")]
#[case(
    "{mirror: aws, aws: {region: eu-west-1}, vault: {address: 'https://v'}}",
    "spec.secretStore.vault: has no effect without spec.secretStore.type or mirror vault"
)]
#[case(
    "{mirror: azure, azure: {vaultUrl: 'https://f.vault.azure.net'}, folder: f}",
    "spec.secretStore.folder: has no effect without spec.secretStore.type or mirror vault or aws"
)]
fn a_mirror_that_does_not_fit_is_refused(#[case] store: &str, #[case] expect: &str) {
    let faults = faults(&in_vault("", "").replace("{type: vault, vault: {}}", store));
    assert!(faults.contains(expect), "{faults}");
}

#[test]
fn a_mirror_is_for_pull_secrets_only_and_its_variable_is_no_part_of_the_template() {
    let other =
        VALIDATION.replace("  jobTemplate:", "  secretStore: {mirror: aws, aws: {region: eu-west-1}}\n  jobTemplate:");
    assert_eq!(faults(&other), "spec.secretStore: has no effect without spec.adapterType pullsecret");
    let variable = in_vault("address: 'https://v'", "  jobTemplate: {env: [{name: SECRET_STORE_MIRROR, value: aws}]}");
    assert!(faults(&variable).contains("the variable follows from spec.secretStore.mirror: set that instead"));
}
