//! Settings of Azure Key Vault.

use secret_store::AzureIdentity;

use super::*;

/// Resolves the settings of a run that stores in Azure Key Vault.
fn with_azure(further: &[(&'static str, &'static str)]) -> Result<Settings, Vec<String>> {
    let complete = [
        ("CLUSTER_ID", "cls-123"),
        ("PULL_SECRET_FILE", "/run/pull-secret"),
        ("SECRET_STORE", "azure"),
        ("AZURE_KEY_VAULT_URL", "https://Fleet.vault.azure.net/"),
    ];
    resolved(&[&complete, further].concat()).map_err(|InvalidSettings(problems)| problems)
}

#[test]
fn a_workload_identity_is_chosen_by_its_token_file() {
    let workload = [
        ("AZURE_FEDERATED_TOKEN_FILE", "/run/token"),
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us/"),
    ];
    let settings = with_azure(&workload).unwrap();
    let Some(StoreSettings::Azure(azure)) = &settings.store else { panic!("must be Azure") };
    assert_eq!((azure.vault.as_str(), azure.purge), ("https://fleet.vault.azure.net", false));
    let AzureIdentity::Workload { authority, tenant, client_id, .. } = &azure.identity else { panic!("{azure:?}") };
    assert_eq!(
        (authority.as_str(), tenant.as_str(), client_id.as_str()),
        ("https://login.microsoftonline.us", "t", "c")
    );
    assert_eq!(settings.phase(), "azure-key-vault");
    let settings = with_azure(&[("AZURE_CLIENT_ID", "c"), ("AZURE_PURGE", "true")]).unwrap();
    let Some(StoreSettings::Azure(azure)) = settings.store else { panic!("must be Azure") };
    assert_eq!(azure.identity, AzureIdentity::ManagedIdentity { client_id: Some("c".to_owned()) });
    assert!(azure.purge);
}

#[rstest]
#[case(&[("AZURE_KEY_VAULT_URL", "http://127.0.0.1:1")], &["AZURE_KEY_VAULT_URL: must be an https:// address"])]
#[case(&[("AZURE_KEY_VAULT_URL", "fleet")], &["AZURE_KEY_VAULT_URL: must be an https:// address (or http:// to this machine), without user, query or fragment"])]
#[case(
    &[("AZURE_FEDERATED_TOKEN_FILE", "/run/token")],
    &[
        "missing required environment variable: AZURE_TENANT_ID (or --azure-tenant-id)",
        "missing required environment variable: AZURE_CLIENT_ID (or --azure-client-id)",
    ]
)]
#[case(&[("GCP_PROJECT_ID", "my-project-1")], &["GCP_PROJECT_ID has no effect with SECRET_STORE=azure: leave it out"])]
#[case(&[("VAULT_ADDR", "https://v")], &["VAULT_ADDR has no effect with SECRET_STORE=azure: leave it out"])]
#[case(&[("REPLICATION_POLICY", "automatic")], &["REPLICATION_POLICY has no effect with SECRET_STORE=azure: leave it out"])]
fn what_is_incomplete_or_without_effect_is_refused(
    #[case] further: &[(&'static str, &'static str)],
    #[case] expected: &[&str],
) {
    assert_eq!(with_azure(further).unwrap_err(), expected);
}
