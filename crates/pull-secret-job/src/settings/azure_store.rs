//! Checks the settings of Azure Key Vault.

use secret_store::{AzureIdentity, AzureSettings, EndpointUrl};

use super::azure::Azure;
use super::parse::Parser;

impl Parser<'_> {
    /// Returns `None` only when a problem says why.
    pub(super) fn azure(&mut self) -> Option<AzureSettings> {
        let given = &self.given.azure;
        let vault = self.required("AZURE_KEY_VAULT_URL", "azure-key-vault-url", given.key_vault_url.as_deref());
        let vault = vault.and_then(|url| self.encrypted("AZURE_KEY_VAULT_URL", url));
        let identity = self.azure_identity(given);
        Some(AzureSettings {
            vault: vault?,
            identity: identity?,
            ca_file: given.ca_file.clone(),
            purge: given.purge,
            call_timeout: given.api_timeout,
            calls: None,
        })
    }

    fn azure_identity(&mut self, given: &Azure) -> Option<AzureIdentity> {
        let Some(token_file) = given.federated_token_file.clone() else {
            // The webhook of Azure's workload identity sets tenant and authority wherever it sets anything, so they are no mistake.
            return Some(AzureIdentity::ManagedIdentity { client_id: given.client_id.clone() });
        };
        let tenant = self.required("AZURE_TENANT_ID", "azure-tenant-id", given.tenant_id.as_deref());
        let client_id = self.required("AZURE_CLIENT_ID", "azure-client-id", given.client_id.as_deref());
        let authority = self.parsed("AZURE_AUTHORITY_HOST", Some(&given.authority_host));
        let authority = authority.and_then(|url| self.encrypted("AZURE_AUTHORITY_HOST", url));
        Some(AzureIdentity::Workload { authority: authority?, tenant: tenant?, client_id: client_id?, token_file })
    }

    /// Refuses an address without TLS, which Azure's clients do not use.
    fn encrypted(&mut self, name: &str, url: EndpointUrl) -> Option<EndpointUrl> {
        let checked = if url.plain_host().is_none() { Ok(url) } else { Err("must be an https:// address") };
        self.check(name, checked)
    }
}
